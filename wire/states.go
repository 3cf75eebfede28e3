package wire

import (
	"cmp"
	"crypto/sha1" // #nosec G505 -- it spreads ids, and detects faults, not attackers
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"rankcache"
)

// States is a keeper's reading of all super-hot boards of an instance: one value, with a serial that rises. It is
// immutable, for concurrent use. The zero value has nothing.
type States struct {
	Serial  uint64
	Every   time.Duration // how often the keeper reads
	entries string
}

// BoardState is the state of one board in [States].
type BoardState struct {
	Board uint64 // as [StateKey] returns it
	rankcache.State
	Members int // of the sorted set
	Life    Life
	Primed  bool
}

// A value has, big-endian: version 1; serial (8 bytes); [StateKey] of the instance (8); Every in ms (4); the number of
// boards (4); of each, in the order of their keys: key (8), run (7), seq (5), sum (6), members (4), flags as in a meta
// (1); CRC-32C of everything before (4).
const (
	statesVersion = 1
	serialAt      = 1
	serialLen     = 8
	statesHead    = serialAt + serialLen + 8 + 4 + 4
	stateLen      = 8 + runLen + seqLen + sumLen + 4 + 1
	statesTail    = 4

	runLen, seqLen, sumLen = 7, 5, 6

	MaxStates      = 50_000                                       // the most boards of one value
	MaxStatesLen   = statesHead + MaxStates*stateLen + statesTail // the length of the longest value
	MaxStatesEvery = 10 * time.Second                             // the longest [States.Every]
)

// SerialFirst and SerialLast are the indexes of the first and the last byte of a value's serial.
const SerialFirst, SerialLast = serialAt, serialAt + serialLen - 1

var ErrStates = errors.New("bad states of boards") // reports a value that is no [States] of this version and instance

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// StateKey returns the number by which a board, or an instance, is named in [States].
func StateKey(name string) uint64 {
	sum := sha1.Sum([]byte(name)) // #nosec G401 -- see the import
	return binary.BigEndian.Uint64(sum[:])
}

// AppendSerial appends a serial as values have it.
func AppendSerial(dst []byte, serial uint64) []byte {
	return binary.BigEndian.AppendUint64(dst, serial)
}

// ParseSerial reads the bytes of [SerialFirst] to [SerialLast]; false if they are none.
func ParseSerial(text string) (uint64, bool) {
	if len(text) != serialLen {
		return 0, false
	}
	return binary.BigEndian.Uint64([]byte(text)), true
}

// AppendStates appends a value, and sorts the boards. Those that it can't tell apart, or don't fit, are left out.
func AppendStates(dst []byte, instance string, serial uint64, every time.Duration, boards []BoardState) []byte {
	slices.SortFunc(boards, func(a, b BoardState) int { return cmp.Compare(a.Board, b.Board) })
	from := len(dst)
	dst = AppendSerial(append(dst, statesVersion), serial)
	dst = binary.BigEndian.AppendUint64(dst, StateKey(instance))
	dst = binary.BigEndian.AppendUint32(dst, uint32(min(every, MaxStatesEvery).Milliseconds()))
	countAt, count := len(dst), uint32(0)
	dst = binary.BigEndian.AppendUint32(dst, 0)
	for i := range boards {
		b := &boards[i]
		twice := i > 0 && boards[i-1].Board == b.Board || i+1 < len(boards) && boards[i+1].Board == b.Board
		if twice || b.Run>>(8*runLen)|b.Seq>>(8*seqLen)|b.Sum>>(8*sumLen) != 0 || b.Members < 0 || b.Members > math.MaxUint32 || count == MaxStates {
			continue
		}
		dst, count = appendState(dst, b), count+1
	}
	binary.BigEndian.PutUint32(dst[countAt:], count)
	return binary.BigEndian.AppendUint32(dst, crc32.Checksum(dst[from:], castagnoli))
}

func appendState(dst []byte, b *BoardState) []byte {
	flags := byte(b.Life)
	if !b.HasSum {
		flags |= metaUnknownSum
	}
	if b.Primed {
		flags |= metaPrimed
	}
	dst = binary.BigEndian.AppendUint64(dst, b.Board)
	dst = appendShort(dst, b.Run, runLen)
	dst = appendShort(dst, b.Seq, seqLen)
	dst = appendShort(dst, b.Sum, sumLen)
	return append(binary.BigEndian.AppendUint32(dst, uint32(b.Members)), flags)
}

