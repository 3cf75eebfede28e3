package wire

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"rankcache"
)

// Reads is a sidecar's report of the boards that it is asked for most: one value of Redis, made anew each second.
type Reads struct {
	At     uint64 // tells one report from the next: Unix milliseconds of the sidecar's clock
	Boards []BoardReads
}

// BoardReads is how often a sidecar is asked for a board.
type BoardReads struct {
	Board rankcache.BoardID
	Rate  uint64 // reads a second
}

// A report has: version 1; At (8 bytes, big-endian); of each board, by id: rate, length of the id (uvarints), id.
const (
	readsVersion = 1
	readsHead    = 1 + 8

	MaxReads = 64 // the most boards of one report
	// MaxReadsLen is the length of the longest report.
	MaxReadsLen = readsHead + MaxReads*(binary.MaxVarintLen64+2+rankcache.MaxBoardLen)
)

var ErrReads = errors.New("bad report of reads") // reports a value that is no [Reads] of this version

// AppendReads appends a report, and sorts the boards; of more than MaxReads those read most are in it.
func AppendReads(dst []byte, at uint64, boards []BoardReads) []byte {
	if len(boards) > MaxReads {
		slices.SortFunc(boards, func(a, b BoardReads) int { return cmp.Or(cmp.Compare(b.Rate, a.Rate), cmp.Compare(a.Board, b.Board)) })
		boards = boards[:MaxReads]
	}
	slices.SortFunc(boards, func(a, b BoardReads) int { return cmp.Compare(a.Board, b.Board) })
	dst = binary.BigEndian.AppendUint64(append(dst, readsVersion), at)
	for _, b := range boards {
		dst = binary.AppendUvarint(dst, b.Rate)
		dst = append(binary.AppendUvarint(dst, uint64(len(b.Board))), b.Board...)
	}
	return dst
}

// ParseReads reads a report of each board once, whose ids boards may have. The error wraps [ErrReads].
func ParseReads(value string) (r Reads, err error) {
	bad := func(what string) (Reads, error) {
		return Reads{}, fmt.Errorf("%w: %d bytes, %s: check that all sidecars are of one version and that nothing else uses the key", ErrReads, len(value), what)
	}
	if len(value) < readsHead || len(value) > MaxReadsLen || value[0] != readsVersion {
		return bad(fmt.Sprintf("which begin with %.4q", value))
	}
	data := []byte(value)
	r.At = binary.BigEndian.Uint64(data[1:])
	for data = data[readsHead:]; len(data) > 0; {
		rate, n := binary.Uvarint(data)
		length, m := binary.Uvarint(data[max(n, 0):])
		if n <= 0 || m <= 0 || length > uint64(len(data)-n-m) || len(r.Boards) == MaxReads {
			return bad(fmt.Sprintf("cut or too long after %d boards", len(r.Boards)))
		}
		id := rankcache.BoardID(data[n+m : n+m+int(length)])
		if id.Check() != nil || len(r.Boards) > 0 && r.Boards[len(r.Boards)-1].Board >= id {
			return bad(fmt.Sprintf("whose board %d is %.40q", len(r.Boards), id))
		}
		r.Boards = append(r.Boards, BoardReads{id, rate})
		data = data[n+m+int(length):]
	}
	return r, nil
}
