package sidecar

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rankcache"
	"rankcache/internal/testkit/fixture"
)

// trimming has each board of the tests trimmed, but for those that begin with "whole".
const trimming = fixture.Rooms + `
classes:
  - {name: local, board: local, period: none, ops: [incr], trim: 10}
  - {name: hot, board: "hot", period: none, ops: [incr], trim: 10, ties: first}
  - {name: any, board: "any_{x}", period: none, ops: [incr], trim: 10}
  - {name: whole, board: "whole", period: none, ops: [incr]}
`

// scoreOrigin counts the members whose scores it is asked for.
type scoreOrigin struct {
	*fixture.Origin
	scores atomic.Int64
	hold   chan struct{} // keeps such a call until it is closed; nil: not at all
}

func (o *scoreOrigin) Read(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer) {
	if qs[0].Trimmed {
		o.scores.Add(int64(len(qs[0].Members)))
		if o.hold != nil {
			<-o.hold
		}
	}
	o.Origin.Read(ctx, qs, as)
}

// trimReader returns a reader of boards where "out" is a member without a rank.
func trimReader(env *testEnv) (*Reader, *scoreOrigin) {
	o := &scoreOrigin{Origin: env.Origin}
	o.Trimmed.Store("out", 5.25)
	cfg := env.config()
	cfg.Tiers, cfg.Origin = fixture.Tiers(trimming), o
	r, err := NewReader(cfg, nil)
	if err != nil {
		panic(err)
	}
	return r, o
}

// memberReads are all ways to read members, each with two that have no rank.
var memberReads = func() map[string]func(*Reader, rankcache.Query) ([]rankcache.Standing, error) {
	all := make(map[string]func(*Reader, rankcache.Query) ([]rankcache.Standing, error))
	members := []string{"out", fixture.Member(1), "nobody"}
	for what, kind := range map[string]rankcache.Query{"standings": {}, "ranked": {Mode: rankcache.Competition}, "me": {Limit: 5}, "whole": {Limit: 5, Around: 5, Gap: true}} {
		all[what] = func(r *Reader, q rankcache.Query) (rows []rankcache.Standing, err error) {
			q.Limit, q.Around, q.Gap, q.Mode, q.Members = kind.Limit, kind.Around, kind.Gap, kind.Mode, members
			return rowsOf(rankcache.One(context.Background(), r, q))
		}
	}
	all["batch"] = func(r *Reader, q rankcache.Query) (rows []rankcache.Standing, err error) {
		qs := []rankcache.Query{{Board: "whole", Limit: 1}}
		for _, m := range members {
			q.Limit, q.Members = 5, []string{m}
			qs = append(qs, q)
		}
		as := make([]rankcache.Answer, len(qs))
		r.Read(context.Background(), qs, as)
		for _, a := range as[1:] {
			row, failed := rowsOf(a)
			rows, err = append(rows, row...), errors.Join(err, failed)
		}
		return rows, err
	}
	return all
}()

func rowsOf(a rankcache.Answer) (rows []rankcache.Standing, err error) {
	err = a.Err
	for _, own := range a.Own {
		rows, err = append(rows, own.Standing), errors.Join(err, own.Err)
	}
	return rows, err
}

// TestTrimmedMemberHasItsScore on each tier and by each read, and Redis is asked for it once.
// A member that never had a score has none, and a board that keeps all members asks nothing.
func TestTrimmedMemberHasItsScore(t *testing.T) {
	for _, board := range []rankcache.BoardID{"local", "hot", "any_1", "whole"} {
		env := newEnv()
		r, redis := trimReader(env)
		for what, read := range memberReads {
			rows, err := read(r, rankcache.Query{Board: board})
			want := rankcache.Standing{Member: "out", Score: 5.25, Trimmed: true}
			if board == "whole" {
				want = rankcache.Standing{Member: "out"}
			}
			if err != nil || len(rows) != 3 || rows[0] != want || rows[1].Rank != 2 || rows[1].Trimmed || rows[2] != (rankcache.Standing{Member: "nobody"}) {
				t.Errorf("%s, %s: %+v, %v", board, what, rows, err)
			}
		}
		want := int64(2) // out and nobody
		if board == "whole" {
			want = 0
		}
		if n := redis.scores.Load(); n != want {
			t.Errorf("%s: Redis was asked for %d scores, want %d", board, n, want)
		}
	}
}

// TestTrimmedMemberFromTheLedger while Redis is away.
func TestTrimmedMemberFromTheLedger(t *testing.T) {
	env := newEnv()
	ledger := fixture.New().Origin
	ledger.Trimmed.Store("out", 4.0)
	cfg := env.config()
	cfg.Tiers, cfg.Ledger = fixture.Tiers(trimming), ledger
	r := readerOf(t, cfg)
	env.Origin.FailWith(errAway)
	for what, read := range memberReads {
		if rows, err := read(r, rankcache.Query{Board: "local"}); err != nil || rows[0].Score != 4 || !rows[0].Trimmed || rows[2].Trimmed {
			t.Errorf("%s: %+v, %v", what, rows, err)
		}
	}
}

