package replay

import (
	"fmt"
	"time"

	"rankcache"
)

const maxLag = 10 * time.Second // how long an open board may lack an update that Redis has

// lagWatch finds out whether an open board keeps up with Redis's total. It belongs to the totals poller.
type lagWatch struct {
	epoch    int
	behind   reading       // the oldest reading that the board has not reached
	ahead    reading       // a state that the board had not reached when it was read
	odd      string        // the difference at the last look, which may pass by itself
	patience time.Duration // how long updates may be missing
	empty    reading       // the first reading in a row without a member, of a board without a total
}

// check takes a reading of Redis with the board's progress before the request and after the answer. exhausted returns
// whether what the board misses since a time will not come: see [sources.exhausted]. It returns a fault that does not
// pass by itself, or nil.
//
// An update is in Redis before it is in the log. So a total below what had been applied before the request, or none at
// all, can't be lag: Redis has lost writes, or the board was deleted.
//
// A board without its updates only because Kafka is slow or away has no fault:
// closing it would turn all its readers to Redis.
func (w *lagWatch) check(total TotalSource, r reading, before, after rankcache.Progress, exhausted func(since time.Time, after time.Duration) bool) *fault {
	switch {
	case total == TotalNone:
		return w.checkMembers(r, after)
	case r.Seq == 0 && r.Run == 0:
		return new(faultGone("total"))
	case newest(total, before) > r.Seq:
		return new(faultAhead(r.Seq, newest(total, before)))
	}
	if after.Applied() >= w.behind.Seq {
		w.behind = reading{}
	}
	if w.behind.Seq == 0 && after.Applied() < r.Seq {
		w.behind = r
	}
	if w.behind.Seq == 0 || r.requested.Sub(w.behind.requested) < w.patience || !exhausted(w.behind.requested, w.patience) {
		return nil
	}
	return &fault{kind: kindHole, reason: fmt.Sprintf("update %d does not come, Redis is at %d", after.Applied()+1, r.Seq)}
}

// checkState compares the run of a board with Redis's, and the checksum of a proved one at the same seq. A state that
// the board has not reached is compared at a later look. before is the run that the board had before the request.
func (w *lagWatch) checkState(r reading, before uint64, board Board, proved func(rankcache.State, time.Time)) *fault {
	own := board.State()
	odd, kind := w.odd, kindRun
	w.odd = ""
	switch {
	case own.Run == 0 && (r.Run == 0 || r.Seq > 0): // empty: its first update gives it its run
		return nil
	case r.Run > own.Run && r.HasSum && own.HasSum && r.Seq > own.Seq: // its updates tell whether it goes on from here
		return nil
	case r.Run > own.Run:
		return new(faultLater(r.State, own))
	case r.Run < before:
		return new(faultRunLost(r.Run, before))
	case r.Run < own.Run:
		w.odd = faultRunLost(r.Run, own.Run).reason
	case !own.HasSum:
		return nil
	case !r.HasSum:
		w.odd, kind = "something has changed the board in Redis past rankcache", kindPast
	}
	if w.odd != "" { // it counts when it is still so at a second look
		if w.odd != odd {
			return nil
		}
		return &fault{kind: kind, reason: w.odd}
	}
	if w.ahead.Seq == 0 {
		w.ahead = r
	}
	for _, at := range []reading{w.ahead, r} {
		sum, known := board.SumAt(at.Run, at.Seq)
		switch {
		case known && sum != at.Sum:
			return new(faultSum(at.State, sum))
		case known:
			proved(at.State, at.current)
		}
		if own.Seq >= w.ahead.Seq {
			w.ahead = reading{}
		}
	}
	return nil
}

// checkMembers watches a board without a total: only that Redis has it at all.
func (w *lagWatch) checkMembers(r reading, after rankcache.Progress) *fault {
	switch {
	case r.members > 0 || after.Members == 0:
		w.empty = reading{}
	case w.empty.requested.IsZero():
		w.empty = r
	case r.requested.Sub(w.empty.requested) >= maxLag:
		return new(faultGone("member"))
	}
	return nil
}

const maxRest = 1500 * time.Millisecond // the longest pause between two looks at a board at rest

// rest is when a state is read again: of many boards ever more rarely while it rests. The totals poller's.
type rest struct {
	latest rankcache.State
	due    time.Time
	pause  time.Duration
	asked  time.Time // when it was read from Redis last
}

func (p *rest) look(w *lagWatch, r reading, every time.Duration, crowded bool) {
	if !crowded || r.State != p.latest || w.behind.Seq != 0 || w.odd != "" {
		*p = rest{latest: r.State, asked: p.asked}
		return
	}
	p.pause = max(0, min(p.pause+every/4, maxRest-every))
	p.due = r.requested.Add(p.pause + every/2)
}

// Redis as a replica in another region than the writers'. There an update may be in the log before it is in Redis, so
// that a lower state is lag and no fault: a board waits for Redis to come to its state. What still is a fault: another
// sum at a seq that the board remembers, a run that it does not follow, and a lower state at a time at which the
// writing region had the board's already, by the time that its keeper writes ([Config].Reached). That time is also of
// which the ages of boards count.

// mirrorLag is for how long an open board waits for updates that Redis has, while the log has none that are later:
// it is a mirror, which may be behind. Then the board is filled from Redis.
const mirrorLag = time.Minute

// lateError reports that Redis, a replica, has not reached the state that the log has given.
type lateError struct {
	redis rankcache.State
	run   uint64
	seq   uint64
}

func (e *lateError) Error() string {
	return fmt.Sprintf("the replica of Redis is at update %d of run %d, the board at %d of run %d: it is waited for", e.redis.Seq, e.redis.Run, e.seq, e.run)
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
	if !lost {
		return nil
	}
	return disproof(r.State, w.state)
}

// lastSeen is the replication id under which a board was last seen, as it was told up to 10 s before: one that is deleted
// within that time after a failover counts as lost. It belongs to the totals poller.
type lastSeen struct {
	history string // "": Redis does not tell
	run     uint64 // of the board at the last look
	members int
}
