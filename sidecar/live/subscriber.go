package live

import (
	"context"
	"math/rand/v2"
	"time"
)

// Subscriber is the subscription of one client. One goroutine at a time calls its methods.
type Subscriber struct {
	publisher *publisher
	seat      int       // decides with which others it is woken
	sent      uint64    // the version that the client has; 0: none that a diff could be made from
	beatAt    time.Time // of the next heartbeat
	expiresAt time.Time // zero: never
	timer     *time.Timer
}

func newSubscriber(p *publisher, o *Options) *Subscriber {
	s, now := &Subscriber{publisher: p, seat: rand.Int(), timer: time.NewTimer(0)}, time.Now()
	if o.Lifetime != 0 {
		s.expiresAt = now.Add(o.Lifetime)
	}
	// Clients that subscribed together, as after a restart, don't have their heartbeats together.
	half := p.hub.cfg.Heartbeat / 2
	s.beatIn(now, half+rand.N(half))
	if o.LastID != "" {
		s.sent = p.has(o.LastID)
		p.hub.metrics.resumed(s.sent != 0)
	}
	return s
}

// beatIn sets the timer for the next heartbeat, or for the end of the subscription.
func (s *Subscriber) beatIn(now time.Time, d time.Duration) {
	s.beatAt = now.Add(d)
	if !s.expiresAt.IsZero() {
		d = min(d, s.expiresAt.Sub(now))
	}
	s.timer.Reset(d)
}

// Next waits for the next event, for a slow client the newest version. The error is that of ctx.
func (s *Subscriber) Next(ctx context.Context) (Event, error) {
	for {
		newest := s.publisher.state.Load()
		if ev, ok := s.event(newest, time.Now()); ok {
			return ev, nil
		}
		select {
		case <-newest.newer[s.seat%len(newest.newer)]:
		case <-s.timer.C:
		case <-ctx.Done():
			return Event{}, ctx.Err()
		}
	}
}

// event returns the event that the client can be sent now, if there is one.
func (s *Subscriber) event(newest *state, now time.Time) (Event, bool) {
	p := s.publisher
	switch {
	case newest.ended != "":
		return p.hub.End(newest.ended), true
	case !s.expiresAt.IsZero() && !now.Before(s.expiresAt):
		return Event{Kind: Expired}, true
	case !now.Before(s.beatAt):
		s.beatIn(now, p.hub.cfg.Heartbeat)
		age, source := p.age(now)
		return Event{Kind: Age, Age: age, Source: source}, true
	}
	return s.update(newest.version)
}

// update returns what the client lacks of a version, if it lacks anything.
func (s *Subscriber) update(v *version) (Event, bool) {
	if s.sent == v.n {
		return Event{}, false
	}
	ev := Event{version: v}
	if s.sent != 0 {
		s.publisher.hub.metrics.skipped.Add(float64(v.n - s.sent - 1))
		if v.diffable(s.sent) {
			ev.base = s.sent
		}
	}
	s.sent = v.n
	return ev, true
}

// Close ends the subscription.
func (s *Subscriber) Close() {
	s.timer.Stop()
	s.publisher.hub.leave(s.publisher)
}
