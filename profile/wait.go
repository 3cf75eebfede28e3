package profile

import (
	"context"
	"time"

	"rankcache"
)

// ride is one row's wait for a flight.
type ride struct {
	row   int
	f     *flight
	limit time.Duration // when the row is answered without its profile
}

// fill waits for the profiles of the rows in gaps and returns how many are still
// missing.
func (c *Cache) fill(ctx context.Context, gaps []int, members []string, dst [][]byte, s *stamp) (missing int) {
	if len(gaps) == 0 {
		return 0
	}
	rides, missing := c.embark(gaps, members, dst, s)
	timer := time.NewTimer(c.opts.Deadline)
	defer timer.Stop()
	for _, r := range rides {
		if !c.arrived(ctx, r, timer) || r.f.value.head == nil {
			missing++
			continue
		}
		dst[r.row] = r.f.value.profile() // never from the store again, which may have refused it
		s.see(r.row, r.f.key, r.f.count)
		s.again(r.f.value.soft())
	}
	if missing > 0 {
		s.again(c.now() + c.opts.Retry)
		c.metrics.missing.Add(float64(missing))
	}
	return missing
}

// embark finds or begins a flight for every gap, all new ones in one call, and
// returns the rows to wait for and how many are refused.
//
// A flight may land between a page's lookup and its coming here: the page found
// nothing in the store, and would find no flight either, and begin a second load
// of what has just been loaded. Flights are stored and taken off the map in one
// go under mu, so looking at the store again under mu settles it.
func (c *Cache) embark(gaps []int, members []string, dst [][]byte, s *stamp) (rides []ride, refused int) {
	now := c.now()
	var begun []*flight
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, row := range gaps {
		if rankcache.CheckMember(members[row]) != nil {
			continue // nobody's id: there is no profile, and the service is not asked
		}
		if c.flights[members[row]] == nil && c.landedMeanwhile(row, members[row], now, dst, s) {
			continue
		}
		var f *flight
		if f, begun = c.board(members[row], now, begun); f == nil {
			refused++
			continue
		}
		rides = append(rides, ride{row: row, f: f})
	}
	c.depart(begun, now, false)
	for i := range rides {
		rides[i].limit = c.hurry(rides[i].f.call, now) + c.opts.Deadline
	}
	return rides, refused
}

func (c *Cache) landedMeanwhile(row int, member string, now time.Duration, dst [][]byte, s *stamp) bool {
	key := c.key(member)
	s.see(row, key, c.changes.count(key))
	e, state := c.look(key, member, now)
	if state == absent {
		return false
	}
	dst[row] = e.profile()
	s.again(max(e.soft(), now+c.opts.Retry))
	return true
}

// hurry makes a page's call of one that was queued behind the pages' backs, and
// returns when the first page began to wait for it. Cache.mu is held.
func (c *Cache) hurry(k *call, now time.Duration) time.Duration {
	if k.background {
		k.background = false
		k.begun = now
		if !k.taken {
			c.queue.push(k) // a second time: the first to come to it takes it
		}
	}
	return k.begun
}

func (c *Cache) arrived(ctx context.Context, r ride, timer *time.Timer) bool {
	if r.f.call.landed() {
		return true
	}
	left := r.limit - c.now()
	if left <= 0 {
		return false
	}
	timer.Reset(left)
	select {
	case <-r.f.call.done:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}
