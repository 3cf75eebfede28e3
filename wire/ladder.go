package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"rankcache"
)

// A ladder ([rankcache.Ladder]) of a board is one value of Redis, big-endian: version 1; run and seq of the board (8
// bytes each); changes while it was read (4), members (4), number of rungs (2); of each, best first: rank (4), score
// (8), length of the member (1), member; CRC-32C of everything before (4).
const (
	ladderVersion = 1
	ladderHead    = 1 + 8 + 8 + 4 + 4 + 2
	rungHead      = 4 + 8 + 1
	ladderTail    = 4

	// MaxLadderLen is the length of the longest value.
	MaxLadderLen = ladderHead + rankcache.MaxRungs*(rungHead+rankcache.MaxMemberLen) + ladderTail
)

var ErrLadder = errors.New("bad ladder of a board") // reports a value that is no ladder of this version

// ladderName and ladderLease end the keys beside a board.
const ladderName, ladderLease Companion = "ladder", "ladder-lease"

// LadderKey returns the key of a board's ladder.
func (n Names) LadderKey(b rankcache.BoardID) string { return n.CompanionKey(b, ladderName) }

// LadderLeaseKey returns the key of the lease of whoever makes a board's ladder.
func (n Names) LadderLeaseKey(b rankcache.BoardID) string { return n.CompanionKey(b, ladderLease) }

// AppendLadder appends a ladder as Redis keeps it, of at most [rankcache.MaxRungs] rungs, and returns the longer slice.
func AppendLadder(dst []byte, l *rankcache.Ladder) []byte {
	from := len(dst)
	dst = append(dst, ladderVersion)
	dst = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, l.Run), l.Seq)
	dst = binary.BigEndian.AppendUint32(dst, count32(l.Changes))
	dst = binary.BigEndian.AppendUint32(dst, count32(l.Members))
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(l.Rungs))) // #nosec G115 -- see above
	for i := range l.Rungs {
		r := &l.Rungs[i]
		dst = binary.BigEndian.AppendUint32(dst, count32(r.Rank))
		dst = binary.BigEndian.AppendUint64(dst, math.Float64bits(r.Score))
		dst = append(append(dst, byte(len(r.Member))), r.Member...)
	}
	return binary.BigEndian.AppendUint32(dst, crc32.Checksum(dst[from:], castagnoli))
}

// count32 returns a count as it fits.
func count32(n int) uint32 { return uint32(min(max(n, 0), math.MaxUint32)) } // #nosec G115 -- it fits

// ParseLadder reads a value, without At. Its members are parts of it. The error wraps [ErrLadder].
func ParseLadder(value string) (*rankcache.Ladder, error) {
	if len(value) < ladderHead+ladderTail || len(value) > MaxLadderLen || value[0] != ladderVersion {
		return nil, badLadder(value, fmt.Sprintf("which begin with %.4q", value))
	}
	body := value[:len(value)-ladderTail]
	if crc32.Checksum([]byte(body), castagnoli) != binary.BigEndian.Uint32([]byte(value[len(body):])) {
		return nil, badLadder(value, "whose checksum is wrong")
	}
	head := []byte(body[:ladderHead])
	l := &rankcache.Ladder{Run: binary.BigEndian.Uint64(head[1:]), Seq: binary.BigEndian.Uint64(head[9:]),
		Changes: int(binary.BigEndian.Uint32(head[17:])), Members: int(binary.BigEndian.Uint32(head[21:]))}
	count := int(binary.BigEndian.Uint16(head[25:]))
	if count == 0 || count > rankcache.MaxRungs {
		return nil, badLadder(value, fmt.Sprintf("of %d rungs", count))
	}
	l.Rungs = make([]rankcache.Rung, count)
	rest := body[ladderHead:]
	for i := range l.Rungs {
		var ok bool
		if rest, ok = parseRung(rest, &l.Rungs[i]); !ok || i > 0 && !follows(&l.Rungs[i-1], &l.Rungs[i]) {
			return nil, badLadder(value, fmt.Sprintf("of which rung %d is wrong", i))
		}
	}
	if last := &l.Rungs[count-1]; rest != "" || l.Rungs[0].Rank < 1 || last.Rank > l.Members {
		return nil, badLadder(value, fmt.Sprintf("with %d left, of ranks %d to %d of %d", len(rest), l.Rungs[0].Rank, last.Rank, l.Members))
	}
	return l, nil
}

func badLadder(value, what string) error {
	return fmt.Errorf("%w: %d bytes, %s: check that all sidecars are of one version and that nothing else uses the key", ErrLadder, len(value), what)
}

func follows(before, r *rankcache.Rung) bool { return r.Rank > before.Rank && before.Before(r.Entry) }

func parseRung(text string, r *rankcache.Rung) (rest string, ok bool) {
	if len(text) < rungHead {
		return text, false
	}
	head := []byte(text[:rungHead])
	r.Rank, r.Score = int(binary.BigEndian.Uint32(head)), math.Float64frombits(binary.BigEndian.Uint64(head[4:]))
	end := rungHead + int(head[12])
	if len(text) < end || math.IsNaN(r.Score) {
		return text, false
	}
	r.Member = text[rungHead:end]
	return text[end:], rankcache.CheckMember(r.Member) == nil
}
