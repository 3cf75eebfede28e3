package profile

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
)

// Cache answers with the profiles of members. All methods may be called
// concurrently, also before Run and after it, when nothing is loaded.
type Cache struct {
	clock
	opts    Options
	store   *store
	loader  *loader
	metrics *metrics
}

// New returns a cache before source. It starts nothing; until [Cache.Run] is
// running, it knows no profile. A nil logger logs nothing, a nil registerer
// registers nothing.
func New(opts Options, source Source, log *slog.Logger, reg prometheus.Registerer) (*Cache, error) {
	opts = opts.withDefaults()
	if err := opts.check(); err != nil {
		return nil, err
	}
	if source == nil {
		return nil, errors.New("a profile cache needs a source")
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	m := newMetrics(reg)
	c := &Cache{clock: clock{time.Now()}, opts: opts, metrics: m, store: newStore(opts, m.evictions.Inc)}
	c.loader = newLoader(c.clock, opts, c.store, newGuardedSource(source, opts.CallTimeout, log, m), m)
	registerGauges(reg, c)
	return c, nil
}

// Run loads missing profiles until ctx ends, and then returns nil. Calls in
// progress are cancelled. Cached profiles stay readable until [Cache.Close].
func (c *Cache) Run(ctx context.Context) error {
	if err := c.store.open(); err != nil {
		return err
	}
	return c.loader.run(ctx)
}

// Close frees the memory after Run has returned, or if it never ran. No other
// method may be running or be called afterwards.
func (c *Cache) Close() { c.store.close() }

// Join sets dst[i] to the profile of members[i], a JSON object that must not be
// modified, or to nil when there is none. A profile keeps 64 KiB of the cache's
// memory alive: clone profiles that are kept for long. Join waits for profiles that have to
// be loaded, but not beyond ctx or [Options].Deadline; missing counts the nils
// whose load has not finished, which continues. dst is as long as members; neither
// is kept.
//
// The caller keeps fresh with what it encodes from dst and calls it, from any
// goroutine, before using that again. It returns false once one of the profiles
// was refreshed, loaded or dropped, or is due for another lookup. It does not
// allocate.
func (c *Cache) Join(ctx context.Context, members []string, dst [][]byte) (missing int, fresh func() bool) {
	s := newStamp(len(members))
	missing = c.join(ctx, members, dst, s)
	return missing, func() bool { return s.fresh(&c.store.revisions, c.now()) }
}

// Get is [Cache.Join] for an answer that is not kept. It does not allocate when
// all profiles are cached and fresh.
func (c *Cache) Get(ctx context.Context, members []string, dst [][]byte) (missing int) {
	return c.join(ctx, members, dst, nil)
}

// Warm starts loading the profiles of members that are not cached and fresh, at
// lower priority than pages. It does not wait, and keeps no slice.
func (c *Cache) Warm(members []string) {
	now := c.now()
	var wanted []string
	for _, member := range members {
		if _, state := c.store.lookup(c.store.key(member), member, now); state != fresh && rankcache.CheckMember(member) == nil {
			wanted = append(wanted, member)
		}
	}
	c.loader.refresh(wanted)
}

// Drop removes the member's profile and discards the result of a load in
// progress, so that the next page loads it again, if need be in a second call
// beside the first. It reports whether there was anything to remove.
func (c *Cache) Drop(member string) bool { return c.loader.drop(member) }

// Len counts the cached profiles, for measurements: it visits every one of them.
func (c *Cache) Len() int { return c.store.entries() }

// join looks up every member, starts refreshes of stale profiles and waits for
// absent ones. s is nil when the caller keeps no page.
func (c *Cache) join(ctx context.Context, members []string, dst [][]byte, s *stamp) int {
	now := c.now()
	var t tally
	var staleMembers []string
	var absentRows []int
	for i, member := range members {
		key := c.store.key(member)
		s.record(i, key, c.store.revisions.of(key))
		e, state := c.store.lookup(key, member, now)
		if state == absent {
			dst[i] = nil
			absentRows = append(absentRows, i)
			continue
		}
		dst[i] = e.profile()
		t.count(e, state)
		if state == stale {
			staleMembers = append(staleMembers, member)
			s.recheckAt(now + c.opts.Retry)
		} else {
			s.recheckAt(e.softExpiry())
		}
	}
	c.metrics.looked(t, len(absentRows))
	c.loader.refresh(staleMembers)
	return c.loader.wait(ctx, absentRows, members, dst, s)
}
