package profile

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// hitPage returns a cache in which a page of n rows is fresh.
func hitPage(b testing.TB, n int) (*Cache, []string) {
	c := start(b, Options{}, newFake(b, nick))
	page := members("10001", n)
	c.Get(b.Context(), page, make([][]byte, n))
	return c, page
}

func BenchmarkGet50(b *testing.B) {
	c, page := hitPage(b, 50)
	dst := make([][]byte, 50)
	b.ReportAllocs()
	for b.Loop() {
		c.Get(b.Context(), page, dst)
	}
}

func BenchmarkJoin50(b *testing.B) {
	c, page := hitPage(b, 50)
	dst := make([][]byte, 50)
	b.ReportAllocs()
	for b.Loop() {
		c.Join(b.Context(), page, dst)
	}
}

func BenchmarkFresh(b *testing.B) {
	for _, rows := range []int{10, 50, 500} {
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			c, page := hitPage(b, rows)
			_, fresh := c.Join(b.Context(), page, make([][]byte, rows))
			b.ReportAllocs()
			for b.Loop() {
				if !fresh() {
					b.Fatal("not fresh")
				}
			}
		})
	}
}

// BenchmarkFreshAmidChanges is the same while strangers' profiles are stored
// between any two looks.
func BenchmarkFreshAmidChanges(b *testing.B) {
	c, page := hitPage(b, 50)
	_, fresh := c.Join(b.Context(), page, make([][]byte, len(page)))
	stranger := strangerTo(c, page)
	b.ReportAllocs()
	for b.Loop() {
		c.changes.bump(stranger)
		if !fresh() {
			b.Fatal("not fresh")
		}
	}
}

// strangerTo returns a key whose group is none of the page's.
func strangerTo(c *Cache, page []string) uint64 {
	taken := make(map[uint32]bool)
	for _, member := range page {
		taken[group(c.key(member))] = true
	}
	for key := uint64(0); ; key += 1 << (64 - groupBits) {
		if !taken[group(key)] {
			return key
		}
	}
}

// BenchmarkReadBesideMany is a page joined and encoded into new memory, which
// keeps the collector busy, while the cache holds few or many other profiles
// that it has to walk.
func BenchmarkReadBesideMany(b *testing.B) {
	for _, others := range []int{0, 500_000} {
		b.Run(fmt.Sprint(others), func(b *testing.B) {
			c := start(b, Options{Budget: 256 << 20, Deadline: measureDeadline}, &measuredSource{})
			dst := make([][]byte, measuredRows)
			for n := range others/measuredRows + 1 {
				c.Get(b.Context(), page(n), dst)
			}
			if have := c.store.entries(); have < others {
				b.Fatalf("%d entries, want %d", have, others)
			}
			readers := page(0)
			var kept [256][]byte
			var took []time.Duration
			for n := 0; b.Loop(); n++ {
				start := time.Now()
				c.Join(b.Context(), readers, dst)
				kept[n%len(kept)] = encodePage(make([]byte, 0, 16<<10), readers, dst)
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
			b.ReportMetric(float64(took[len(took)*999/1000].Nanoseconds()), "p99.9-ns")
		})
	}
}
