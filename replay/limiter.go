package replay

import "time"

// logEvery is the shortest time between two log lines of one kind.
const logEvery = time.Second

// limiter lets one of many log lines through per second, and counts the others.
// It belongs to one goroutine.
type limiter struct {
	last    time.Time
	skipped int
}

// allow says whether to log now, and how many lines were skipped before.
func (l *limiter) allow(now time.Time) (skipped int, ok bool) {
	if now.Sub(l.last) < logEvery {
		l.skipped++
		return 0, false
	}
	skipped, l.skipped, l.last = l.skipped, 0, now
	return skipped, true
}
