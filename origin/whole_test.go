package origin

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
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
	a := b.ask(rankcache.Query{Limit: 2, Members: []string{"a"}, Around: 3})
	stamp, _, _, err := scores(a)
	if err != nil {
		return stamp, 0, 0, err
	}
	a.Entries = a.Own[0].Neighbours
	return scores(a)
}

func TestWhole(t *testing.T) {
	b := newBoard(t)
	b.fill(t, 917, abc...)
	asc := []rankcache.Entry{abc[4], abc[3], abc[1], abc[2], abc[0]}
	own := func(e rankcache.Entry, rank, first int, neighbours []rankcache.Entry, better ...float64) rankcache.Own {
		o := rankcache.Own{Standing: rankcache.Standing{Member: e.Member, Score: e.Score, Rank: rank}, First: first, Neighbours: neighbours}
		if o.HasBetter = len(better) > 0; o.HasBetter {
			o.Better = better[0]
		}
		return o
	}
	withAhead := func(o rankcache.Own, members int) rankcache.Own {
		o.Ahead = rankcache.Ahead{Members: members, Scores: -1}
		return o
	}
	empty, member := []rankcache.Entry{}, func(m ...string) []string { return m }
	for _, c := range []struct {
		name string
		q    rankcache.Query
		rows []rankcache.Entry
		own  []rankcache.Own
	}{
		{"a tie", rankcache.Query{Limit: 2, Members: member("b"), Around: 3, Gap: true}, desc[:2], []rankcache.Own{own(desc[2], 3, 1, desc[1:4], 7.5)}},
		{"ascending", rankcache.Query{Order: rankcache.Ascending, Start: 3, Limit: 9, Members: member("b1"), Around: 3, Gap: true}, asc[3:], []rankcache.Own{own(asc[3], 4, 2, asc[2:], asc[1].Score)}},
		{"the first", rankcache.Query{Limit: 9, Members: member("a"), Around: 1, Gap: true}, desc, []rankcache.Own{own(desc[0], 1, 0, desc[:1])}},
		{"the last", rankcache.Query{Start: 5, Limit: 1, Members: member("d"), Around: 2*MaxAround + 1}, empty, []rankcache.Own{own(desc[4], 5, 0, desc)}},
		{"no neighbours", rankcache.Query{Members: member("d"), Gap: true}, empty, []rankcache.Own{own(desc[4], 5, 0, empty, desc[3].Score)}},
		{"absent", rankcache.Query{Limit: 1, Members: member("missing"), Around: 9, Gap: true}, desc[:1], []rankcache.Own{{Standing: rankcache.Standing{Member: "missing"}}}},
		{"several", rankcache.Query{Members: member("b", "missing", "a"), Around: 1}, empty, []rankcache.Own{own(desc[2], 3, 2, desc[2:3]), {Standing: rankcache.Standing{Member: "missing"}}, own(desc[0], 1, 0, desc[:1])}},
		{"ahead of a tie", rankcache.Query{Start: 2, Limit: 1, Members: member("b"), Percentile: true}, desc[2:3], []rankcache.Own{withAhead(own(desc[2], 3, 0, empty), 1)}},
		{"ahead of neighbours, ascending", rankcache.Query{Order: rankcache.Ascending, Start: 2, Limit: 9, Members: member("b1"), Around: 3, Mode: rankcache.Competition}, asc[2:], []rankcache.Own{withAhead(own(asc[3], 4, 2, asc[2:]), 2)}},
	} {
		a := b.ask(c.q)
		must(t, a.Err)
		for i := range c.own {
			c.own[i].Stamp, c.own[i].Source = a.Stamp, rankcache.SourceRedis
		}
		equal(t, c.name+": rows", a.Entries, c.rows)
		equal(t, c.name+": own", a.Own, c.own)
		if c.q.Ranked() {
			equal(t, c.name+": ahead of the rows", a.Ahead, c.own[0].Ahead)
		}
		equal(t, c.name+": page", []any{a.Start, a.Seq, a.Members}, []any{c.q.Start, uint64(917), 5})
	}
}

