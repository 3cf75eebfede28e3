package live

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	mathrand "math/rand/v2"
	"strconv"
	"strings"
	"time"

	"rankcache/sidecar"
)

// Kind is what an [Event] is.
type Kind uint8

// The kinds of events.
const (
	// Update is the page or a diff: see [Event.Encoded].
	Update Kind = iota
	// Age is the heartbeat: Event.Age and Event.Source.
	Age
	// End is the last event, for Event.Code; the client may come back after Event.Retry.
	End
	// Over is the last event of a stream that has to be opened anew, with another key.
	Over
)

// Code is why a stream ends.
type Code string

// The codes of [End].
const (
	CodeBlocked  Code = "blocked"  // the operator has blocked the board
	CodeDeleted  Code = "deleted"  // Redis has no such board any more, or its period is not kept
	CodeDraining Code = "draining" // this process is about to end
)

// Event is one event of a stream.
type Event struct {
	Kind   Kind
	Code   Code
	Retry  time.Duration
	Age    time.Duration
	Source sidecar.Source

	version *version
	base    uint64 // the version that the client has; 0: the page is sent
}

// Stream is the events of one client. One goroutine calls its methods.
type Stream struct {
	encoder *encoder
	woken   chan struct{} // holds one signal
	sent    uint64        // the version that the client has; 0: none that a diff could be made from
	beat    *time.Timer
	over    <-chan time.Time
	timer   *time.Timer
}

func newStream(e *encoder) *Stream {
	return &Stream{encoder: e, woken: make(chan struct{}, 1)}
}

// begin makes the stream ready for Next, behind the event that the client has got last.
func (s *Stream) begin(lastID string, lasts time.Duration) {
	s.notify()
	// Streams that were opened together, as after a restart, don't beat together ever after.
	half := s.encoder.hub.cfg.Beat / 2
	s.beat = time.NewTimer(half + mathrand.N(half))
	if lasts != 0 {
		s.timer = time.NewTimer(lasts)
		s.over = s.timer.C
	}
	epoch, text, _ := strings.Cut(lastID, ".")
	if lastID == "" {
		return
	}
	e := s.encoder
	if n, err := strconv.ParseUint(text, 10, 64); err == nil && epoch == e.epoch && e.diffable(n) {
		s.sent = n
	}
	e.hub.metrics.resumed(s.sent != 0)
}

func (s *Stream) notify() {
	select {
	case s.woken <- struct{}{}:
	default: // the client is slow: it gets the newest when it has taken what it has
	}
}

// Next waits for the next event. The error is that of ctx.
func (s *Stream) Next(ctx context.Context) (Event, error) {
	for {
		select {
		case <-s.woken:
			if ev, ok := s.next(); ok {
				return ev, nil
			}
		case now := <-s.beat.C:
			s.beat.Reset(s.encoder.hub.cfg.Beat)
			age, source := s.encoder.age(now)
			return Event{Kind: Age, Age: age, Source: source}, nil
		case <-s.over:
			return Event{Kind: Over}, nil
		case <-s.encoder.hub.drain:
			return EndOf(CodeDraining), nil
		case <-ctx.Done():
			return Event{}, ctx.Err()
		}
	}
}

// next returns what the client lacks, if it lacks anything.
func (s *Stream) next() (Event, bool) {
	e := s.encoder
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.code != "" {
		return EndOf(e.code), true
	}
	v := e.newest
	if s.sent == v.n {
		return Event{}, false
	}
	ev := Event{version: v}
	if s.sent != 0 {
		e.hub.metrics.skipped.Add(float64(v.n - s.sent - 1))
		if v.diffable(s.sent) {
			ev.base = s.sent
		}
	}
	s.sent = v.n
	return ev, true
}

// Close frees the stream's place.
func (s *Stream) Close() {
	if s.beat != nil {
		s.beat.Stop()
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	s.encoder.hub.leave(s)
}

// EndOf returns the last event of a stream, with a pause before the client comes back that
// is not the same for all.
func EndOf(code Code) Event {
	return Event{Kind: End, Code: code, Retry: 100*time.Millisecond + time.Duration(mathrand.Int64N(int64(900*time.Millisecond)))}
}

func newEpoch() string {
	var random [8]byte
	_, _ = rand.Read(random[:]) // it never fails
	return hex.EncodeToString(random[:])
}
