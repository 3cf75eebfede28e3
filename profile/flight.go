package profile

import (
	"strings"
	"time"
)

// flight is the one load of a member, whoever waits for it. When it has landed
// it leaves Cache.flights, or lingers there for a while when its value is not in
// the store: refused by the cache, so that the next pages need no load, or
// failed, so that they do not try at once again.
type flight struct {
	member  string
	key     uint64
	version uint32
	call    *call
	dropped bool // guarded by Cache.mu: its value must not be kept

	// Set before the call is done, not changed afterwards.
	value entry         // none when the load failed
	count uint32        // of the member's group when value was stored
	until time.Duration // how long it lingers
	cost  int           // bytes while it lingers
}

// call is the flights that are asked for together, at most a batch.
type call struct {
	flights []*flight
	done    chan struct{} // closed when all of them have landed
	// begun is when the first page began to wait: pages that come later do not
	// wait a whole deadline again for a service that hangs. Guarded by Cache.mu.
	begun time.Duration
	// background calls wait behind those of pages; queued ones are counted in
	// the queue; taken ones are with a worker. Guarded by Cache.mu.
	background, queued, taken bool
}

func (k *call) landed() bool {
	select {
	case <-k.done:
		return true
	default:
		return false
	}
}

// board returns the flight that brings the member: one that is under way or
// lingers, or a new one, which it adds to begun and which [Cache.depart] then
// sends off. It is nil when too many are waiting. Cache.mu is held.
func (c *Cache) board(member string, now time.Duration, begun []*flight) (*flight, []*flight) {
	if f := c.flights[member]; f != nil && (f.call == nil || !f.call.landed() || now < f.until) { // no call: boarded a moment ago
		return f, begun
	}
	if c.closed || c.queue.members+len(begun) >= c.opts.Pending {
		c.metrics.overflow.Inc()
		return nil, begun
	}
	c.version++
	f := &flight{member: strings.Clone(member), key: c.key(member), version: c.version}
	c.flights[f.member] = f
	return f, append(begun, f)
}

// depart queues new flights as calls of at most a batch. Cache.mu is held, and
// has been since they were boarded.
func (c *Cache) depart(begun []*flight, now time.Duration, background bool) {
	for len(begun) > 0 {
		n := min(len(begun), c.opts.Batch)
		k := &call{flights: begun[:n:n], done: make(chan struct{}), begun: now, background: background}
		for _, f := range k.flights {
			f.call = k
		}
		c.queue.push(k)
		begun = begun[n:]
	}
}

// refresh sends members off behind the pages' backs.
func (c *Cache) refresh(members []string) {
	if len(members) == 0 {
		return
	}
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	var begun []*flight
	for _, member := range members {
		_, begun = c.board(member, now, begun)
	}
	c.depart(begun, now, true)
}
