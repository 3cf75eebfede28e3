package replay

import (
	"fmt"
	"time"

	"rankcache"
)

// behindMost is how long an open board may lack an update that Redis has.
const behindMost = 10 * time.Second

// watch sees to it that an open board keeps up with Redis's total. It belongs to
// the goroutine that reads the totals.
type watch struct {
	epoch  int
	behind reading // the oldest reading that the board has not reached
	empty  reading // the first reading in a row without a member, where no total tells
}

// look takes a reading of Redis with the board's progress before it was asked
// for and after it was answered. dry says that the log has nothing more that was
// written before the reading at hand in behind. It returns a fault that does not
// pass by itself, or nil.
//
// An update is in Redis before it is in the log. So a total below what had been
// applied when it was asked for, or none at all, is no matter of lag: Redis has
// lost writes, or the board was deleted.
//
// A board without its updates only because Kafka is slow or away has no fault:
// closing it would turn all its readers to Redis.
func (w *watch) look(total Total, r reading, before, after rankcache.Progress, dry func(time.Time) bool) *fault {
	switch {
	case total == TotalNone:
		return w.lookAtMembers(r, after)
	case r.seq == 0:
		return new(gone("total"))
	case newest(total, before) > r.seq:
		return new(aheadOf(r.seq, newest(total, before)))
	}
	if after.Applied() >= w.behind.seq {
		w.behind = reading{}
	}
	if w.behind.seq == 0 && after.Applied() < r.seq {
		w.behind = r
	}
	late := w.behind.seq != 0 && r.asked.Sub(w.behind.asked) >= behindMost
	if !late || after.Highest < w.behind.seq && !dry(w.behind.asked) {
		return nil
	}
	return &fault{kind: kindHole, reason: fmt.Sprintf("update %d does not come, Redis is at %d", after.Applied()+1, r.seq)}
}

// lookAtMembers watches a board without a total: only that Redis has it at all.
func (w *watch) lookAtMembers(r reading, after rankcache.Progress) *fault {
	switch {
	case r.members > 0 || after.Members == 0:
		w.empty = reading{}
	case w.empty.asked.IsZero():
		w.empty = r
	case r.asked.Sub(w.empty.asked) >= behindMost:
		return new(gone("member"))
	}
	return nil
}

// newest returns the highest total that the board has seen proof of.
func newest(total Total, p rankcache.Progress) uint64 {
	if total == TotalSeq {
		return p.Highest
	}
	return p.Applied()
}
