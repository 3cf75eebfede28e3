package profile

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"syscall"
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
		c.store.revisions.bump(stranger)
		if !fresh() {
			b.Fatal("not fresh")
		}
	}
}

// strangerTo returns a key whose group is none of the page's.
func strangerTo(c *Cache, page []string) uint64 {
	taken := make(map[uint32]bool)
	for _, member := range page {
		taken[group(c.store.key(member))] = true
	}
	for key := uint64(0); ; key += 1 << (64 - groupBits) {
		if !taken[group(key)] {
			return key
		}
	}
}

// BenchmarkReadBesideMany joins a page and copies it into new memory, which keeps
// the collector busy, while the cache holds few or many other profiles.
func BenchmarkReadBesideMany(b *testing.B) {
	for _, others := range []int{0, 500_000} {
		b.Run(fmt.Sprint(others), func(b *testing.B) {
			c, dst := filled(b, others), make([][]byte, pageRows)
			readers := page(0)
			var kept [256][]byte
			var took []time.Duration
			for n := 0; b.Loop(); n++ {
				start := time.Now()
				c.Join(b.Context(), readers, dst)
				kept[n%len(kept)] = bytes.Join(dst, []byte(","))
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
			b.ReportMetric(float64(took[len(took)*999/1000].Nanoseconds()), "p99.9-ns")
		})
	}
}

// BenchmarkCollect is what one collection costs with few and with many profiles
// in memory, on all processors together.
func BenchmarkCollect(b *testing.B) {
	for _, n := range []int{0, 500_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c := filled(b, n)
			var before, after syscall.Rusage
			_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
			for b.Loop() {
				runtime.GC()
			}
			_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
			b.ReportMetric(float64(after.Utime.Nano()-before.Utime.Nano())/float64(b.N)/1e6, "cpu-ms")
			runtime.KeepAlive(c)
		})
	}
}

// filled returns a cache with n profiles beside those of page 0.
func filled(b *testing.B, n int) *Cache {
	c := start(b, Options{Budget: 256 << 20, Deadline: 10 * time.Second}, allKnown{})
	dst := make([][]byte, pageRows)
	for i := range n/pageRows + 1 {
		c.Get(b.Context(), page(i), dst)
	}
	if have := c.Len(); have < n {
		b.Fatalf("%d entries, want %d", have, n)
	}
	return c
}
