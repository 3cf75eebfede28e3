package sidecar

import (
	"fmt"
	"testing"

	"rankcache"
)

// BenchmarkSplit reads the first rows, and a standing, of a board of 16 shards in memory, and of one board of the same members.
func BenchmarkSplit(b *testing.B) {
	w := newSplitWorld(b, 16)
	rows := make(map[string]float64)
	for i := range 50_000 {
		rows[fmt.Sprint(i)] = float64(i % 977)
	}
	w.Set(b, rows)
	w.localOnly(16)
	w.open["one"], w.splits.every = w.Whole, lookEvery
	for _, board := range []rankcache.BoardID{"one", splitID} {
		for name, q := range map[string]rankcache.Query{"top": {Limit: 50}, "standing": {Members: []string{"777"}}, "deep": {Start: 20_000, Limit: 50}} {
			q.Board = board
			b.Run(fmt.Sprint(name, " ", board), func(b *testing.B) {
				b.ReportAllocs()
				qs, as := []rankcache.Query{q}, make([]rankcache.Answer, 1)
				for b.Loop() {
					if w.Reader.Read(b.Context(), qs, as); as[0].Err != nil {
						b.Fatal(as[0].Err)
					}
				}
			})
		}
	}
}
