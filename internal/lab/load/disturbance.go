package load

import (
	"slices"
	"sort"
	"time"
)

// span is a time, in ns of the monotonic clock.
type span struct{ from, to int64 }

// Disturbance is when other programs had the server's core, in order.
type Disturbance []span

// disturbs is for how long another program must have had the core while a request was under way,
// so that the request counts as held up.
const disturbs = int64(50 * time.Microsecond)

// during returns for how long of a time others had the core.
func (d Disturbance) during(s span) (total int64) {
	for i := sort.Search(len(d), func(i int) bool { return d[i].to > s.from }); i < len(d) && d[i].from < s.to; i++ {
		total += min(d[i].to, s.to) - max(d[i].from, s.from)
	}
	return total
}

// Undisturbed returns the result of a paced run without the requests that other programs held up,
// and how many these are.
func (r *Result) Undisturbed(others Disturbance) (rest *Result, heldUp int) {
	rest = &Result{Window: r.Window}
	for _, a := range r.answers {
		if others.during(a) >= disturbs {
			heldUp++
			continue
		}
		rest.latencies = append(rest.latencies, time.Duration(a.to-a.from))
	}
	rest.Requests = len(rest.latencies)
	slices.Sort(rest.latencies)
	return rest, heldUp
}
