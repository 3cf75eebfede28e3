package replay

import (
	"fmt"
	"time"

	"rankcache"
)

// Redis as a replica in another region than the writers'. There an update may be in the log before it is in Redis, so
// that a lower state is lag and no fault: a board waits for Redis to come to its state. What still is a fault: another
// sum at a seq that the board remembers, a run that it does not follow, and a lower state at a time at which the
// writing region had the board's already, by the time that its keeper writes ([Config].Reached). That time is also of
// which the ages of boards count.

const (
	clockSkew = 5 * time.Second // by how much the regions' clocks may differ before lag is taken for a loss
	// mirrorLag is for how long an open board waits for updates that Redis has, while the log has none that are later:
	// it is a mirror, which may be behind. Then the board is filled from Redis.
	mirrorLag      = time.Minute
	lookAgainEvery = 200 * time.Millisecond // how often a gate looks whether Redis has come to its board's state
)

// lateError reports that Redis, a replica, has not reached the state that the log has given.
type lateError struct {
	redis rankcache.State
	run   uint64
	seq   uint64
}

func (e *lateError) Error() string {
	return fmt.Sprintf("the replica of Redis is at update %d of run %d, the board at %d of run %d: it is waited for", e.redis.Seq, e.redis.Run, e.seq, e.run)
}

// isReplica returns whether Redis is a replica in another region than the writers'.
func (s *sources) isReplica() bool { return s.reached != nil }

// current returns of which time it is what Redis answers to a request from now on: zero if that is unknown.
func (s *sources) current() time.Time {
	if s.reached == nil {
		return time.Now()
	}
	return s.reached()
}

// surelyOf returns of which time a reading is by this machine's clock, or later: zero if that is unknown.
func (s *sources) surelyOf(t *reading) time.Time {
	if !s.isReplica() {
		return t.requested
	}
	if t.current.IsZero() {
		return t.current
	}
	return t.current.Add(-clockSkew)
}

// late returns by how much a state of Redis is behind the board, nil if it is not. Updates that wait don't count.
func (r *replica) late(t rankcache.State) *lateError {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lateLocked(t)
}

func (r *replica) lateLocked(t rankcache.State) *lateError {
	have := r.board.Progress().Highest
	if !r.sources.isReplica() || t.Run > r.in.run || t.Run == r.in.run && t.Seq >= have {
		return nil
	}
	return &lateError{t, r.in.run, have}
}

// lateWatch finds out whether Redis is late for ever, as it lost what the board has. The totals poller's.
type lateWatch struct {
	epoch int
	state rankcache.State // of the board
	since time.Time       // it has that, by this machine's clock; zero: Redis is not late
}

// look takes a look at a late Redis, and returns the fault, if any, after maxLate where Redis's time is unknown.
func (w *lateWatch) look(late *lateError, r reading, epoch int, maxLate time.Duration) *fault {
	if w.since.IsZero() || w.epoch != epoch || !r.Before(w.state) {
		*w = lateWatch{epoch, rankcache.State{Run: late.run, Seq: late.seq}, time.Now()}
		return nil
	}
	lost := r.current.Sub(w.since) > clockSkew
	if r.current.IsZero() {
		lost = r.requested.Sub(w.since) > maxLate
	}
	switch {
	case !lost:
		return nil
	case r.Run == 0:
		return new(faultGone("run"))
	case r.Run < w.state.Run:
		return new(faultRunLost(r.Run, w.state.Run))
	}
	return new(faultAhead(r.Seq, w.state.Seq))
}

// learnLate gives a board a reading of a replica behind it: at a remembered state they are compared.
func (t *totalsPoller) learnLate(p *probe, r reading, late *lateError) *fault {
	f := p.feed
	if why := f.late.look(late, r, p.epoch, t.maxStale); why != nil {
		return why
	}
	switch sum, known := f.replica.board.SumAt(r.Run, r.Seq); {
	case !known || !r.HasSum:
	case sum != r.Sum:
		return new(faultSum(r.State, sum))
	case f.replica.publishCurrent(r.current):
		f.sources.proved(r.State, r.current)
	}
	return nil
}
