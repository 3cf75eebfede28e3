package hotkey

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"rankcache"
)

// The cost of one reader's request while GOMAXPROCS readers count in parallel
// is ns/op times GOMAXPROCS.
func BenchmarkCount(b *testing.B) {
	b.Run("boards=5000", func(b *testing.B) { benchmarkCount(b, boardNames("1", 5000)) })
	b.Run("one", func(b *testing.B) { benchmarkCount(b, boardNames("1", 1)) })
	b.Run("flood=1000000", func(b *testing.B) { benchmarkCount(b, floodNames(1_000_000)) })
}

func benchmarkCount(b *testing.B, names []rankcache.BoardID) {
	c := newCounters()
	var readers atomic.Int64
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		i := int(readers.Add(1)) * len(names) / 3
		for ; pb.Next(); i++ {
			c.count(names[i%len(names)])
		}
	})
}

func BenchmarkRoll(b *testing.B) {
	c := newCounters()
	for _, name := range floodNames(1_000_000) {
		c.count(name)
	}
	var busy []BoardCount
	for b.Loop() {
		busy = c.roll(25, busy[:0])
	}
}

// A read of a hot board: the map, the page, its age.
func BenchmarkTop(b *testing.B) {
	t := newTestTracker(b, Config{}, nil)
	t.apply(time.Now(), []transition{{board: "1_2_3", cause: CauseOwn}})
	(*t.pages.Load())["1_2_3"].cached.Store(&cachedTop{&rankcache.Top{Board: "1_2_3"}, time.Now(), time.Now().Add(time.Hour)})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		qs, as := []rankcache.Query{{Board: "1_2_3", Limit: 1}}, make([]rankcache.Answer, 1)
		for pb.Next() {
			if t.Read(context.Background(), qs, as); as[0].Err != nil {
				b.Error("no page")
			}
		}
	})
}
