package sidecar

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"rankcache"
	"rankcache/class"
	"rankcache/internal/testkit/fixture"
	"rankcache/rooms"
)

// splitWorld is a split board, and the same as one board.
type splitWorld struct {
	*fixture.Split // Redis, which has all shards
	*Reader
	n    int
	open fixture.Boards[Board] // shards that are local
}

const splitID = rankcache.BoardID("gift:7")

func newSplitWorld(t testing.TB, n int) *splitWorld {
	t.Helper()
	w := &splitWorld{Split: fixture.NewSplit(splitID, n), n: n, open: make(fixture.Boards[Board])}
	file := fmt.Sprintf("classes:\n  - {name: gift, board: \"gift:{zone}\", period: none, shards: %d}\nboards: [{match: \"gift:7\", mode: super-hot}, {match: one, mode: super-hot}]\n", n)
	defer func() { w.splits.every = 0 }() // each answer is of now
	w.Reader = readerOf(t, Config{Tiers: fixture.Tiers(file), Boards: w.open, Origin: w.Split})
	return w
}

// localOnly has so many shards open, and Redis answer the others.
func (w *splitWorld) localOnly(n int) {
	clear(w.open)
	for i := range n {
		id := class.ShardID(splitID, i)
		w.open[id] = w.Shards[id]
	}
}

// skewed returns members that are all on the first two shards.
func skewed(n, shards int) (members []string) {
	for i := 0; len(members) < n; i++ {
		if m := fmt.Sprint("m", i); class.ShardOf(m, shards) < 2 {
			members = append(members, m)
		}
	}
	return members
}

// TestSplitEqualsOneBoard compares answers of 2 to 64 shards, in memory and in Redis, with those of one board of the same
// members: equal scores everywhere, and members that are nearly all on two shards.
func TestSplitEqualsOneBoard(t *testing.T) {
	for _, n := range []int{2, 16, 64} {
		w := newSplitWorld(t, n)
		for round := range 6 {
			rows := make(map[string]float64)
			names := skewed(200, n)
			for i := range 700 {
				names = append(names, fmt.Sprint("x", i))
			}
			for _, m := range names[:rand.IntN(len(names))] {
				rows[m] = float64(rand.IntN(4+40*(round%2))) - 2
			}
			w.Set(t, rows)
			w.localOnly([]int{n, 0, n / 2}[round%3])
			for range 60 {
				w.compare(t, w.query(names))
			}
		}
	}
}

// query returns some query.
func (w *splitWorld) query(names []string) rankcache.Query {
	q := rankcache.Query{Board: splitID, Order: rankcache.Direction(rand.IntN(2)), Start: rand.IntN(20), Limit: rand.IntN(60), Gap: rand.IntN(2) == 0}
	for range rand.IntN(4) {
		q.Members = append(q.Members, names[rand.IntN(len(names))])
	}
	switch rand.IntN(4) {
	case 0:
		q.Around = 1 + 2*rand.IntN(6)
	case 1:
		q.Mode, q.Percentile = rankcache.Competition, rand.IntN(2) == 0
	case 2:
		least := float64(rand.IntN(8) - 3)
		q.Range = &rankcache.ScoreRange{Least: least, Most: least + float64(rand.IntN(4)), Shown: true}
	}
	if len(q.Members) == 0 && q.Limit == 0 && q.Range == nil {
		q.Limit = 1
	}
	return q
}

func (w *splitWorld) compare(t *testing.T, q rankcache.Query) {
	t.Helper()
	got, want := rankcache.One(t.Context(), w.Reader, q), rankcache.One(t.Context(), w.Whole, q)
	if got.Err != nil {
		t.Fatalf("%+v: %v", q, got.Err)
	}
	if got.Members != want.Members || got.Start != want.Start || got.Matches != want.Matches || len(got.Shards) != w.n {
		t.Fatalf("%+v: %d members, from %d, %d matches; want %d, %d, %d", q, got.Members, got.Start, got.Matches, want.Members, want.Start, want.Matches)
	}
	if diff := cmp.Diff(want.Entries, got.Entries, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("%+v: rows, -want +got\n%s", q, diff)
	}
	if q.Ranked() && len(want.Entries) > 0 && got.Ahead != want.Ahead {
		t.Fatalf("%+v: ahead %v, want %v", q, got.Ahead, want.Ahead)
	}
	for i := range want.Own {
		got, want := got.Own[i], want.Own[i]
		if got.Standing != want.Standing || got.Ahead != want.Ahead && q.Ranked() && want.Rank > 0 || got.HasBetter != want.HasBetter || got.Better != want.Better {
			t.Fatalf("%+v: %+v, want %+v", q, got, want)
		}
		if diff := cmp.Diff(want.Neighbours, got.Neighbours, cmpopts.EquateEmpty()); diff != "" || got.First != want.First {
			t.Fatalf("%+v: around rank %d from %d, want %d, -want +got\n%s", q, got.Rank, got.First, want.First, diff)
		}
	}
}