// TestRange compares rows between two scores with a look at each row, alone and in one pipeline.
func TestRange(t *testing.T) {
	b := newBoard(t)
	r := rand.New(rand.NewPCG(3, 4))
	var rows []rankcache.Entry
	for i := range 60 {
		rows = append(rows, rankcache.Entry{Member: fmt.Sprint(i), Score: []float64{float64(r.IntN(12)-4) + float64(r.IntN(4))/4, 1e300, -1e17, 0.1, 1048576.9999995232}[min(r.IntN(8), 4)]})
	}
	b.fill(t, 917, rows...)
	slices.SortFunc(rows, func(x, y rankcache.Entry) int {
		return cmp.Or(cmp.Compare(y.Score, x.Score), cmp.Compare(y.Member, x.Member))
	})
	var qs []rankcache.Query
	ends := []float64{math.Inf(-1), -1e17, -3, -2.5, 0, 0.1, 3, 1048576, 1e300, math.Inf(1)}
	for range 200 {
		i := r.IntN(len(ends))
		q := rankcache.Query{Board: b.id, Order: rankcache.Direction(r.IntN(2)), Form: rankcache.ScoreForm(r.IntN(4)), Start: r.IntN(5), Limit: r.IntN(9),
			Range: &rankcache.ScoreRange{Least: ends[i], Most: ends[i+r.IntN(len(ends)-i)], Shown: true}}
		if r.IntN(2) == 0 {
			q.Members, q.Around, q.Gap, q.Percentile = []string{"7"}, 3, true, true
		}
		qs = append(qs, q)
	}
	as := make([]rankcache.Answer, len(qs))
	b.Read(t.Context(), qs, as)
	for i, q := range qs {
		all := slices.Clone(rows)
		if q.Order == rankcache.Ascending {
			slices.Reverse(all)
		}
		least, most := q.RawRange()
		inside := func(e rankcache.Entry) bool { return e.Score >= least && e.Score <= most }
		first := slices.IndexFunc(all, func(e rankcache.Entry) bool {
			return inside(e) || (e.Score < least) == (q.Order == rankcache.Descending)
		})
		if first < 0 {
			first = len(all)
		}
		within := slices.DeleteFunc(slices.Clone(all), func(e rankcache.Entry) bool { return !inside(e) })
		want := within[min(q.Start, len(within)):min(q.Start+q.Limit, len(within))]
		for how, got := range map[string]rankcache.Answer{"alone": rankcache.One(t.Context(), b.Origin, q), "together": as[i]} {
			must(t, got.Err)
			equal(t, fmt.Sprintf("%s: rows of %+v %+v", how, q, q.Range), slices.Concat(want), slices.Concat(got.Entries))
			equal(t, fmt.Sprintf("%s: counts of %+v %+v", how, q, q.Range), []int{got.Start, got.Matches, got.Members}, []int{first + q.Start, len(within), len(rows)})
			plain := q
			plain.Range, plain.Limit = nil, 0
			equal(t, how+": the member", got.Own, withStamp(rankcache.One(t.Context(), b.Origin, plain).Own, got.Stamp))
		}
	}
}

// withStamp returns members as of another moment.
func withStamp(own []rankcache.Own, s rankcache.Stamp) []rankcache.Own {
	for i := range own {
		own[i].Stamp = s
	}
	return own
}

// TestBoardsFailOneByOne: a board that can't be read is the only one without an answer.
func TestBoardsFailOneByOne(t *testing.T) {
	b, other := newBoard(t), newBoard(t)
	b.fill(t, 917, abc...)
	list, infinite := rankcache.BoardID(testkit.Name(t)), rankcache.BoardID(testkit.Name(t))
	must(t, b.client.RPush(t.Context(), b.names().BoardKey(list), "x").Err())
	must(t, b.client.ZAdd(t.Context(), b.names().BoardKey(infinite), redis.Z{Member: "a", Score: 1}, redis.Z{Member: "b", Score: math.Inf(1)}).Err())
	queries := []rankcache.Query{
		{Board: list, Limit: 1}, {Board: b.id, Limit: 1}, {Board: infinite, Members: []string{"a"}, Gap: true}, {Board: other.id, Limit: 5, Members: []string{"a"}},
		{Board: b.id, Limit: rankcache.MaxTop + 1}, {Board: b.id, Around: 2*MaxAround + 3}, {Board: b.id, Around: -3}, {Board: b.id, Start: -1},
	}
	answers := make([]rankcache.Answer, len(queries))
	b.Read(t.Context(), queries, answers)
	for i, want := range []string{"WRONGTYPE", "", "holds the score +Inf", "", "501 rows", "250 neighbours", "-2 neighbours", "rows from -1"} {
		err := answers[i].Err
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("query %d: %v, want %q", i, err, want)
		}
	}
	equal(t, "rows", answers[1].Entries, desc[:1])
	equal(t, "missing board", []any{len(answers[3].Entries), answers[3].Members, answers[3].Own[0].Rank}, []any{0, 0, 0})
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

// TestSeveralQueriesAreOneRoundTrip, once Redis has the script.
func TestSeveralQueriesAreOneRoundTrip(t *testing.T) {
	b := newBoard(t)
	b.fill(t, 917, abc...)
	queries := slices.Repeat([]rankcache.Query{{Board: b.id, Limit: 50, Members: []string{"a"}, Around: 3, Gap: true}, {Board: b.id, Limit: 2}, {Board: b.id, Members: []string{"b", "c"}}}, 4)
	answers := make([]rankcache.Answer, len(queries))
	b.Read(t.Context(), queries, answers)
	sent := new(pipelines)
	b.client.AddHook(sent)
	b.Read(t.Context(), queries, answers)
	equal(t, "pipelines", sent.n.Load(), int64(1))
	for i := range answers {
		must(t, answers[i].Err)
	}
}
