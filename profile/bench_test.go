package profile

import (
	"fmt"
	"testing"
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