// TestScoreThatIsNotKnown: without Redis it is not known whether a member without a rank has a
// score. The page of a copy is answered all the same.
func TestScoreThatIsNotKnown(t *testing.T) {
	env := newEnv()
	r, _ := trimReader(env)
	env.Origin.FailWith(errAway)
	for what, read := range memberReads {
		if rows, err := read(r, rankcache.Query{Board: "local"}); !errors.Is(err, rankcache.ErrUnavailable) {
			t.Errorf("%s: %+v, %v", what, rows, err)
		}
	}
	a := of(t.Context(), r, rankcache.Query{Board: "local", Limit: 5}, 0, "out")
	if a.Err != nil || len(a.Entries) != 5 || !errors.Is(a.Own[0].Err, rankcache.ErrUnavailable) {
		t.Errorf("%d rows, %v, %v", len(a.Entries), a.Err, a.Own)
	}
	if a := of(t.Context(), r, rankcache.Query{Board: "local"}, 0, fixture.Member(1)); a.Err != nil || a.Own[0].Err != nil || a.Own[0].Rank != 2 {
		t.Errorf("a member on the board: %+v", a)
	}
}

// TestCrowdAsksForOneScore: those who ask for it at the same time share one call.
func TestCrowdAsksForOneScore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, redis := trimReader(newEnv())
		redis.hold = make(chan struct{})
		var crowd sync.WaitGroup
		for range 200 {
			crowd.Go(func() {
				a := of(t.Context(), r, rankcache.Query{Board: "local"}, 0, "out")
				if a.Err != nil || a.Own[0].Score != 5.25 {
					t.Errorf("%+v, %v", a.Own, a.Err)
				}
			})
		}
		synctest.Wait()
		close(redis.hold)
		crowd.Wait()
		if n := redis.scores.Load(); n != 1 {
			t.Errorf("Redis was asked %d times", n)
		}
	})
}

// TestAgeOfAScore: it is kept for 10 s, and not where that is too old for the request.
func TestAgeOfAScore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv()
		r, redis := trimReader(env)
		calls := int64(0)
		read := func(what string, q rankcache.Query, score float64, asks int64) {
			t.Helper()
			q.Board = "local"
			a := of(t.Context(), r, q, 0, "out")
			if calls += asks; a.Err != nil || a.Own[0].Score != score || redis.scores.Load() != calls {
				t.Errorf("%s: %+v, %v, %d calls, want %v and %d", what, a.Own, a.Err, redis.scores.Load(), score, calls)
			}
		}
		env.Local.Publish(20)
		read("first", rankcache.Query{}, 5.25, 1)
		redis.Trimmed.Store("out", 6.0)
		env.Origin.Seq.Store(13)
		time.Sleep(9 * time.Second)
		read("kept", rankcache.Query{}, 5.25, 0)
		read("a write that it does not have", rankcache.Query{MinSeq: 13}, 6, 1)
		read("one that it has", rankcache.Query{MinState: fixture.Written.StateAt(13)}, 6, 0)
		redis.Trimmed.Store("out", 7.0)
		time.Sleep(5 * time.Second)
		env.Local.At = time.Now()
		read("too old", rankcache.Query{MaxAge: time.Second}, 7, 1)
		redis.Trimmed.Store("out", 8.0)
		time.Sleep(11 * time.Second)
		read("after 11 s", rankcache.Query{}, 8, 1)
		if a := of(t.Context(), r, rankcache.Query{Board: "local", MinSeq: 14}, 0, "out"); !errors.Is(a.Own[0].Err, ErrNotReached) {
			t.Errorf("a score that is older than the write: %+v", a)
		}
	})
}

// TestFewScoresAreKept, however many members are asked for.
func TestFewScoresAreKept(t *testing.T) {
	kept := trimmed{scores: recent[keptScore]{life: scoreTime, most: maxScores}}
	a := rankcache.Answer{Own: make([]rankcache.Own, rankcache.MaxTop), Stamp: rankcache.Stamp{At: time.Now()}}
	for i := range 10 * maxScores / len(a.Own) {
		for j := range a.Own {
			a.Own[j].Member = fmt.Sprint(i, "/", j)
		}
		kept.keep("b", &a, a.At)
	}
	if n := len(kept.scores.newer) + len(kept.scores.old); n > 2*maxScores || n < maxScores {
		t.Errorf("%d are kept", n)
	}
	if own := (rankcache.Own{Standing: rankcache.Standing{Member: a.Own[0].Member}}); !kept.look(&rankcache.Query{Board: "b"}, &own) {
		t.Error("the last one is not")
	}
}
