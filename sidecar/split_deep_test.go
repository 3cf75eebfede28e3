package sidecar

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"rankcache"
	"rankcache/class"
	"rankcache/internal/testkit"
)

// TestSplitDeepPages compares pages beyond the first rows with those of one board of the same members, with equal scores everywhere and
// most members on two shards. Redis is asked for none of their rows.
func TestSplitDeepPages(t *testing.T) {
	for _, n := range []int{2, 16, 64} {
		w := newSplitWorld(t, n)
		for _, scores := range []int{3, 100_000} {
			rows := make(map[string]float64)
			names := skewed(900, n)
			for i := range 600 {
				names = append(names, fmt.Sprint("x", i))
			}
			for _, m := range names {
				rows[m] = float64(rand.IntN(scores))
			}
			w.Set(t, rows)
			w.localOnly(n)
			for range testkit.Sized(40, 2000) {
				q := rankcache.Query{Board: splitID, Order: rankcache.Direction(rand.IntN(2)), Start: rand.IntN(1520), Limit: 1 + rand.IntN(500)}
				if q.Start+q.Limit <= rankcache.MaxTop {
					q.Start += rankcache.MaxTop
				}
				if rand.IntN(3) == 0 {
					q.Members = []string{names[rand.IntN(len(names))], "none"}
				}
				w.compare(t, q)
			}
		}
		if calls := w.Calls.Load(); calls > 0 {
			t.Errorf("%d calls of Redis", calls)
		}
		deep := rankcache.Query{Board: splitID, Start: 1000, Limit: 20}
		delete(w.open, class.ShardID(splitID, 1))
		if a := rankcache.One(t.Context(), w.Reader, deep); !errors.Is(a.Err, ErrSplit) {
			t.Errorf("with a shard in Redis alone: %d rows, %v", len(a.Entries), a.Err)
		}
		deep.CopiesOnly = true
		if a := rankcache.One(t.Context(), w.Reader, deep); a.Err != rankcache.ErrNotKept {
			t.Errorf("of copies: %d rows, %v", len(a.Entries), a.Err)
		}
	}
}

// TestSplitDeepBounds: a deep page is not older than what is asked for.
func TestSplitDeepBounds(t *testing.T) {
	w := newSplitWorld(t, 4)
	rows := make(map[string]float64)
	for i := range 700 {
		rows[fmt.Sprint(i)] = float64(i)
	}
	w.Set(t, rows)
	w.localOnly(4)
	for seq, want := range map[uint64]error{1: nil, 2: ErrSplit} {
		if a := rankcache.One(t.Context(), w.Reader, rankcache.Query{Board: splitID, Start: 600, Limit: 10, Members: []string{"7"}, MinSeq: seq}); !errors.Is(a.Err, want) {
			t.Errorf("%d: %v", seq, a.Err)
		}
	}
	for age, want := range map[time.Duration]error{time.Hour: nil, time.Nanosecond: ErrSplit} {
		if a := rankcache.One(t.Context(), w.Reader, rankcache.Query{Board: splitID, Start: 600, Limit: 10, MaxAge: age}); !errors.Is(a.Err, want) {
			t.Errorf("%v: %v", age, a.Err)
		}
	}
}

// TestSplitDeepWhileItChanges: while members move, a page is that of the shards at the seqs that it names.
func TestSplitDeepWhileItChanges(t *testing.T) {
	const n = 4
	w := newSplitWorld(t, n)
	rows := make(map[string]float64)
	for i := range 800 {
		rows[fmt.Sprint(i)] = float64(i % 50)
	}
	w.Set(t, rows)
	w.localOnly(n)
	history := make([]map[uint64][]rankcache.Entry, n) // the rows of each shard, by its seq
	note := func(shard int) {
		var of []rankcache.Entry
		for _, row := range w.Ranked() {
			if class.ShardOf(row.Member, n) == shard {
				of = append(of, row)
			}
		}
		history[shard][w.Seqs()[shard]] = of
	}
	for shard := range history {
		history[shard] = make(map[uint64][]rankcache.Entry)
		note(shard)
	}
	var moved atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range testkit.Sized(100, 5000) {
			member := fmt.Sprint(rand.IntN(800))
			w.Move(t, member, float64(rand.IntN(50)))
			note(class.ShardOf(member, n))
		}
		moved.Store(true)
	}()
	var answers []rankcache.Answer
	reads, failed := 0, 0
	for !moved.Load() {
		a := rankcache.One(t.Context(), w.Reader, rankcache.Query{Board: splitID, Start: 400 + rand.IntN(300), Limit: 101})
		if a.Err != nil {
			if failed++; !errors.Is(a.Err, rankcache.ErrUnavailable) {
				t.Error(a.Err)
			}
		}
		if reads++; reads%20 == 0 {
			answers = append(answers, a)
		}
	}
	<-done
	for _, a := range answers {
		var all []rankcache.Entry
		for shard, seq := range a.Shards {
			all = append(all, history[shard][seq]...)
		}
		slices.SortFunc(all, func(x, y rankcache.Entry) int {
			return cmp.Or(cmp.Compare(y.Score, x.Score), cmp.Compare(y.Member, x.Member))
		})
		if want := all[a.Start:min(a.Start+101, len(all))]; a.Err == nil && (!slices.Equal(a.Entries, want) || a.Members != len(all)) {
			t.Fatalf("from %d at %v: %d members, %v; want %d, %v", a.Start, a.Shards, a.Members, a.Entries, len(all), want)
		}
	}
	if t.Logf("%d pages, %d failed", reads, failed); failed > reads/2 {
		t.Error("most pages failed")
	}
}
