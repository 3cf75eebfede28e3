package writer

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/localboard"
	"rankcache/rooms"
	"rankcache/wire"
)

// tieModel is a board as it should be ranked: by score, the lowest first if form says so, and
// members with one score by the seq at which they came to it.
type tieModel struct {
	scores map[string]float64
	reach  map[string]uint64
	last   bool
	form   rankcache.ScoreForm
}

func (m *tieModel) apply(c *Command, seq uint64) {
	old, ok := m.scores[c.Member]
	score := c.Number
	switch c.Op {
	case wire.OpDelete:
		delete(m.scores, c.Member)
		return
	case wire.OpIncr:
		score += old
	case wire.OpBest:
		if ok && m.form.Raw(old) > m.form.Raw(score) {
			score = old
		}
	}
	if !ok || score != old {
		m.reach[c.Member] = seq
	}
	m.scores[c.Member] = score
}

// ranking is what is to be shown, best first.
func (m *tieModel) ranking() []rankcache.Entry {
	var rows []rankcache.Entry
	for member, score := range m.scores {
		rows = append(rows, rankcache.Entry{Member: member, Score: score})
	}
	slices.SortFunc(rows, func(a, b rankcache.Entry) int {
		byReach := cmp.Compare(m.reach[a.Member], m.reach[b.Member])
		if m.last {
			byReach = -byReach
		}
		if m.form.Lowest() {
			a, b = b, a
		}
		return cmp.Or(cmp.Compare(b.Score, a.Score), byReach)
	})
	return rows
}

// shown is a ranking with the scores as they are shown.
func shown(form rankcache.ScoreForm, rows []rankcache.Entry) []rankcache.Entry {
	rows = slices.Clone(rows)
	for i := range rows {
		rows[i].Score = form.Shown(rows[i].Score)
	}
	return rows
}

// Redis and a local board rank members with one score by who came to it first, or last,
// entry by entry, whatever the scores are: small, negative, of ten digits, and whether the highest or the
// lowest is the best; a change that leaves the score does not move the member, and one that comes back comes anew.
func TestTiesEqualOracle(t *testing.T) {
	t.Parallel()
	full := testkit.Full() && !testkit.Race // which takes five times as long
	for _, lowest := range []float64{0, -2, 8190, 1<<31 - 2, -(1 << 31)} {
		for _, ties := range []rooms.Ties{rooms.TiesFirst, rooms.TiesLast} {
			changes, members := 4000, 400
			if full && lowest == 1<<31-2 && ties == rooms.TiesFirst {
				changes, members = 1_000_000, 50_000
			}
			for _, form := range []rankcache.ScoreForm{rankcache.ScoreInteger, rankcache.ScoreInteger | rankcache.ScoreLowest} {
				t.Run(fmt.Sprint(ties, lowest, form), func(t *testing.T) { checkTies(t, ties, form, lowest, changes, members) })
			}
		}
	}
}

// checkTies gives members 5 distinct scores from lowest on.
func checkTies(t *testing.T, ties rooms.Ties, form rankcache.ScoreForm, lowest float64, changes, members int) {
	h := quiet(t, nil)
	m := &tieModel{scores: make(map[string]float64), reach: make(map[string]uint64), last: ties == rooms.TiesLast, form: form}
	local := localboard.New(h.board)
	r := rules{ties: ties, best: true}
	for first := 0; first < changes; first += maxBatch {
		jobs := make([]*job, maxBatch)
		for i := range jobs {
			c := &Command{Board: h.board, Member: fmt.Sprint("m", rand.IntN(members)), OrderID: fmt.Sprint("o", first+i), At: h.at, Form: form}
			c.Op, c.Number = wire.OpSet, lowest+float64(rand.IntN(5))
			switch old, ok := m.scores[c.Member]; {
			case ok && rand.IntN(2) == 0:
				c.Op, c.Number = wire.OpIncr, c.Number-old
			case rand.IntN(20) == 0:
				c.Op, c.Number = wire.OpDelete, 0
			case rand.IntN(3) == 0:
				c.Op = wire.OpBest
			}
			jobs[i] = &job{Command: c, rules: r}
			m.apply(c, uint64(first+i+1))
		}
		must(t, h.applier.apply(t.Context(), jobs))
		applyLocally(t, local, jobs...)
	}
	local.Publish()
	want := m.ranking()
	same(t, "redis", shown(form, h.ranking(t)), want)
	page := rankcache.One(t.Context(), local, rankcache.Query{Limit: len(want) + 1}).Entries
	same(t, "local board", shown(form, page), want)
	for i := range page {
		if raw := wire.TieScore(form.Raw(want[i].Score), m.reach[want[i].Member], m.last); page[i].Score != raw {
			t.Fatalf("%s is kept as %v, want %v", want[i].Member, page[i].Score, raw)
		}
	}
	h.checkSum(t)
	equal(t, "unranked", testutil.ToFloat64(h.metrics.ties), 0.0)
}

