package replay

import (
	"fmt"
	"time"
)

// A board that something has changed past rankcache so often within a while is left to Redis for as long: each time it
// was wrong until that was noticed, and each sidecar has read it whole.
const (
	restAfter = 3
	restFor   = 10 * time.Minute
)

// pastWrites tells whether a board is left to Redis. It belongs to the goroutine of its gate.
type pastWrites struct {
	at    [restAfter]time.Time // the last times, in a ring
	next  int
	until time.Time // zero before the first
}

// begins counts a fault for which the board is filled again, and reports whether it is left to Redis from now on.
func (r *pastWrites) begins(why *fault, now time.Time) bool {
	if why.kind != kindPast || now.Before(r.until) {
		return false
	}
	r.at[r.next] = now
	r.next = (r.next + 1) % restAfter
	first := r.at[r.next]
	if first.IsZero() || now.Sub(first) > restFor {
		return false
	}
	r.at, r.until = [restAfter]time.Time{}, now.Add(restFor)
	return true
}

func (r *pastWrites) reason() string {
	return fmt.Sprintf("it differed from Redis %d times within %v, as something changes it past rankcache: Redis answers until %s",
		restAfter, restFor, r.until.UTC().Format(time.TimeOnly+" UTC"))
}
