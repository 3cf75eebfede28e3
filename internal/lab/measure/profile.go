// Package measure measures on this machine what the benchmark commands report of
// counting requests and of the profile cache.
package measure

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"time"

	"rankcache/profile"
	"rankcache/wire"
)

// ProfileFigures is the result of [Profiles].
type ProfileFigures struct {
	PageEncodeUs    float64 `json:"page_encode_us"`    // a page of 50 rows: joined, all hits, and encoded
	PageReuseNs     float64 `json:"page_reuse_ns"`     // the check whether a kept page is fresh
	PageReuseAllocs float64 `json:"page_reuse_allocs"` // per check
	BytesPerEntry   float64 `json:"bytes_per_entry"`   // heap of a full cache, by profiles of 150 bytes in it
	HitRatio        float64 `json:"hit_ratio"`         // of pages drawn from a Zipf distribution
	HitRatioLRU     float64 `json:"hit_ratio_lru"`     // of an exact LRU of as many entries
}

const (
	pageRows     = 50
	profileBytes = 150
	encodeRounds = 20_000    // pages
	reuseRounds  = 2_000_000 // checks
	fillBudget   = 64 << 20  // bytes
	fillPages    = 8_000     // of 50 members each, more than the budget holds
	traceSkew    = 1.05
	pageDeadline = 10 * time.Second // so long that every page waits for all its profiles
)

// Profiles measures the profile cache before a service within the process. It
// takes some seconds and some 200 MB; nothing else may run in the process.
func Profiles(ctx context.Context) (ProfileFigures, error) {
	var f ProfileFigures
	for _, part := range []func(context.Context, *ProfileFigures) error{measurePage, measureBytes, measureHits} {
		if err := part(ctx, &f); err != nil {
			return ProfileFigures{}, err
		}
	}
	return f, nil
}

func measurePage(ctx context.Context, f *ProfileFigures) error {
	return withCache(ctx, profile.Options{}, &countingSource{}, func(c *profile.Cache) error {
		members, dst := page(1), make([][]byte, pageRows)
		c.Join(ctx, members, dst)
		var fresh func() bool
		var buf []byte
		f.PageEncodeUs = perRound(encodeRounds, func() {
			_, fresh = c.Join(ctx, members, dst)
			buf = encodePage(buf[:0], members, dst)
		}) / 1e3
		reused := 0
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f.PageReuseNs = perRound(reuseRounds, func() {
			if fresh() {
				reused++
			}
		})
		runtime.ReadMemStats(&after)
		f.PageReuseAllocs = float64((after.Mallocs - before.Mallocs) / reuseRounds) // rounded down, as the testing package does
		if reused != reuseRounds {
			return fmt.Errorf("kept page: fresh in %d of %d checks", reused, reuseRounds)
		}
		return nil
	})
}

func perRound(rounds int, do func()) (ns float64) {
	start := time.Now()
	for range rounds {
		do()
	}
	return float64(time.Since(start).Nanoseconds()) / float64(rounds)
}

// encodePage appends rows as a board's page has them.
func encodePage(dst []byte, members []string, profiles [][]byte) []byte {
	for i, member := range members {
		dst = strconv.AppendInt(append(dst, `{"rank":`...), int64(i+1), 10)
		dst = wire.AppendString(append(dst, `,"member":`...), member)
		dst = wire.AppendScore(append(dst, `,"score":`...), float64(1e6-i))
		dst = append(append(dst, `,"profile":`...), profiles[i]...)
		dst = append(dst, '}', ',')
	}
	return dst
}

func measureBytes(ctx context.Context, f *ProfileFigures) error {
	before := liveHeap()
	source := &countingSource{}
	return withCache(ctx, profile.Options{Budget: fillBudget}, source, func(c *profile.Cache) error {
		dst := make([][]byte, pageRows)
		for n := range fillPages {
			c.Get(ctx, page(n), dst)
		}
		f.BytesPerEntry = float64(liveHeap()-before) / float64(c.Len())
		return nil
	})
}

func measureHits(ctx context.Context, f *ProfileFigures) error {
	return measureTrace(ctx, f, trace{budget: 8 << 20, pages: 40_000, members: 500_000})
}

// trace is pages of members drawn from a Zipf distribution.
type trace struct {
	budget  int64 // of the cache
	pages   int
	members uint64
}

func measureTrace(ctx context.Context, f *ProfileFigures, tr trace) error {
	source := &countingSource{}
	return withCache(ctx, profile.Options{Budget: tr.budget}, source, func(c *profile.Cache) error {
		f.HitRatio = tr.ratio(func(members []string) int {
			before := source.loaded
			c.Get(ctx, members, make([][]byte, pageRows))
			return source.loaded - before
		})
		cache := newLRU(c.Len())
		f.HitRatioLRU = tr.ratio(cache.misses)
		return ctx.Err()
	})
}

// ratio plays the trace, always the same one, and returns the part of the
// lookups in its second half that were hits.
func (tr trace) ratio(misses func(members []string) int) float64 {
	random := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(random, traceSkew, 1, tr.members-1)
	missed := 0
	for n := range tr.pages {
		members := make([]string, pageRows)
		for i := range members {
			members[i] = strconv.FormatUint(1e9+zipf.Uint64(), 10)
		}
		if m := misses(members); n >= tr.pages/2 {
			missed += m
		}
	}
	return 1 - float64(missed)/float64(tr.pages/2*pageRows)
}

// withCache calls do with a running cache.
func withCache(ctx context.Context, opts profile.Options, source profile.Source, do func(*profile.Cache) error) error {
	opts.Deadline = pageDeadline
	c, err := profile.New(opts, source, nil, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	err = do(c)
	cancel()
	return errors.Join(err, <-done)
}

// countingSource has a profile of every member. One page at a time waits for it, so
// its count needs no lock.
type countingSource struct{ loaded int }

func (s *countingSource) Load(_ context.Context, members []string, answers []profile.Answer) error {
	s.loaded += len(members)
	for i, member := range members {
		answers[i].JSON = fmt.Appendf(nil, `{"nick":"nick of %s","avatar":"https://img.example/%0*d.webp"}`, member, profileBytes-64, i)
	}
	return nil
}

// page returns the members of page n. No two pages have a member in common.
func page(n int) []string {
	members := make([]string, pageRows)
	for i := range members {
		members[i] = strconv.Itoa(1e9 + n*pageRows + i)
	}
	return members
}

func liveHeap() int64 {
	runtime.GC()
	runtime.GC() // the second empties sync.Pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// lru is an exact least-recently-used set of members.
type lru struct {
	size   int
	recent *list.List // of members, the latest first
	at     map[string]*list.Element
}

func newLRU(size int) *lru {
	return &lru{size, list.New(), make(map[string]*list.Element, size)}
}

// misses uses the members and returns how many were not there.
func (l *lru) misses(members []string) (n int) {
	for _, member := range members {
		if e, ok := l.at[member]; ok {
			l.recent.MoveToFront(e)
			continue
		}
		n++
		l.at[member] = l.recent.PushFront(member)
		if l.recent.Len() > l.size {
			delete(l.at, l.recent.Remove(l.recent.Back()).(string))
		}
	}
	return n
}
