package profile

import (
	"context"
	"errors"
	"log/slog"
	"time"
	"unsafe"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
)

// Cache answers with members' profiles. Concurrent use is safe, also when Run is not running and nothing is loaded.
type Cache struct {
	clock
	opts    Options
	store   *store
	loader  *loader
	metrics *metrics
}

// New returns a cache before source; it starts nothing. A nil logger logs nothing, a nil registerer registers nothing.
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

// Run loads missing profiles until ctx ends, cancels its calls and returns nil. Cached ones stay until [Cache.Close].
func (c *Cache) Run(ctx context.Context) error {
	if err := c.store.open(); err != nil {
		return err
	}
	return c.loader.run(ctx)
}

// Close frees the memory after Run has returned, or if it never ran. No other method may run then or later.
func (c *Cache) Close() { c.store.close() }

// Join sets dst[i] to the profile of members[i], a JSON object that must not be modified, or to nil when there is none.
// A profile keeps 64 KiB of the cache's memory alive: clone profiles that are kept for long. Join waits for profiles
// that have to be loaded, but not beyond ctx or [Options].Deadline; missing counts the nils whose load has not
// finished, which continues. dst is as long as members; neither is kept.
//
// The caller keeps fresh with what it encodes from dst and calls it, from any goroutine, before using that again. It
// returns false once one of the profiles was refreshed, loaded or dropped, or is due for another lookup. It does not
// allocate.
func (c *Cache) Join(ctx context.Context, members []string, dst [][]byte) (missing int, fresh func() bool) {
	s := newStamp(len(members))
	missing = c.join(ctx, members, dst, s)
	return missing, func() bool { return s.fresh(&c.store.revisions, c.now()) }
}

// Get is [Cache.Join] for an answer that is not kept. It does not allocate when all profiles are cached and fresh.
func (c *Cache) Get(ctx context.Context, members []string, dst [][]byte) (missing int) {
	return c.join(ctx, members, dst, nil)
}

// Warm starts loading missing profiles, at lower priority than pages. It does not wait, and keeps no slice.
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

// Drop removes the member's profile and discards the result of a load in progress, so that the next page loads it
// again, if need be in a second call beside the first. It reports whether there was anything to remove.
func (c *Cache) Drop(member string) bool { return c.loader.drop(member) }

// Len counts the cached profiles, for measurements: it visits every one of them.
func (c *Cache) Len() int { return c.store.entries() }

// join looks up every member, refreshes stale profiles and waits for absent ones. s is nil if no page is kept.
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

type clock struct{ start time.Time } // gives times as durations since the cache was made: 8 bytes, and monotonic

func (c clock) now() time.Duration { return time.Since(c.start) }

// entry is a cached profile or its absence: one unchanging block without pointers: header, member's id, JSON.
type entry struct{ head *header }

// header is the fixed part of an entry's block, 12 bytes. Its expiry has 40 bits of ms, 34 years.
type header struct {
	version uint32 // of the flight that loaded it, see newer
	softLow uint32 // low 32 bits of the soft expiry
	json    uint16 // length; 0 when the service does not know the member
	member  uint8  // length
	softTop uint8  // high 8 bits of the soft expiry
}

const (
	headerLen = int(unsafe.Sizeof(header{}))
	maxJSON   = 1<<16 - 1 // the longest profile that an entry can hold, in bytes
)

func newEntry(version uint32, softExpiry time.Duration, member string, json []byte) entry {
	size := headerLen + len(member) + len(json)
	words := make([]uint32, wordsOf(size)) // not bytes, which need not be aligned
	text := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), size)[headerLen:]
	copy(text[copy(text, member):], json)
	ms := softExpiry.Milliseconds()
	h := (*header)(unsafe.Pointer(&words[0]))
	*h = header{version: version, softLow: uint32(ms), softTop: uint8(ms >> 32), json: uint16(len(json)), member: uint8(len(member))}
	return entry{h}
}

func (e entry) size() int {
	if e.head == nil {
		return 0
	}
	return headerLen + int(e.head.member) + int(e.head.json)
}

func (e entry) words() int { return wordsOf(e.size()) }

func wordsOf(size int) int { return (size + wordBytes - 1) / wordBytes }

func (e entry) cost() int64 {
	bytes := wordBytes * int64(e.words())
	return slotCost + bytes + bytes/spareShare
}

// newer reports whether e was requested after f. Versions may wrap.
func (e entry) newer(f entry) bool { return int32(e.head.version-f.head.version) > 0 }

// softExpiry is when the entry is no longer fresh.
func (e entry) softExpiry() time.Duration {
	return time.Duration(int64(e.head.softTop)<<32|int64(e.head.softLow)) * time.Millisecond
}

// is reports whether this is the entry of member, and not one whose key has the same hash.
func (e entry) is(member string) bool { return e.head != nil && e.member() == member }

func (e entry) member() string {
	return unsafe.String((*byte)(unsafe.Add(unsafe.Pointer(e.head), headerLen)), int(e.head.member))
}

// profile returns the JSON, nil for an unknown member. Its capacity is its length, so that an append copies.
func (e entry) profile() []byte {
	if e.head.json == 0 {
		return nil
	}
	return e.text(int(e.head.member), int(e.head.json))
}

// text returns n bytes of what follows the header, from index start.
func (e entry) text(start, n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(e.head), headerLen+start)), n)
}
