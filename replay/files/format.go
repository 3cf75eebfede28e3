package files

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"rankcache"
	"rankcache/replay"
)

const (
	magic   = "RANKLAST"
	version = 2
	// versionData: members may be joined with data. An earlier program would take both for the member.
	versionData = 3

	// Limits of a file that is read.
	maxHeader     = 1 << 20
	maxName       = 255
	maxPartitions = 10_000
	maxMembers    = 1 << 28
)

func appendHeader(dst []byte, s *replay.Saved) []byte {
	dst = appendText(dst, string(s.Board))
	dst = appendText(dst, s.Total)
	dst = appendState(dst, s.State)
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

// appendState writes an unknown sum as 0, any other one higher.
func appendState(dst []byte, s rankcache.State) []byte {
	dst = binary.AppendUvarint(binary.AppendUvarint(dst, s.Run), s.Seq)
	if !s.HasSum {
		return append(dst, 0)
	}
	return binary.AppendUvarint(dst, s.Sum+1)
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendTime(dst []byte, t time.Time) []byte {
	if t.IsZero() {
		return binary.AppendVarint(dst, 0)
	}
	return binary.AppendVarint(dst, t.UnixNano())
}

func parseHeader(body []byte) (replay.Saved, error) {
	c := cursor{rest: body}
	s := replay.Saved{
		Board: rankcache.BoardID(c.text(rankcache.MaxBoardLen)), Total: c.text(maxName),
		State: c.state(), Members: int(c.upTo(maxMembers)), TakenAt: c.time(), CurrentAt: c.time(),
		Topic: c.text(maxName), TopicID: c.text(maxName),
	}
	s.Offsets = make([]int64, c.upTo(maxPartitions))
	for i := range s.Offsets {
		s.Offsets[i] = c.int()
	}
	if c.bad || len(c.rest) > 0 {
		return replay.Saved{}, fmt.Errorf("%w: malformed header", ErrCorrupt)
	}
	if err := s.Board.Check(); err != nil {
		return replay.Saved{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return s, nil
}

// cursor reads values from a body. After the first missing value it is bad and returns zeros.
type cursor struct {
	rest []byte
	bad  bool
}

func (c *cursor) state() rankcache.State {
	s := rankcache.State{Run: c.uint(), Seq: c.uint()}
	if sum := c.upTo(1 << 48); sum > 0 {
		s.Sum, s.HasSum = sum-1, true
	}
	return s
}

func (c *cursor) uint() uint64 {
	v, n := binary.Uvarint(c.rest)
	return v * c.skip(n)
}

func (c *cursor) int() int64 {
	v, n := binary.Varint(c.rest)
	return v * int64(c.skip(n))
}

// skip advances by n bytes; n is not positive if there was no value. It returns 1 if there was one, otherwise 0.
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

// Reasons for not using a file. The errors that wrap them give the details.
var (
	// ErrTruncated: the file ends too early.
	ErrTruncated = errors.New("file is truncated")
	// ErrCorrupt: a checksum or a length is wrong.
	ErrCorrupt = errors.New("file is damaged")
	// ErrForeign: the file has another format, or is of another board.
	ErrForeign = errors.New("file is not of this board")
	// ErrVersion: the file has another version of the format.
	ErrVersion = errors.New("file has another format version")
)

// kind returns the metric label of err, "ok" for nil.
func kind(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, errOff):
		return "off"
	case errors.Is(err, fs.ErrNotExist):
		return "absent"
	case errors.Is(err, ErrTruncated):
		return "cut"
	case errors.Is(err, ErrCorrupt):
		return "corrupt"
	case errors.Is(err, ErrForeign):
		return "foreign"
	case errors.Is(err, ErrVersion):
		return "version"
	case errors.Is(err, replay.ErrOlder):
		return "older"
	case errors.Is(err, fs.ErrPermission):
		return "denied"
	case errors.Is(err, context.DeadlineExceeded):
		return "slow"
	}
	return "failed"
}

// damaged reports whether a file is unusable for every version of this program.
func damaged(err error) bool { return errors.Is(err, ErrTruncated) || errors.Is(err, ErrCorrupt) }
