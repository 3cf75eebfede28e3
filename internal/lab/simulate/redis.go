package simulate

import (
	"slices"
	"time"

	"rankcache/internal/plan"
	"rankcache/origin"
)

// redis is a server that does one request after the other, each for what it was measured to cost, in the order in which
// they come.
type redis struct {
	clock     *clock
	free      time.Time // it has nothing more to do
	last      time.Time // a request came
	downUntil time.Time
	lost      []int // of each board, how often a failover has taken changes back
	seconds   []second
	failed    int
}

// second is what Redis did in a second.
type second struct {
	busy     float64 // seconds of CPU
	commands int
	wait     time.Duration // the longest, of a request that came
}

// ask sends a round trip of some commands that takes so many seconds beside the trip itself. done is called with
// whether the answer came in time: Redis does also what nobody waits for any more.
func (r *redis) ask(commands int, cost float64, done func(ok bool)) {
	now := r.clock.now
	if now.Before(r.downUntil) {
		r.clock.after(origin.DefaultTimeout, func() { done(false) })
		return
	}
	idle := now.Sub(r.last).Seconds()
	if r.last = now; r.free.After(now) {
		idle = 0
	}
	begin := r.free
	if begin.Before(now) {
		begin = now
	}
	r.free = begin.Add(seconds(cost + plan.WakeSeconds(1/max(idle, 1e-9))))
	r.count(begin, commands, r.free.Sub(now))
	if r.free.Sub(now) > origin.DefaultTimeout {
		r.failed++
		r.clock.after(origin.DefaultTimeout, func() { done(false) })
		return
	}
	r.clock.at(r.free, func() { done(true) })
}

// update changes a score. Writers wait for as long as it takes.
func (r *redis) update() {
	if r.clock.now.Before(r.downUntil) {
		return // it comes later, which is not simulated
	}
	begin := r.free
	if begin.Before(r.clock.now) {
		begin = r.clock.now
	}
	r.last, r.free = r.clock.now, begin.Add(seconds(plan.CommandRedisSeconds))
	r.count(begin, 1, r.free.Sub(r.clock.now))
}

// count adds a request to the seconds in which it is done.
func (r *redis) count(begin time.Time, commands int, wait time.Duration) {
	s := r.second(r.clock.now)
	s.commands += commands
	s.wait = max(s.wait, wait)
	for at := begin; at.Before(r.free); {
		end := at.Truncate(time.Second).Add(time.Second)
		if end.After(r.free) {
			end = r.free
		}
		r.second(at).busy += end.Sub(at).Seconds()
		at = end
	}
}

func (r *redis) second(at time.Time) *second {
	n := int(at.Sub(newClock().now) / time.Second)
	if n >= len(r.seconds) {
		r.seconds = slices.Grow(r.seconds, n+1-len(r.seconds))[:n+1]
	}
	return &r.seconds[n]
}

// failOver has Redis away for some time, after which it lacks the last changes of some boards.
func (r *redis) failOver(away time.Duration, lossOf []int) {
	r.downUntil = r.clock.now.Add(away)
	r.free = r.downUntil
	for _, b := range lossOf {
		r.lost[b]++
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
