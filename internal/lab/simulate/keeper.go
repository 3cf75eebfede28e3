package simulate

import (
	"slices"
	"time"

	"rankcache/internal/plan"
	"rankcache/origin"
)

// publisher is a keeper: it publishes what it reads, and walks through the rows. Another one takes its place.
type publisher struct {
	*fleet
	dead        bool
	serial      uint64
	publishedAt time.Time
	value       []int // what it read of each board last; nil: nothing
}

// kill ends the keeper. Another one takes over within the lease, if there is one.
func (k *publisher) kill(another bool) {
	k.dead = true
	if another {
		k.clock.after(takesOver, k.start)
	}
}

// takesOver is how long a keeper's lease outlives it.
const takesOver = 2 * time.Second

func (k *publisher) start() {
	k.dead = false
	k.keep()
	k.besides()
	k.walk(k.q.Members[0], func() bool { return !k.dead }, func(_ origin.Kind, n int, cost float64, done func(bool)) { k.redis.ask(n, cost, done) })
}

// keep publishes once, and goes on.
func (k *publisher) keep() {
	if k.dead {
		return
	}
	begun, every := k.clock.now, k.q.StatesEvery
	next := func() { k.clock.after(max(every-k.clock.now.Sub(begun), every/10), k.keep) }
	boards := len(k.redis.lost)
	k.redis.ask(3*boards, float64(boards)*plan.StateSeconds, func(ok bool) {
		read := slices.Clone(k.redis.lost)
		if !ok {
			next()
			return
		}
		k.redis.ask(3, 0, func(ok bool) {
			if ok && !k.dead {
				k.value, k.serial, k.publishedAt = read, k.serial+1, k.clock.now
			}
			next()
		})
	})
}

// besides is what else it asks for: lease, rooms, ping, reports, verdict.
func (k *publisher) besides() {
	if !k.dead {
		k.redis.ask(1, 0, func(bool) {})
		k.clock.after(time.Second/8, k.besides)
	}
}

// walk compares one stretch of rows with Redis, and goes on. rows are there still of the board.
func (f *fleet) walk(rows int, walks func() bool, ask func(origin.Kind, int, float64, func(bool))) {
	stretch := min(plan.StretchRows, rows)
	pause := max(seconds(plan.ShortestWalk), time.Duration(stretch)*time.Second/time.Duration(f.q.AuditRows))
	next := func(bool) {
		if rows -= stretch; rows <= 0 {
			rows = f.q.Members[0]
		}
		f.clock.after(pause, func() { f.walk(rows, walks, ask) })
	}
	if !walks() {
		next(false)
		return
	}
	ask(origin.ForLook, 5, plan.StateSeconds+float64(stretch)*plan.RowSeconds, next)
}
