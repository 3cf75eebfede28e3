package profile

import (
	"context"
	"time"

	"rankcache"
)

// Join sets dst[i] to the profile of members[i], a JSON object that nobody may
// change, or to nil when there is none. It keeps 64 KiB of the cache's memory from
// being given back: clone what is kept for long. Join waits for profiles that have
// to be loaded, but not beyond ctx or [Options].Deadline; missing says how many of
// the nils it does not know about yet, and these go on being loaded. dst is as long
// as members; neither is kept.
//
// fresh is kept with what is encoded from dst, and asked before that is used
// again, by any number of goroutines: false once one of the profiles was
// refreshed, has arrived, was dropped, or has to be looked at again. It does not
// allocate.
func (c *Cache) Join(ctx context.Context, members []string, dst [][]byte) (missing int, fresh func() bool) {
	s := newStamp(len(members))
	missing = c.join(ctx, members, dst, s)
	return missing, func() bool { return s.fresh(&c.changes, c.now()) }
}

// Get is [Cache.Join] for an answer that is not kept. It does not allocate when
// all profiles are there and fresh.
func (c *Cache) Get(ctx context.Context, members []string, dst [][]byte) (missing int) {
	return c.join(ctx, members, dst, nil)
}

// Warm has the profiles of members loaded behind the pages' backs, as far as
// they are not cached and fresh. It does not wait, and keeps no slice.
func (c *Cache) Warm(members []string) {
	now := c.now()
	var wanted []string
	for _, member := range members {
		if _, state := c.look(c.key(member), member, now); state != fresh && rankcache.CheckMember(member) == nil {
			wanted = append(wanted, member)
		}
	}
	c.refresh(wanted)
}

// Drop forgets the member's profile and what is being loaded of it, so that the
// next page asks the source anew, if need be beside the call that still brings
// what was forgotten. It reports whether there was anything.
func (c *Cache) Drop(member string) bool {
	key := c.key(member)
	c.mu.Lock()
	defer c.mu.Unlock()
	f, flying := c.flights[member]
	if flying {
		f.dropped = true // what it brings may be what is to be forgotten
		delete(c.flights, member)
	}
	stored := c.store.Load().remove(key, member)
	c.changes.bump(key)
	return flying || stored
}

// freshness is what a lookup found.
type freshness int

const (
	absent freshness = iota
	stale
	fresh
)

func (c *Cache) look(key uint64, member string, now time.Duration) (entry, freshness) {
	e, ok := c.store.Load().get(key, member)
	switch {
	case !ok || now >= c.hard(e):
		return entry{}, absent
	case now >= e.soft():
		return e, stale
	}
	return e, fresh
}

// join looks every member up and then sees to those that are not there or not
// fresh. s is nil when nobody will ask for freshness.
func (c *Cache) join(ctx context.Context, members []string, dst [][]byte, s *stamp) int {
	now := c.now()
	var t tally
	var old []string // stale members
	var gaps []int   // rows whose profile is absent
	for i, member := range members {
		key := c.key(member)
		s.see(i, key, c.changes.count(key))
		e, state := c.look(key, member, now)
		if state == absent {
			dst[i] = nil
			gaps = append(gaps, i)
			continue
		}
		dst[i] = e.profile()
		t.count(e, state)
		if state == stale {
			old = append(old, member)
			s.again(now + c.opts.Retry)
		} else {
			s.again(e.soft())
		}
	}
	c.metrics.looked(t, len(gaps))
	c.refresh(old)
	return c.fill(ctx, gaps, members, dst, s)
}