// applyLocally has a local board apply the updates of jobs, as they travel.
func applyLocally(t *testing.T, b *localboard.Board, jobs ...*job) {
	t.Helper()
	var us []wire.Update
	for _, j := range jobs {
		if j.Refusal != nil {
			t.Fatal(j.Refusal)
		}
		for _, u := range append([]wire.Update{j.Update}, j.Trims...) {
			var travelled wire.Update
			must(t, wire.DecodeUpdate(wire.AppendUpdate(nil, &u), &travelled))
			us = append(us, travelled)
		}
	}
	b.Apply(us)
}

// ranking returns the board in Redis, best first.
func (h *fixture) ranking(t *testing.T) []rankcache.Entry {
	t.Helper()
	rows, err := h.client.ZRevRangeWithScores(t.Context(), string(h.board), 0, -1).Result()
	must(t, err)
	entries := make([]rankcache.Entry, len(rows))
	for i, row := range rows {
		entries[i] = rankcache.Entry{Member: row.Member.(string), Score: row.Score}
	}
	return entries
}

func same(t *testing.T, what string, got, want []rankcache.Entry) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d members, want %d", what, len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%s: rank %d is %+v, want %+v", what, i+1, got[i], want[i])
		}
	}
}

// Beyond the changes that a score has room for, members tie among themselves behind the
// others, and are counted.
func TestTiesBeyondTheirLimit(t *testing.T) {
	h := quiet(t, nil)
	r := rules{ties: rooms.TiesFirst}
	set := func(order, member string, score float64) float64 {
		return h.applyOne(t, r, Command{Member: member, Op: wire.OpSet, Number: score, OrderID: order}).Update.Score
	}
	const score = wire.MaxTieScore
	set("o1", "first", score)
	m := h.meta(t)
	m.Seq = wire.TieLimit(score) - 2
	must(t, h.client.Set(t.Context(), h.opts.Names.MetaKey(h.board), wire.AppendMeta(nil, &m), redis.KeepTTL).Err())
	early := set("o2", "early", score)
	equal(t, "none is unranked", testutil.ToFloat64(h.metrics.ties), 0.0)
	late, later := set("o3", "late", score), set("o4", "later", score)
	if !(early > late && late == later && late == score) {
		t.Errorf("kept as %v, %v, %v", early, late, later)
	}
	set("o4", "later", score) // a repeat
	equal(t, "unranked", testutil.ToFloat64(h.metrics.ties), 2.0)
}

// What has no room for a tie-break is refused, and changes nothing.
func TestTieRange(t *testing.T) {
	h := newFixture(t, testkit.Kfake(t).Addr(), func(o *Options) {
		file, err := rooms.Parse([]byte(`
classes:
  - {name: first, board: "first_{x}", period: none, ties: first}
  - {name: best, board: "best_{x}", period: none, ops: [incr], trim: 3}
  - {name: feeder, board: "feeder_{x}", period: none, ops: [incr], score: integer, feeds: [between]}
  - {name: between, board: "between_{x}", period: none, ops: [incr], score: integer, feeds: [first, best]}
`))
		must(t, err)
		o.Tiers = tiers{file: file}
	})
	h.run(t)
	h.board = rankcache.BoardID("first_" + h.zone())
	h.do1(t, h.opCommand("set", "o1", "a", "score", wire.MaxTieScore))
	h.do1(t, h.opCommand("set", "o2", "b", "score", -wire.MaxTieScore))
	before := h.meta(t)
	for _, c := range []string{h.opCommand("set", "o3", "c", "score", 0.5), h.opCommand("incr", "o3", "a", "delta", -0.5),
		h.opCommand("incr", "o3", "a", "delta", 1), h.opCommand("incr", "o3", "b", "delta", -1), h.opCommand("set", "o3", "c", "score", wire.MaxTieScore+1)} {
		h.checkRefused(t, c, "score_range")
	}
	equal(t, "meta", h.meta(t), before)
	zone := h.zone()
	for _, class := range []string{"best", "feeder"} {
		h.board = rankcache.BoardID(class + "_" + zone)
		h.checkRefused(t, h.opCommand("incr", "o3", "a", "delta", -1), "score_range")
		if class == "feeder" {
			h.checkRefused(t, h.opCommand("incr", "o3", "a", "delta", 0.5), "score_range")
		}
	}
}