// TestSplitPartMissing: a shard that is neither here nor in Redis is no empty shard.
func TestSplitPartMissing(t *testing.T) {
	w := newSplitWorld(t, 4)
	w.Set(t, map[string]float64{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6})
	w.localOnly(4)
	w.Away.Store(true)
	queries := []rankcache.Query{{Board: splitID, Limit: 3}, {Board: splitID, Members: []string{"a"}}, {Board: splitID, Limit: 3, Members: []string{"b"}, Around: 3}}
	for _, q := range queries {
		w.compare(t, q)
	}
	for missing := range 4 {
		id := class.ShardID(splitID, missing)
		delete(w.open, id)
		for _, q := range queries {
			if a := rankcache.One(t.Context(), w.Reader, q); !errors.Is(a.Err, rankcache.ErrUnavailable) || len(a.Entries)+len(a.Own) > 0 {
				t.Errorf("without shard %d: %d rows, %v", missing, len(a.Entries), a.Err)
			}
			q.CopiesOnly = true
			if a := rankcache.One(t.Context(), w.Reader, q); a.Err != rankcache.ErrNotKept {
				t.Errorf("without shard %d, of copies only: %d rows, %v", missing, len(a.Entries), a.Err)
			}
		}
		w.open[id] = w.Shards[id]
	}
	w.Away.Store(false)
	delete(w.open, class.ShardID(splitID, 1))
	for _, q := range queries {
		w.compare(t, q)
		if a := rankcache.One(t.Context(), w.Reader, q); a.Source != rankcache.SourceRedis {
			t.Errorf("source %v", a.Source)
		}
	}
}

// foreign is a Redis whose shards were changed by something else.
type foreign struct{ rankcache.Reader }

func (f foreign) Read(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer) {
	f.Reader.Read(ctx, qs, as)
	for i := range as {
		as[i].Foreign = qs[i].Board == class.ShardID(splitID, 2)
	}
}

// TestSplitDeletedShard: a shard whose sorted set was deleted is no empty shard.
func TestSplitDeletedShard(t *testing.T) {
	w := newSplitWorld(t, 4)
	w.Set(t, map[string]float64{"a": 1, "b": 2})
	r := readerOf(t, Config{Tiers: w.Tiers, Origin: foreign{w.Split}})
	for _, q := range []rankcache.Query{{Board: splitID, Limit: 3}, {Board: splitID, Members: []string{"a"}}} {
		if a := rankcache.One(t.Context(), r, q); !errors.Is(a.Err, rankcache.ErrUnavailable) {
			t.Errorf("%+v", a)
		}
	}
	if a := rankcache.One(t.Context(), r, rankcache.Query{Board: class.ShardID(splitID, 2), Limit: 1}); a.Err != nil {
		t.Error(a.Err)
	}
}

// TestSplitTopIsKept: the merged rows are the same as long as no shard has changed.
func TestSplitTopIsKept(t *testing.T) {
	w := newSplitWorld(t, 8)
	rows := make(map[string]float64)
	for i := range 300 {
		rows[fmt.Sprint(i)] = float64(i % 7)
	}
	w.Set(t, rows)
	w.localOnly(8)
	read := func(start, limit int) rankcache.Answer {
		return rankcache.One(t.Context(), w.Reader, rankcache.Query{Board: splitID, Start: start, Limit: limit})
	}
	first := read(0, 50)
	for _, page := range [][2]int{{0, 50}, {10, 40}, {0, 7}} {
		if a := read(page[0], page[1]); a.Kept == nil || a.Kept != first.Kept || &a.Entries[0] != &first.Entries[page[0]] || a.At != first.At {
			t.Errorf("%v: merged again", page)
		}
	}
	if n := w.Calls.Load(); n != 0 {
		t.Errorf("%d calls of Redis", n)
	}
	w.Set(t, map[string]float64{"1": 99})
	if a := read(0, 50); a.Kept == first.Kept || a.Entries[0].Member != "1" || first.Entries[0].Member == "1" {
		t.Error("the rows before a change")
	}
	w.splits.every = time.Hour
	before := read(0, 50)
	w.Set(t, map[string]float64{"2": 100})
	if a := read(10, 40); a.Kept != before.Kept || a.Entries[0] != before.Entries[10] || !slices.Equal(a.Shards, before.Shards) || a.Members != before.Members || a.Source != before.Source {
		t.Errorf("a page within the time that shards are not looked at again: %+v", a)
	}
	for _, q := range []rankcache.Query{{Board: splitID, Limit: 50, MaxAge: time.Hour}, {Board: splitID, Limit: 50, Members: []string{"2"}}, {Board: splitID, Limit: 51}} {
		if a := rankcache.One(t.Context(), w.Reader, q); a.Err != nil || a.Entries[0].Member != "2" {
			t.Errorf("%+v: %+v", q, a)
		}
		w.splits.board(splitID, 8).look.Store(nil)
	}
	w.splits.every = 0
	w.localOnly(7)
	if a := read(0, 50); a.Kept != nil || a.Entries[0].Member != "2" {
		t.Error("rows of Redis are kept")
	}
}

