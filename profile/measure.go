package profile

import (
	"container/list"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strconv"
	"time"

	"rankcache/wire"
)

// Figures is what [Measure] finds.
type Figures struct {
	PageEncodeUs    float64 `json:"page_encode_us"`    // a page of 50 rows: joined, all hits, and encoded
	PageReuseNs     float64 `json:"page_reuse_ns"`     // the same page kept: is it fresh?
	PageReuseAllocs float64 `json:"page_reuse_allocs"` // per look
	BytesPerEntry   float64 `json:"bytes_per_entry"`   // heap of a full cache, by profiles of 150 bytes in it
	HitRatio        float64 `json:"hit_ratio"`         // of pages drawn from a Zipf distribution
	HitRatioLRU     float64 `json:"hit_ratio_lru"`     // of an exact LRU of as many entries
}

// What is measured.
const (
	measuredRows    = 50
	measuredProfile = 150       // bytes
	encodeRounds    = 20_000    // pages
	reuseRounds     = 2_000_000 // looks
	fillBudget      = 64 << 20  // bytes
	fillPages       = 8_000     // of 50 members each, more than the budget holds
	traceSkew       = 1.05
	measureDeadline = 10 * time.Second // nothing is answered without its profiles
)

// Measure runs the package's benchmark against a service within the process.
// It takes some seconds and some 200 MB, and expects to be alone in its process.
func Measure(ctx context.Context) (Figures, error) {
	var f Figures
	for _, part := range []func(context.Context, *Figures) error{measurePage, measureBytes, measureHits} {
		if err := part(ctx, &f); err != nil {
			return Figures{}, err
		}
	}
	return f, nil
}

func measurePage(ctx context.Context, f *Figures) error {
	return measured(ctx, Options{}, &measuredSource{}, func(c *Cache) error {
		members, dst := page(1), make([][]byte, measuredRows)
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
			return fmt.Errorf("kept page: fresh in %d of %d looks", reused, reuseRounds)
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

func measureBytes(ctx context.Context, f *Figures) error {
	before := liveHeap()
	source := &measuredSource{}
	return measured(ctx, Options{Budget: fillBudget}, source, func(c *Cache) error {
		dst := make([][]byte, measuredRows)
		for n := range fillPages {
			c.Get(ctx, page(n), dst)
		}
		f.BytesPerEntry = float64(liveHeap()-before) / float64(c.store.Load().entries())
		return nil
	})
}

func measureHits(ctx context.Context, f *Figures) error {
	return measureTrace(ctx, f, trace{budget: 8 << 20, pages: 40_000, members: 500_000})
}

// trace is pages of members drawn from a Zipf distribution.
type trace struct {
	budget  int64 // of the cache
	pages   int
	members uint64
}

func measureTrace(ctx context.Context, f *Figures, tr trace) error {
	source := &measuredSource{}
	return measured(ctx, Options{Budget: tr.budget}, source, func(c *Cache) error {
		f.HitRatio = tr.ratio(func(members []string) int {
			before := source.loaded
			c.Get(ctx, members, make([][]byte, measuredRows))
			return source.loaded - before
		})
		cache := newLRU(c.store.Load().entries())
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
		members := make([]string, measuredRows)
		for i := range members {
			members[i] = strconv.FormatUint(1e9+zipf.Uint64(), 10)
		}
		if m := misses(members); n >= tr.pages/2 {
			missed += m
		}
	}
	return 1 - float64(missed)/float64(tr.pages/2*measuredRows)
}

// measured calls do with a cache that runs.
func measured(ctx context.Context, opts Options, source Source, do func(*Cache) error) error {
	opts.Deadline = measureDeadline
	c, err := New(opts, source, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return err
	}
	if err := c.open(); err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- c.serve(ctx) }()
	err = do(c)
	cancel()
	<-done
	return err
}

// measuredSource knows everybody. One page at a time waits for it, so its count
// needs no lock.
type measuredSource struct{ loaded int }

func (s *measuredSource) Load(_ context.Context, members []string, answers []Answer) error {
	s.loaded += len(members)
	for i, member := range members {
		answers[i].JSON = fmt.Appendf(nil, `{"nick":"nick of %s","avatar":"https://img.example/%0*d.webp"}`, member, measuredProfile-64, i)
	}
	return nil
}

// page returns the members of the n-th page of many without a common one.
func page(n int) []string {
	members := make([]string, measuredRows)
	for i := range members {
		members[i] = strconv.Itoa(1e9 + n*measuredRows + i)
	}
	return members
}

func liveHeap() int64 {
	runtime.GC()
	runtime.GC() // sync.Pools are emptied by the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// lru is an exact least-recently-used set of members.
type lru struct {
	size  int
	order *list.List // of members, the latest first
	at    map[string]*list.Element
}

func newLRU(size int) *lru {
	return &lru{size, list.New(), make(map[string]*list.Element, size)}
}

// misses uses the members and returns how many were not there.
func (l *lru) misses(members []string) (n int) {
	for _, member := range members {
		if e, ok := l.at[member]; ok {
			l.order.MoveToFront(e)
			continue
		}
		n++
		l.at[member] = l.order.PushFront(member)
		if l.order.Len() > l.size {
			delete(l.at, l.order.Remove(l.order.Back()).(string))
		}
	}
	return n
}
