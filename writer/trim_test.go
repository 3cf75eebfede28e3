package writer

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"rankcache"
	"rankcache/localboard"
	"rankcache/rooms"
	"rankcache/wire"
)

// randomIncr returns an increment of one of n members.
func (h *fixture) randomIncr(r rules, i, n int) *job {
	return &job{rules: r, Command: &Command{Board: h.board, Member: fmt.Sprint("m", rand.IntN(n)), Op: wire.OpIncr, Number: float64(rand.IntN(20)),
		OrderID: fmt.Sprint("o", i), At: h.at}}
}

// The best stay in the sorted set, in Redis and on a local board, whatever was driven out
// and came back; the hash has the scores of all. Without ties that is the order of Redis.
func TestTrimKeepsTheBest(t *testing.T) {
	t.Parallel()
	const best, members = 50, 200
	for _, ties := range []rooms.Ties{"", rooms.TiesFirst} {
		h := quiet(t, nil)
		local := localboard.New(h.board)
		scores := make(map[string]float64)
		trims := 0
		for batch := range 40 {
			jobs := make([]*job, 100)
			for i := range jobs {
				jobs[i] = h.randomIncr(rules{trim: best, ties: ties}, batch*100+i, members)
				scores[jobs[i].Member] += jobs[i].Number
			}
			must(t, h.applier.apply(t.Context(), jobs))
			for _, j := range jobs {
				applyLocally(t, local, j)
				trims += len(j.Trims)
			}
		}
		if trims < 500 {
			t.Errorf("only %d members were driven out", trims)
		}
		want := h.checkKept(t, scores)[:best]
		got := h.ranking(t)
		same(t, "redis", got, want)
		local.Publish()
		same(t, "local board", rankcache.One(t.Context(), local, rankcache.Query{Limit: members}).Entries, want)
		h.checkSum(t)
	}
}

// checkKept compares the hash of all scores with what was counted, and returns it best
// first.
func (h *fixture) checkKept(t *testing.T, scores map[string]float64) (rows []rankcache.Entry) {
	t.Helper()
	for member, text := range h.client.HGetAll(t.Context(), h.opts.Names.CompanionKey(h.board, wire.Scores)).Val() {
		if member == "" {
			continue
		}
		var score float64
		_, err := fmt.Sscan(text, &score)
		must(t, err)
		if rankcache.ScoreInteger.Shown(score) != scores[member] {
			t.Errorf("%s has %v, want %v", member, score, scores[member])
		}
		rows = append(rows, rankcache.Entry{Member: member, Score: score})
	}
	equal(t, "members", len(rows), len(scores))
	slices.SortFunc(rows, func(a, b rankcache.Entry) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Member, a.Member))
	})
	return rows
}

// A repeat publishes the trims of the first one again, byte for byte; a member that was
// driven out at once has its score nonetheless.
func TestRepeatOfATrim(t *testing.T) {
	for name, kind := range map[string]*rooms.Class{"plain": nil, "durable": {Durable: true}} {
		t.Run(name, func(t *testing.T) { repeatATrim(t, kind) })
	}
}

func repeatATrim(t *testing.T, kind *rooms.Class) {
	h := quiet(t, func(o *Options) { o.PublishAll = true })
	incr := func(order, member string, n float64) *job {
		return h.applyOne(t, rules{trim: 2, kind: kind}, Command{Member: member, Op: wire.OpIncr, Number: n, OrderID: order})
	}
	incr("o1", "a", 3)
	incr("o2", "b", 5)
	out := incr("o3", "c", 1)
	equal(t, "driven out at once", []any{out.Update.Score, out.Update.Members, out.Trims[0].Member, out.Trims[0].Seq}, []any{1.0, 3, "c", uint64(4)})
	back := incr("o4", "c", 3)
	equal(t, "back", []any{back.Update.Score, back.Trims[0].Member}, []any{4.0, "a"})
	first := h.appendUpdate(nil, out)
	equal(t, "messages", []any{len(first), string(first[1].key)}, []any{2, "c"})
	for range 2 {
		again := h.appendUpdate(nil, incr("o3", "c", 1))
		for i := range first {
			equal(t, "repeat", string(again[i].value), string(first[i].value))
		}
	}
	equal(t, "board", h.scores(t), map[string]float64{"b": 5, "c": 4})
}

// A board that is larger than what is kept, as after the setting was lowered, shrinks with
// each change by some members, which keep their scores.
func TestTrimOfALargerBoard(t *testing.T) {
	h := quiet(t, nil)
	local := localboard.New(h.board)
	const members, best = 300, 3
	scores := make(map[string]float64)
	jobs := make([]*job, members)
	for i := range jobs {
		jobs[i] = h.randomIncr(rules{}, i, members)
		scores[jobs[i].Member] += jobs[i].Number
	}
	must(t, h.applier.apply(t.Context(), jobs))
	applyLocally(t, local, jobs...)
	for i := 0; len(h.ranking(t)) > best; i++ {
		before := len(h.ranking(t))
		j := h.randomIncr(rules{trim: best}, members+i, members)
		must(t, h.applier.apply(t.Context(), []*job{j}))
		applyLocally(t, local, j)
		scores[j.Member] += j.Number
		if after := len(h.ranking(t)); after >= before && before > best {
			t.Fatalf("%d members after %d", after, before)
		}
	}
	for i := range 50 { // all come back with their scores
		j := h.randomIncr(rules{trim: best}, 10*members+i, members)
		must(t, h.applier.apply(t.Context(), []*job{j}))
		applyLocally(t, local, j)
		scores[j.Member] += j.Number
		equal(t, "score", j.Update.Score, scores[j.Member])
	}
	local.Publish()
	same(t, "local board", rankcache.One(t.Context(), local, rankcache.Query{Limit: members}).Entries, h.ranking(t))
	h.checkSum(t)
}

// A ZREMRANGEBYRANK by hand has the board adopted; the members come back with their
// scores.
func TestTrimByHand(t *testing.T) {
	h := quiet(t, nil)
	incr := func(order, member string) *job {
		return h.applyOne(t, rules{trim: 2}, Command{Member: member, Op: wire.OpIncr, Number: 1, OrderID: order})
	}
	run := incr("o1", "a").Update.Run
	incr("o2", "b")
	must(t, h.client.ZRemRangeByRank(t.Context(), string(h.board), 0, 0).Err())
	back := incr("o3", "a")
	equal(t, "score", back.Update.Score, 2.0)
	if back.Update.Run <= run {
		t.Errorf("run %d after %d", back.Update.Run, run)
	}
	h.checkSum(t)
}
