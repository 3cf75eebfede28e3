package live

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	mathrand "math/rand/v2"
	"strconv"
	"strings"
	"time"

	"rankcache"
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
	Source rankcache.Source

	version *version
	base    uint64 // the version that the client has; 0: the page is sent
}

// Stream is the events of one client. One goroutine at a time calls its methods.
type Stream struct {
	encoder *encoder
	notify  func()
	woken   chan struct{} // holds one signal; nil: Viewer.Notify is called instead
	sent    uint64        // the version that the client has; 0: none that a diff could be made from
	beatAt  time.Time
	overAt  time.Time   // zero: never
	timer   *time.Timer // notifies when it is time for one of them
}

func newStream(e *encoder, notify func()) *Stream {
	s := &Stream{encoder: e, notify: notify}
	if notify == nil {
		s.woken = make(chan struct{}, 1)
		s.notify = s.wake
	}
	return s
}

// begin makes the stream ready for Poll, behind the event that the client has got last.
func (s *Stream) begin(v *Viewer) {
	now := time.Now()
	if v.Lasts != 0 {
		s.overAt = now.Add(v.Lasts)
	}
	// Streams that were opened together, as after a restart, don't beat together ever after.
	half := s.encoder.hub.cfg.Beat / 2
	s.beatIn(now, half+mathrand.N(half))
	epoch, text, _ := strings.Cut(v.LastID, ".")
	if v.LastID == "" {
		return
	}
	e := s.encoder
	if n, err := strconv.ParseUint(text, 10, 64); err == nil && epoch == e.epoch && e.diffable(n) {
		s.sent = n
	}
	e.hub.metrics.resumed(s.sent != 0)
}

func (s *Stream) beatIn(now time.Time, d time.Duration) {
	s.beatAt = now.Add(d)
	if !s.overAt.IsZero() {
		d = min(d, s.overAt.Sub(now))
	}
	if s.timer == nil {
		s.timer = time.AfterFunc(d, s.notify)
	} else {
		s.timer.Reset(d)
	}
}

func (s *Stream) wake() {
	select {
	case s.woken <- struct{}{}:
	default: // the client is slow: it gets the newest when it has taken what it has
	}
}

// Next waits for the next event, unless the stream has a Viewer.Notify. The error is that of
// ctx.
func (s *Stream) Next(ctx context.Context) (Event, error) {
	for {
		if ev, ok := s.Poll(); ok {
			return ev, nil
		}
		select {
		case <-s.woken:
		case <-ctx.Done():
			return Event{}, ctx.Err()
		}
	}
}

// Poll returns the next event that the client can be sent now, if there is one.
func (s *Stream) Poll() (Event, bool) {
	e, now := s.encoder, time.Now()
	switch {
	case e.hub.Draining():
		return EndOf(CodeDraining), true
	case !s.overAt.IsZero() && !now.Before(s.overAt):
		return Event{Kind: Over}, true
	case !now.Before(s.beatAt):
		s.beatIn(now, e.hub.cfg.Beat)
		age, source := e.age(now)
		return Event{Kind: Age, Age: age, Source: source}, true
	}
	return s.next()
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
