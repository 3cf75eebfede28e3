package replay

import (
	"fmt"
	"time"

	"rankcache"
)

const (
	// behindMost is how long an open board may lack an update that Redis has.
	behindMost = 10 * time.Second
	// aheadMost is in how many readings in a row an open board may have updates
	// that Redis has not.
	aheadMost = 3
)

// audit watches that an open board keeps up with Redis. It belongs to the
// goroutine that reads the totals.
type audit struct {
	behind reading // the oldest reading that the board has not reached
	ahead  int     // readings in a row that the board was ahead of
}

// look takes a reading of Redis with the board's progress before it was asked
// for and after it was answered. dry says that the log has nothing more that was
// written before the reading at hand in behind. It returns a fault that does not
// pass by itself, or nil.
//
// A board without its updates only because Kafka is slow or away has no fault:
// closing it would turn all its readers to Redis.
func (a *audit) look(r reading, before, after rankcache.Progress, dry func(time.Time) bool) *fault {
	if r.seq == 0 {
		return nil // unknown
	}
	if before.Contiguous <= r.seq {
		a.ahead = 0
	} else if a.ahead++; a.ahead >= aheadMost {
		*a = audit{}
		return &fault{fmt.Sprintf("Redis is at update %d, the board at %d: Redis has lost writes or began anew", r.seq, before.Contiguous), true}
	}
	if after.Contiguous >= a.behind.seq {
		a.behind = reading{}
	}
	if a.behind.seq == 0 && after.Contiguous < r.seq {
		a.behind = r
	}
	late := a.behind.seq != 0 && r.asked.Sub(a.behind.asked) >= behindMost
	if !late || after.Highest < a.behind.seq && !dry(a.behind.asked) {
		return nil
	}
	*a = audit{}
	return &fault{fmt.Sprintf("update %d does not come, Redis is at %d", after.Contiguous+1, r.seq), false}
}
