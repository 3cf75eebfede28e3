package app

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// maxBoardLines is how many lines about single boards are logged of one kind of event,
// from one second to the next.
const maxBoardLines = 10

// foldedLog is a handler that folds events of many boards at once: the lines above
// maxBoardLines are of level debug, and one a second counts them. Lines that
// name no board pass as they are.
type foldedLog struct {
	slog.Handler
	tally *logTally
}

// event is a kind of line: boards that come to the same state are one.
type event struct {
	level slog.Level
	what  string
	state string
}

// logTally counts lines. mu is a leaf.
type logTally struct {
	to slog.Handler

	mu    sync.Mutex
	lines map[event]int // since the last flush
	order []event       // in which they came first
}

func newFoldedLog(to slog.Handler) *foldedLog {
	return &foldedLog{to, &logTally{to: to, lines: make(map[event]int)}}
}

// Handle implements [slog.Handler].
func (f *foldedLog) Handle(ctx context.Context, r slog.Record) error {
	if of, ok := boardEvent(&r); ok && r.Level > slog.LevelDebug && f.tally.count(of) > maxBoardLines {
		if r.Level = slog.LevelDebug; !f.Enabled(ctx, r.Level) {
			return nil
		}
	}
	return f.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (f *foldedLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &foldedLog{f.Handler.WithAttrs(attrs), f.tally}
}

// WithGroup implements [slog.Handler].
func (f *foldedLog) WithGroup(name string) slog.Handler {
	return &foldedLog{f.Handler.WithGroup(name), f.tally}
}

// boardEvent returns the event of a record about a board; ok is false for other records.
func boardEvent(r *slog.Record) (e event, ok bool) {
	e = event{level: r.Level, what: r.Message}
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "board":
			ok = true
		case "state":
			e.state = a.Value.String()
		}
		return true
	})
	return e, ok
}

// Run implements runnable: it logs once a second how many lines were folded.
func (t *logTally) Run(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			t.flush()
			return nil
		case <-tick.C:
			t.flush()
		}
	}
}

// count returns how many lines of the kind there have been since the last flush.
func (t *logTally) count(e event) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lines[e] == 0 {
		t.order = append(t.order, e)
	}
	t.lines[e]++
	return t.lines[e]
}

// flush logs how many lines of each kind were folded, and counts anew.
func (t *logTally) flush() {
	t.mu.Lock()
	lines, order := t.lines, t.order
	t.lines, t.order = make(map[event]int), nil
	t.mu.Unlock()
	for _, e := range order {
		if more := lines[e] - maxBoardLines; more > 0 {
			t.log(e, more)
		}
	}
}

func (t *logTally) log(e event, more int) {
	r := slog.NewRecord(time.Now(), e.level, "more boards", 0)
	r.AddAttrs(slog.Int("boards", more), slog.String("event", e.what))
	if e.state != "" {
		r.AddAttrs(slog.String("state", e.state))
	}
	_ = t.to.Handle(context.Background(), r) // as slog.Logger does
}