func TestSplitRefuses(t *testing.T) {
	w := newSplitWorld(t, 4)
	w.Set(t, map[string]float64{"a": 1, "b": 2})
	w.localOnly(4)
	for _, c := range []struct {
		q    rankcache.Query
		want error
	}{
		{rankcache.Query{Start: 480, Limit: 21, Range: &rankcache.ScoreRange{}}, ErrRange},
		{rankcache.Query{Start: 480, Limit: 21, Percentile: true}, ErrSplit},
		{rankcache.Query{Limit: 3, Mode: rankcache.Dense}, rankcache.ErrRankMode},
		{rankcache.Query{Members: []string{"a"}, Around: 3, Percentile: true}, ErrSplit},
		{rankcache.Query{Limit: 3, MinSeq: 1}, ErrSplit},
		{rankcache.Query{Members: []string{"a", "b"}, MinState: rankcache.State{Run: 1, Seq: 1}}, ErrSplit},
		{rankcache.Query{Members: []string{"a"}, Scores: []float64{1}}, ErrSplit},
	} {
		c.q.Board = splitID
		if a := rankcache.One(t.Context(), w.Reader, c.q); !errors.Is(a.Err, c.want) {
			t.Errorf("%+v: %v, want %v", c.q, a.Err, c.want)
		}
	}
}

// TestSplitMinSeq: a bound is one of the member's shard.
func TestSplitMinSeq(t *testing.T) {
	w := newSplitWorld(t, 4)
	w.Set(t, map[string]float64{"a": 1, "b": 2})
	w.localOnly(4)
	for seq, want := range map[uint64]error{1: nil, 2: ErrNotReached} {
		a := rankcache.One(t.Context(), w.Reader, rankcache.Query{Board: splitID, Members: []string{"a"}, Limit: 1, MinSeq: seq})
		if !errors.Is(a.Err, want) {
			t.Errorf("%d: %v", seq, a.Err)
		}
	}
}

// TestSplitBatch: split boards beside others in one read, blocked ones, and ones that are bypassed.
func TestSplitBatch(t *testing.T) {
	w := newSplitWorld(t, 4)
	w.Set(t, map[string]float64{"a": 1, "b": 2})
	w.localOnly(4)
	w.Shards["other"] = w.Whole
	qs := []rankcache.Query{{Board: "other", Limit: 2}, {Board: splitID, Limit: 2}, {Board: class.ShardID(splitID, class.ShardOf("a", 4)), Limit: 2}, {Board: splitID, Members: []string{"a"}}}
	as := make([]rankcache.Answer, len(qs))
	w.Reader.Read(t.Context(), qs, as)
	if slices.ContainsFunc(as, func(a rankcache.Answer) bool { return a.Err != nil }) {
		t.Fatal(as)
	}
	if len(as[0].Entries) != 2 || len(as[1].Entries) != 2 || len(as[2].Entries) != 1 || as[3].Own[0].Rank != 2 || as[0].Shards != nil || as[1].Source != rankcache.SourceLocal {
		t.Errorf("%+v", as)
	}
	plain, setTiers := w.Tiers(), func(to func() *rooms.Tiers) { w.copies.tiers, w.splits.tiers = to, to }
	setTiers(func() *rooms.Tiers { return plain.Bypassing([]rooms.Bypass{{Board: splitID}}) })
	if a := rankcache.One(t.Context(), w.Reader, rankcache.Query{Board: splitID, Limit: 2}); a.Source != rankcache.SourceRedis || a.Err != nil {
		t.Errorf("bypassed: %v, %v", a.Source, a.Err)
	}
	setTiers(fixture.Tiers("classes: [{name: gift, board: \"gift:{zone}\", period: none, shards: 4}]\nboards: [{match: \"gift:7\", mode: blocked}]"))
	if a := rankcache.One(t.Context(), w.Reader, rankcache.Query{Board: splitID, Limit: 2}); !errors.Is(a.Err, ErrBlocked) {
		t.Errorf("blocked: %v", a.Err)
	}
}

// TestTrendOfSplitBoard: ranks on a split board of the period before are those of all its shards, in memory and in Redis.
func TestTrendOfSplitBoard(t *testing.T) {
	w := newSplitWorld(t, 16)
	rows, names := make(map[string]float64), make([]string, 700)
	for i := range names {
		names[i] = fmt.Sprint("m", i)
		rows[names[i]] = float64(rand.IntN(40))
	}
	w.Set(t, rows)
	names = append(names, "nobody") // more than one call takes
	for _, local := range []int{16, 0, 8} {
		w.localOnly(local)
		ranks, _, err := w.FormerRanks(t.Context(), &rankcache.Query{Board: splitID, Members: names}, time.Now().Add(time.Duration(local)*time.Hour))
		if err != nil || len(ranks) != len(names) || ranks["nobody"] != 0 {
			t.Fatalf("%d shards are local: %d ranks, %v", local, len(ranks), err)
		}
		for i, row := range w.Ranked() {
			if ranks[row.Member] != i+1 {
				t.Fatalf("%d shards are local: %s has rank %d, want %d", local, row.Member, ranks[row.Member], i+1)
			}
		}
	}
}
