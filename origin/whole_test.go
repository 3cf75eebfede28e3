package origin

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/testkit"
)

// viaWhole reads the rows and, as the surroundings of a, the same rows again.
func (b board) viaWhole() (rankcache.Stamp, float64, float64, error) {
	w := b.WholePages(context.Background(), []rankcache.PageQuery{{Board: b.id, Limit: 2, Member: "a", Around: 1}})[0]
	stamp, _, _, err := scores(w.Page, w.Err)
	if err != nil {
		return stamp, 0, 0, err
	}
	return scores(rankcache.Page{Stamp: stamp, Entries: w.Own.Neighbours}, nil)
}

func TestWholePages(t *testing.T) {
	b := newBoard(t)
	b.fill(t, 917, abc...)
	asc := []rankcache.Entry{abc[4], abc[3], abc[1], abc[2], abc[0]}
	own := func(e rankcache.Entry, rank, first int, neighbours []rankcache.Entry, better ...float64) rankcache.Surroundings {
		s := rankcache.Surroundings{Standing: rankcache.Standing{Member: e.Member, Score: e.Score, Rank: rank}, First: first, Neighbours: neighbours}
		if s.HasBetter = len(better) > 0; s.HasBetter {
			s.Better = better[0]
		}
		return s
	}
	withAhead := func(s rankcache.Surroundings, members int) rankcache.Surroundings {
		s.Ahead = rankcache.Ahead{Members: members, Scores: -1}
		return s
	}
	empty := []rankcache.Entry{}
	for _, c := range []struct {
		name string
		q    rankcache.PageQuery
		rows []rankcache.Entry
		own  rankcache.Surroundings
	}{
		{"a tie", rankcache.PageQuery{Limit: 2, Member: "b", Around: 1, Gap: true}, desc[:2], own(desc[2], 3, 1, desc[1:4], 7.5)},
		{"ascending", rankcache.PageQuery{Order: rankcache.Ascending, Start: 3, Limit: 9, Member: "b1", Around: 1, Gap: true}, asc[3:], own(asc[3], 4, 2, asc[2:], asc[1].Score)},
		{"the first", rankcache.PageQuery{Limit: 9, Member: "a", Around: 0, Gap: true}, desc, own(desc[0], 1, 0, desc[:1])},
		{"the last", rankcache.PageQuery{Start: 5, Limit: 1, Member: "d", Around: MaxAround}, empty, own(desc[4], 5, 0, desc)},
		{"no neighbours", rankcache.PageQuery{Member: "d", Around: -1, Gap: true}, empty, own(desc[4], 5, 0, empty, desc[3].Score)},
		{"absent", rankcache.PageQuery{Limit: 1, Member: "missing", Around: 4, Gap: true}, desc[:1], rankcache.Surroundings{Standing: rankcache.Standing{Member: "missing"}}},
		{"nobody", rankcache.PageQuery{Limit: 1, Around: -1}, desc[:1], rankcache.Surroundings{}},
		{"ahead of a tie", rankcache.PageQuery{Start: 2, Limit: 1, Member: "b", Around: -1, Percentile: true}, desc[2:3], withAhead(own(desc[2], 3, 0, empty), 1)},
		{"ahead of neighbours, ascending", rankcache.PageQuery{Order: rankcache.Ascending, Start: 2, Limit: 9, Member: "b1", Around: 1, Mode: rankcache.Competition}, asc[2:], withAhead(own(asc[3], 4, 2, asc[2:]), 2)},
	} {
		c.q.Board = b.id
		w := b.WholePages(t.Context(), []rankcache.PageQuery{c.q})[0]
		must(t, w.Err)
		equal(t, c.name+": rows", w.Entries, c.rows)
		equal(t, c.name+": own", w.Own, c.own)
		if c.q.Ranked() {
			equal(t, c.name+": ahead of the rows", w.Ahead, c.own.Ahead)
		}
		equal(t, c.name+": page", []any{w.Start, w.Seq, w.Members}, []any{c.q.Start, uint64(917), 5})
	}
}

// TestWholePagesFailOneByOne: a board that can't be read is the only one without an answer.
func TestWholePagesFailOneByOne(t *testing.T) {
	b, other := newBoard(t), newBoard(t)
	b.fill(t, 917, abc...)
	list, infinite := rankcache.BoardID(testkit.Name(t)), rankcache.BoardID(testkit.Name(t))
	must(t, b.client.RPush(t.Context(), b.names().BoardKey(list), "x").Err())
	must(t, b.client.ZAdd(t.Context(), b.names().BoardKey(infinite), redis.Z{Member: "a", Score: 1}, redis.Z{Member: "b", Score: math.Inf(1)}).Err())
	answers := b.WholePages(t.Context(), []rankcache.PageQuery{
		{Board: list, Limit: 1}, {Board: b.id, Limit: 1}, {Board: infinite, Member: "a", Gap: true}, {Board: other.id, Limit: 5, Member: "a"},
		{Board: b.id, Limit: rankcache.MaxTop + 1}, {Board: b.id, Around: MaxAround + 1}, {Board: b.id, Around: -2}, {Board: b.id, Start: -1},
	})
	for i, want := range []string{"WRONGTYPE", "", "holds the score +Inf", "", "501 rows", "250 neighbours", "-2 neighbours", "rows from -1"} {
		err := answers[i].Err
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("query %d: %v, want %q", i, err, want)
		}
	}
	equal(t, "rows", answers[1].Entries, desc[:1])
	equal(t, "missing board", []any{len(answers[3].Entries), answers[3].Members, answers[3].Own.Rank}, []any{0, 0, 0})
}

// pipelines counts those that are sent.
type pipelines struct{ n atomic.Int64 }

func (p *pipelines) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (p *pipelines) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (p *pipelines) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if len(cmds) > 0 {
			p.n.Add(1)
		}
		return next(ctx, cmds)
	}
}

// TestWholePagesAreOneRoundTrip, once Redis has the script.
func TestWholePagesAreOneRoundTrip(t *testing.T) {
	b := newBoard(t)
	b.fill(t, 917, abc...)
	queries := slices.Repeat([]rankcache.PageQuery{{Board: b.id, Limit: 50, Member: "a", Around: 1, Gap: true}}, 10)
	must(t, b.WholePages(t.Context(), queries)[0].Err)
	sent := new(pipelines)
	b.client.AddHook(sent)
	must(t, b.WholePages(t.Context(), queries)[9].Err)
	equal(t, "pipelines", sent.n.Load(), int64(1))
}
