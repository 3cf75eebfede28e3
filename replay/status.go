package replay

import (
	"sync"
	"time"

	"rankcache"
)

// rateWindow is over how long a rate is taken.
const rateWindow = time.Second

// status is a board's state, as its gate has set it. Only the gate writes it; mu is
// a leaf: nothing is called with it held.
type status struct {
	mu     sync.Mutex
	state  rankcache.BoardState
	reason string
	since  time.Time
	// ready is set once the board was open, stale or given up: from then on readers have had the best answer there is.
	ready   bool
	applied meter // updates
	read    meter // records of its topic
}

// set sets the state and returns the one before.
func (s *status) set(state rankcache.BoardState, reason string, now time.Time) (before rankcache.BoardState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before = s.state
	if s.state != state {
		s.state, s.since = state, now
	}
	s.reason = reason
	s.ready = s.ready || state == rankcache.StateOpen ||
		state == rankcache.StateStale || state == rankcache.StateGivenUp
	return before
}

func (s *status) wasReady() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready
}

// observe updates the rates.
func (s *status) observe(now time.Time, applied uint64, log *topic) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applied.observe(now, int64(applied))
	if log != nil {
		s.read.observe(now, -log.left())
	}
}

// fill sets the status' own fields for operators, and returns how many
// records of the board's topic are read per second.
func (s *status) fill(out *rankcache.BoardStatus) (readRate float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out.State, out.Reason, out.Since, out.Rate = s.state, s.reason, s.since, s.applied.rate
	return s.read.rate
}

// meter is the rate of a rising count.
type meter struct {
	at    time.Time
	count int64
	rate  float64 // per second
}

// observe takes the count at now. A count that fell starts again.
func (m *meter) observe(now time.Time, count int64) {
	passed := now.Sub(m.at)
	switch {
	case m.at.IsZero() || count < m.count:
		*m = meter{at: now, count: count}
		return
	case passed < rateWindow/10:
		return
	}
	rate := float64(count-m.count) / passed.Seconds()
	weight := min(1, passed.Seconds()/rateWindow.Seconds())
	if m.rate == 0 {
		weight = 1
	}
	*m = meter{at: now, count: count, rate: m.rate + weight*(rate-m.rate)}
}
