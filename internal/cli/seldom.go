package cli

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// seldom leaves out warnings and errors that repeat: of one message it writes some at a time, and counts the others.
type seldom struct {
	slog.Handler
	lines *lineCounts
}

const (
	// linesEach is how many lines of one message are written in linesEvery.
	linesEach, linesEvery = 20, 10 * time.Second
	maxLines              = 1000 // bounds the messages that are counted: a library's may have anything in them
)

func newSeldom(h slog.Handler) slog.Handler {
	return seldom{h, &lineCounts{of: make(map[string]*lineCount)}}
}

func (h seldom) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		leftOut, ok := h.lines.count(r.Message, r.Time)
		if !ok {
			return nil
		}
		if leftOut > 0 {
			r = r.Clone()
			r.AddAttrs(slog.Int("left_out", leftOut))
		}
	}
	return h.Handler.Handle(ctx, r)
}

func (h seldom) WithAttrs(attrs []slog.Attr) slog.Handler {
	return seldom{h.Handler.WithAttrs(attrs), h.lines}
}

func (h seldom) WithGroup(name string) slog.Handler {
	return seldom{h.Handler.WithGroup(name), h.lines}
}

// lineCounts are the lines of the present stretches, by message.
type lineCounts struct {
	mu sync.Mutex
	of map[string]*lineCount
}

type lineCount struct {
	begun time.Time
	lines int
}

// count counts a line. ok tells to write it, leftOut how many of the stretch before it were not.
func (c *lineCounts) count(message string, at time.Time) (leftOut int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.of[message]
	if n == nil {
		if len(c.of) >= maxLines {
			clear(c.of)
		}
		n = &lineCount{begun: at}
		c.of[message] = n
	}
	if at.Sub(n.begun) >= linesEvery {
		leftOut = max(0, n.lines-linesEach)
		n.begun, n.lines = at, 0
	}
	n.lines++
	return leftOut, n.lines <= linesEach
}
