package origin

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// largeBoard fills a board that is worth a ladder, and returns its rows, best first.
func largeBoard(t testing.TB, b board, n int, score func(*rand.Rand) float64) []rankcache.Entry {
	t.Helper()
	r := rand.New(rand.NewPCG(5, 6))
	rows := make([]rankcache.Entry, n)
	for i := range rows {
		rows[i] = rankcache.Entry{Member: strconv.Itoa(1_000_000 + i), Score: score(r)}
	}
	for part := range slices.Chunk(rows, 5000) {
		b.fill(t, 5, part...)
	}
	slices.SortFunc(rows, func(x, y rankcache.Entry) int {
		return cmp.Or(cmp.Compare(y.Score, x.Score), cmp.Compare(y.Member, x.Member))
	})
	return rows
}

// ladder asks for the board's ladder.
func (b board) ladder(t testing.TB) *rankcache.Ladder {
	t.Helper()
	l, err := b.Ladder(t.Context(), b.id)
	must(t, err)
	return l
}

// TestApproximateRanksAreWithin compares approximate ranks with exact ones, of boards with different scores and by all ways to read a large board.
func TestApproximateRanksAreWithin(t *testing.T) {
	for name, score := range map[string]func(*rand.Rand) float64{
		"even": func(r *rand.Rand) float64 { return float64(r.IntN(1 << 30)) },
		"ties": func(r *rand.Rand) float64 { return float64(r.IntN(8) - 4) },
		"first": func(r *rand.Rand) float64 {
			return wire.TieScore(float64(r.IntN(90)), r.Uint64N(1<<20), false)
		},
	} {
		b := newBoard(t)
		rows := largeBoard(t, b, rankcache.MinLadder, score)
		l := b.ladder(t)
		if l == nil || l.Run != testRun || l.Seq != 5 || l.Members != len(rows) || l.Changes != 0 {
			t.Fatalf("%s: ladder of %d members", name, l.Members)
		}
		for _, order := range []rankcache.Direction{rankcache.Descending, rankcache.Ascending} {
			for _, form := range []rankcache.ScoreForm{rankcache.ScoreNumber, rankcache.ScoreInteger} {
				q := rankcache.Query{Mode: rankcache.Approx, Order: order, Form: form, Percentile: true, Members: []string{"absent"}}
				for i := 0; i < len(rows); i += 1 + i/40 {
					q.Members = append(q.Members, rows[i].Member)
				}
				exact := b.ask(q)
				q.Ladder = l
				about := b.ask(q)
				must(t, cmp.Or(exact.Err, about.Err))
				checkApproximate(t, fmt.Sprint(name, order, form), &exact, &about)
			}
		}
	}
}

func checkApproximate(t *testing.T, name string, exact, about *rankcache.Answer) {
	t.Helper()
	equal(t, name+": stamp", about.State, exact.State)
	equal(t, name+": who is not on the board", about.Own[0].Standing, exact.Own[0].Standing)
	for i := range exact.Own[1:] {
		want, got := &exact.Own[i+1], &about.Own[i+1]
		if off := got.Rank - want.Rank; got.Score != want.Score || got.Ladder == nil || max(off, -off) > got.Within || got.Within > 100 {
			t.Fatalf("%s: %+v within %d, want %+v", name, got.Standing, got.Within, want.Standing)
		}
		if off := got.Ahead.Percentile(got.Stamp.Members) - want.Ahead.Percentile(want.Stamp.Members); max(off, -off) > 101 {
			t.Fatalf("%s: percentile %d, want %d", name, got.Ahead.Percentile(got.Stamp.Members), want.Ahead.Percentile(want.Stamp.Members))
		}
	}
}

// TestLadderOfAnotherRun: exact ranks are asked for.
func TestLadderOfAnotherRun(t *testing.T) {
	b := newBoard(t)
	rows := largeBoard(t, b, rankcache.MinLadder, func(r *rand.Rand) float64 { return r.Float64() })
	l := b.ladder(t)
	b.setMeta(t, testRun+1, 6)
	a := b.ask(rankcache.Query{Mode: rankcache.Approx, Ladder: l, Members: []string{rows[7000].Member}})
	must(t, a.Err)
	if own := a.Own[0]; own.Ladder != nil || own.Within != 0 || own.Rank != 7001 || a.Run != testRun+1 {
		t.Errorf("%+v within %d, run %d", own.Standing, own.Within, a.Run)
	}
}

