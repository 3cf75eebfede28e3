package lastgood

import (
	"encoding/binary"
	"fmt"
	"time"

	"rankcache"
)

// Snapshot says what the members of a file belong to.
type Snapshot struct {
	Board rankcache.BoardID
	// Total is what Seq counts, in the words of whoever saves.
	Total string
	// Seq is up to where every update is in the members. Later ones may be, too.
	Seq     uint64
	Members int
	// TakenAt is when the members were as they are in the file.
	TakenAt time.Time
	// CurrentAt is when the board was last known to equal the origin.
	CurrentAt time.Time
	// Topic and TopicID name the board's log. Reading goes on at Offsets, one per
	// partition: before them is no update later than Seq.
	Topic, TopicID string
	Offsets        []int64
}

const (
	magic   = "RANKLAST"
	version = 1

	// Limits of what is read.
	maxHeader     = 1 << 20
	maxName       = 255
	maxPartitions = 10_000
	maxMembers    = 1 << 28
)

func appendHeader(dst []byte, s *Snapshot) []byte {
	dst = appendText(dst, string(s.Board))
	dst = appendText(dst, s.Total)
	dst = binary.AppendUvarint(dst, s.Seq)
	dst = binary.AppendUvarint(dst, uint64(s.Members))
	dst = appendTime(dst, s.TakenAt)
	dst = appendTime(dst, s.CurrentAt)
	dst = appendText(dst, s.Topic)
	dst = appendText(dst, s.TopicID)
	dst = binary.AppendUvarint(dst, uint64(len(s.Offsets)))
	for _, at := range s.Offsets {
		dst = binary.AppendVarint(dst, at)
	}
	return dst
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// appendTime writes the zero time as 0, which then is no moment of 1970.
func appendTime(dst []byte, t time.Time) []byte {
	if t.IsZero() {
		return binary.AppendVarint(dst, 0)
	}
	return binary.AppendVarint(dst, t.UnixNano())
}

// parseHeader is the inverse of appendHeader.
func parseHeader(body []byte) (Snapshot, error) {
	c := cursor{rest: body}
	s := Snapshot{
		Board: rankcache.BoardID(c.text(rankcache.MaxBoardLen)), Total: c.text(maxName),
		Seq: c.uint(), Members: int(c.upTo(maxMembers)), TakenAt: c.time(), CurrentAt: c.time(),
		Topic: c.text(maxName), TopicID: c.text(maxName),
	}
	s.Offsets = make([]int64, c.upTo(maxPartitions))
	for i := range s.Offsets {
		s.Offsets[i] = c.int()
	}
	if c.bad || len(c.rest) > 0 {
		return Snapshot{}, fmt.Errorf("%w: the header can't be read", ErrCorrupt)
	}
	if err := s.Board.Check(); err != nil {
		return Snapshot{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return s, nil
}

// cursor takes values from a body. Once one is not there it is bad, and gives
// zeros.
type cursor struct {
	rest []byte
	bad  bool
}

func (c *cursor) uint() uint64 {
	v, n := binary.Uvarint(c.rest)
	return v * c.skip(n)
}

func (c *cursor) int() int64 {
	v, n := binary.Varint(c.rest)
	return v * int64(c.skip(n))
}

// skip goes n bytes on, which is not positive if there was no value. It returns 1
// if there was and 0 if not.
func (c *cursor) skip(n int) uint64 {
	if c.bad = c.bad || n <= 0; c.bad {
		return 0
	}
	c.rest = c.rest[n:]
	return 1
}

func (c *cursor) upTo(limit uint64) uint64 {
	v := c.uint()
	if v > limit {
		c.bad = true
		return 0
	}
	return v
}

func (c *cursor) text(limit int) string {
	n := int(c.upTo(uint64(limit)))
	if c.bad = c.bad || n > len(c.rest); c.bad {
		return ""
	}
	s := string(c.rest[:n])
	c.rest = c.rest[n:]
	return s
}

func (c *cursor) time() time.Time {
	if ns := c.int(); ns != 0 {
		return time.Unix(0, ns)
	}
	return time.Time{}
}