// appendShort appends the last bytes of a number.
func appendShort(dst []byte, n uint64, bytes int) []byte {
	whole := binary.BigEndian.AppendUint64(nil, n)
	return append(dst, whole[8-bytes:]...)
}

// short returns a number of so many bytes.
func short(data []byte) (n uint64) {
	for _, b := range data {
		n = n<<8 | uint64(b)
	}
	return n
}

// ParseStates reads a value of an instance. The error wraps [ErrStates].
func ParseStates(value, instance string) (s States, err error) {
	bad := func(what string) (States, error) {
		return States{}, fmt.Errorf("%w: %d bytes, %s: check that all keepers and sidecars are of one version and that nothing else uses the key", ErrStates, len(value), what)
	}
	if len(value) < statesHead+statesTail || len(value) > MaxStatesLen || value[0] != statesVersion {
		return bad(fmt.Sprintf("which begin with %.4q", value))
	}
	head, body := []byte(value[:statesHead]), value[:len(value)-statesTail]
	s.Serial = binary.BigEndian.Uint64(head[serialAt:])
	s.Every = time.Duration(binary.BigEndian.Uint32(head[17:])) * time.Millisecond
	count := binary.BigEndian.Uint32(head[21:])
	s.entries = body[statesHead:]
	switch {
	case uint64(len(s.entries)) != uint64(count)*stateLen:
		return bad(fmt.Sprintf("of %d boards", count))
	case crc32.Checksum([]byte(body), castagnoli) != binary.BigEndian.Uint32([]byte(value[len(body):])):
		return bad("whose checksum is wrong")
	case binary.BigEndian.Uint64(head[9:]) != StateKey(instance):
		return bad("of another instance")
	case s.Every <= 0 || s.Every > MaxStatesEvery:
		return bad("with an interval of " + s.Every.String())
	}
	return s, nil
}

// Len returns the number of boards.
func (s States) Len() int { return len(s.entries) / stateLen }

// Of returns the state of the board with this key ([StateKey]); false if there is none.
func (s States) Of(key uint64) (b BoardState, ok bool) {
	var want [8]byte
	binary.BigEndian.PutUint64(want[:], key)
	low, high := 0, s.Len()
	for low < high {
		middle := (low + high) / 2
		at := s.entries[middle*stateLen:]
		switch c := strings.Compare(at[:8], string(want[:])); {
		case c == 0:
			return parseState(key, at[8:stateLen])
		case c < 0:
			low = middle + 1
		default:
			high = middle
		}
	}
	return BoardState{}, false
}

func parseState(key uint64, text string) (b BoardState, ok bool) {
	data := []byte(text)
	b.Board, b.Run, b.Seq, b.Sum = key, short(data[:runLen]), short(data[runLen:runLen+seqLen]), short(data[runLen+seqLen:runLen+seqLen+sumLen])
	b.Members = int(binary.BigEndian.Uint32(data[18:]))
	flags := data[22]
	b.Life, b.HasSum, b.Primed = Life(flags&lifeMask), flags&metaUnknownSum == 0, flags&metaPrimed != 0
	if !b.HasSum {
		b.Sum = 0
	}
	return b, b.Life <= LifeFinal
}

var ErrWritten = errors.New("bad time of a keeper") // reports a value of [Names.WrittenKey] that is no time

const MaxWrittenLen = 16 // the length of the longest value of [Names.WrittenKey]

// ParseWritten reads [Names.WrittenKey]: a time in Unix microseconds by the keeper's Redis. A replica that has it has
// all that its master had then. The error wraps [ErrWritten].
func ParseWritten(text string) (time.Time, error) {
	us, err := strconv.ParseUint(text, 10, 63)
	if err != nil || us == 0 || len(text) > MaxWrittenLen {
		return time.Time{}, fmt.Errorf("%w: %d bytes that begin with %.4q: check that nothing else uses the key", ErrWritten, len(text), text)
	}
	return time.UnixMicro(int64(us)), nil // #nosec G115 -- 63 bits
}