// TestLadderIsMadeOnce by those that ask while it is young, and its age is that of its lease.
func TestLadderIsMadeOnce(t *testing.T) {
	b := newBoard(t)
	largeBoard(t, b, rankcache.MinLadder, func(r *rand.Rand) float64 { return r.Float64() })
	key, lease := b.names().LadderKey(b.id), b.names().LadderLeaseKey(b.id)
	must(t, b.client.Set(t.Context(), lease, "another", LadderEvery).Err())
	if l := b.ladder(t); l != nil {
		t.Fatal("made while another process has the lease")
	}
	must(t, b.client.Del(t.Context(), lease).Err())
	made := b.ladder(t)
	b.setMeta(t, testRun, 9)
	kept := b.ladder(t)
	if made == nil || kept == nil || made.Seq != 5 || kept.Seq != 5 || kept.At.After(made.At.Add(time.Second)) || time.Since(kept.At) > LadderEvery {
		t.Fatalf("made %v, kept %v", made != nil, kept != nil)
	}
	// Twelve seconds later: it is made anew, and while another process does so it is older than that.
	must(t, b.client.PExpire(t.Context(), key, LadderLives-12*time.Second).Err())
	if old := b.ladder(t); old.Seq != 5 || time.Since(old.At) < 12*time.Second {
		t.Errorf("an older one: seq %d, %v", old.Seq, time.Since(old.At))
	}
	must(t, b.client.Del(t.Context(), lease).Err())
	must(t, b.client.Set(t.Context(), key, "damaged", LadderLives).Err())
	if l := b.ladder(t); l.Seq != 9 || time.Since(l.At) > LadderEvery {
		t.Errorf("made anew: seq %d, %v", l.Seq, time.Since(l.At))
	}
	if left := b.client.PTTL(t.Context(), key).Val(); left <= LadderLives-LadderEvery || left > LadderLives {
		t.Errorf("expires in %v", left)
	}
}

// TestNoLadder: of small boards, of those that no writer has changed, with infinite scores, and where something else has the key.
func TestNoLadder(t *testing.T) {
	even := func(r *rand.Rand) float64 { return r.Float64() }
	for name, c := range map[string]struct {
		members int
		change  func(board)
		fails   bool
	}{
		"small":  {rankcache.MinLadder - 1, func(board) {}, false},
		"no run": {rankcache.MinLadder, func(b board) { b.client.Del(t.Context(), b.names().MetaKey(b.id)) }, false},
		"infinite": {rankcache.MinLadder, func(b board) {
			b.client.ZAdd(t.Context(), b.names().BoardKey(b.id), redis.Z{Score: math.Inf(1), Member: "x"})
		}, true},
		"not a text": {rankcache.MinLadder, func(b board) { b.client.HSet(t.Context(), b.names().LadderKey(b.id), "x", 1) }, true},
		"no expiry": {rankcache.MinLadder, func(b board) {
			b.client.Set(t.Context(), b.names().LadderKey(b.id), wire.AppendLadder(nil, b.ladder(t)), 0)
		}, false},
	} {
		b := newBoard(t)
		largeBoard(t, b, c.members, even)
		c.change(b)
		if l, err := b.Ladder(t.Context(), b.id); l != nil || (err != nil) != c.fails {
			t.Errorf("%s: a ladder is %v, %v", name, l != nil, err)
		}
	}
}

// TestLadderOfAChangingBoard: each change moves a rank by one at most, and those since are told by the seqs.
func TestLadderOfAChangingBoard(t *testing.T) {
	b := newBoard(t)
	rows := largeBoard(t, b, rankcache.MinLadder, func(r *rand.Rand) float64 { return float64(r.IntN(1 << 30)) })
	l, r := b.ladder(t), rand.New(rand.NewPCG(7, 8))
	for round := range 5 {
		var changed []rankcache.Entry
		for range 40 {
			changed = append(changed, rankcache.Entry{Member: rows[r.IntN(len(rows))].Member, Score: float64(r.IntN(1 << 30))})
		}
		b.fill(t, 5+40*(round+1), changed...)
		q := rankcache.Query{Mode: rankcache.Approx}
		for i := 0; i < len(rows); i += 50 {
			q.Members = append(q.Members, rows[i].Member)
		}
		exact := b.ask(q)
		q.Ladder = l
		about := b.ask(q)
		must(t, cmp.Or(exact.Err, about.Err))
		for i := range exact.Own {
			got := &about.Own[i]
			if off := got.Rank - exact.Own[i].Rank; max(off, -off) > got.Within+int(about.Seq-l.Seq) {
				t.Fatalf("%+v within %d and %d changes, want %d", got.Standing, got.Within, about.Seq-l.Seq, exact.Own[i].Rank)
			}
		}
	}
}

// TestApproximateWithoutMultiScore: a server that has no ZMSCORE, or a user that may not use it, is asked for each score.
func TestApproximateWithoutMultiScore(t *testing.T) {
	b := newBoard(t)
	rows := largeBoard(t, b, rankcache.MinLadder, func(r *rand.Rand) float64 { return r.Float64() })
	q := rankcache.Query{Mode: rankcache.Approx, Ladder: b.ladder(t), Members: []string{rows[0].Member, "absent", rows[99].Member}}
	want := b.ask(q)
	user := "no" + string(b.id)
	must(t, b.client.Do(t.Context(), "ACL", "SETUSER", user, "on", "nopass", "~*", "+@all", "-zmscore").Err())
	client := redis.NewClient(&redis.Options{Addr: testkit.Redis(t), Username: user, Password: "x", DisableIdentity: true})
	defer client.Close()
	b.Origin = New(client, b.names(), WithTimeout(testTimeout))
	for range 2 {
		got := b.ask(q)
		must(t, got.Err)
		equal(t, "standings", standingsOf(got.Own), standingsOf(want.Own))
	}
	if want.Own[0].Rank != 1 || want.Own[1].Found() || want.Own[2].Rank != 100 {
		t.Errorf("%+v", standingsOf(want.Own))
	}
}
