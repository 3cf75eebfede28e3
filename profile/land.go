package profile

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	// keepRefused is how long a profile that the cache refused is kept with its
	// flight. It bounds the loads of a hot page's member that is not admitted.
	keepRefused = 2 * time.Second
	// flightCost is what a lingering flight takes beside its entry.
	flightCost = 256
	// lingerShare is the part of the budget that lingering flights may take.
	lingerShare = 1.0 / 32
	sweepEvery  = time.Second
)

// arrival is what a flight brings: an item, or nothing when the load failed.
type arrival struct {
	f *flight
	item
}

// arrivals makes entries of the answers, before the lock is taken.
func (c *Cache) arrivals(flights []*flight, answers []Answer, asked time.Duration, err error) []arrival {
	list := make([]arrival, len(flights))
	for i, f := range flights {
		list[i] = arrival{f: f, item: item{key: f.key}}
		switch {
		case err != nil:
		case answers[i].Err != nil:
			c.metrics.badProfile(answers[i].Err)
		case len(answers[i].JSON) > maxJSON:
			c.metrics.badProfile(bad(KindSize, "%d bytes", len(answers[i].JSON)))
		default:
			list[i].e = newEntry(f.version, asked+c.ttl(answers[i].JSON), f.member, answers[i].JSON)
		}
	}
	return list
}

func (c *Cache) ttl(json []byte) time.Duration {
	ttl := c.opts.TTL
	if len(json) == 0 {
		ttl = c.opts.NegativeTTL
	}
	return ttl - time.Duration(rand.Float64()*float64(ttl)/10)
}

// land stores what has arrived, takes the flights off the map and lets the pages
// go on, in this order and as one step for whoever holds mu.
func (c *Cache) land(calls []*call, list []arrival) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	refused := c.keep(list)
	for i, a := range list {
		a.f.value, a.f.cost = a.e, a.e.size()+flightCost
		switch {
		case a.f.dropped: // not on the map any more; its page is to be joined again
			a.f.count = c.changes.count(a.key) - 1
		case a.e.head == nil:
			c.linger(a.f, now+c.opts.Retry)
		case refused[i]:
			a.f.count = c.changes.count(a.key)
			c.linger(a.f, now+keepRefused)
		default:
			a.f.count = c.changes.count(a.key)
			delete(c.flights, a.f.member)
		}
	}
	for _, k := range calls {
		k.flights = nil // one that lingers would hold them all
		close(k.done)
	}
}

// keep puts what arrived into the store, counts the changes and says which of
// the list the store refused. All are counted before any count is noted: two
// members of one page may share a group, and its page would never look fresh
// to the one that was counted first.
func (c *Cache) keep(list []arrival) (refused []bool) {
	var items []item
	var index []int
	for i, a := range list {
		if a.e.head != nil && !a.f.dropped {
			items, index = append(items, a.item), append(index, i)
		}
	}
	refused = make([]bool, len(list))
	c.store.Load().put(items, func(i int) { refused[index[i]] = true })
	for _, it := range items {
		c.changes.bump(it.key)
	}
	return refused
}

// linger leaves a landed flight on the map, unless the lingering ones take too
// much already.
func (c *Cache) linger(f *flight, until time.Duration) {
	if float64(c.lingered+f.cost) > lingerShare*float64(c.opts.Budget) {
		delete(c.flights, f.member)
		return
	}
	f.until = until
	c.lingered += f.cost
	c.lingers = append(c.lingers, f)
}

// sweep takes flights off the map that have lingered long enough.
func (c *Cache) sweep(ctx context.Context) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			c.leave(c.now())
		}
	}
}

func (c *Cache) leave(now time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	stay := c.lingers[:0]
	for _, f := range c.lingers {
		if now < f.until {
			stay = append(stay, f)
			continue
		}
		c.lingered -= f.cost
		if c.flights[f.member] == f { // not dropped, nor followed by another
			delete(c.flights, f.member)
		}
	}
	clear(c.lingers[len(stay):])
	c.lingers = stay
}

// shut ends every wait when nothing will be loaded any more.
func (c *Cache) shut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for calls := c.queue.take(c.opts.Batch); len(calls) > 0; calls = c.queue.take(c.opts.Batch) {
		for _, k := range calls {
			for _, f := range k.flights {
				delete(c.flights, f.member)
			}
			close(k.done)
		}
	}
}
