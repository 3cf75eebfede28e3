package replay

import (
	"time"

	"rankcache"
)

// rateWindow is over how long a rate is taken.
const rateWindow = time.Second

// status is where a follower stands, as its gate has last said.
type status struct {
	state  rankcache.BoardState
	reason string
	since  time.Time
	// settled says that the board has once been open, stale or given up: that all is
	// done that can be for whoever reads it.
	settled bool
	applied meter // updates
	read    meter // records of its topic
}

// set notes the state and returns the one before.
func (s *status) set(state rankcache.BoardState, reason string, now time.Time) (before rankcache.BoardState) {
	before = s.state
	if s.state != state {
		s.state, s.since = state, now
	}
	s.reason = reason
	s.settled = s.settled || state == rankcache.StateOpen ||
		state == rankcache.StateStale || state == rankcache.StateGivenUp
	return before
}

// meter is the rate of a rising count.
type meter struct {
	at    time.Time
	count int64
	rate  float64 // per second
}

// observe takes the count of now. A count that fell begins anew.
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

// Status returns every followed board, sorted by id. It may be called by any
// goroutine.
func (r *Runner) Status() []rankcache.BoardStatus {
	followers := r.followers()
	all := make([]rankcache.BoardStatus, len(followers))
	for i, f := range followers {
		all[i] = f.describe()
	}
	return all
}

func (f *follower) describe() rankcache.BoardStatus {
	p := f.board.Progress()
	f.mu.Lock()
	defer f.mu.Unlock()
	s := rankcache.BoardStatus{
		Board: f.id, State: f.status.state, Reason: f.status.reason, Since: f.status.since,
		Have: max(p.Applied(), f.tally.counted.Load()), Want: f.want,
		Rate: f.status.applied.rate, Members: p.Members, Audit: f.ledger.AuditStatus,
	}
	if s.State == rankcache.StateOpen {
		s.Have, s.Want = p.Applied(), max(f.total.seq, f.want)
	}
	if f.reading != nil && s.State != rankcache.StateOpen && f.status.read.rate > 0 {
		s.ETA = time.Duration(float64(f.reading.left()) / f.status.read.rate * float64(time.Second))
	}
	return s
}

// measure brings the rates up to date.
func (f *follower) measure(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status.applied.observe(now, int64(f.tally.applied.Load()))
	if f.reading != nil {
		f.status.read.observe(now, -f.reading.left())
	}
}
