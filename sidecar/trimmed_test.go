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
	"rankcache/sidecar/internal/fixture"
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

func (o *scoreOrigin) Scores(ctx context.Context, board rankcache.BoardID, members []string) ([]rankcache.Standing, rankcache.Stamp, error) {
	o.scores.Add(int64(len(members)))
	if o.hold != nil {
		<-o.hold
	}
	return o.Origin.Scores(ctx, board, members)
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
var memberReads = map[string]func(*Reader, Query) ([]rankcache.Standing, error){
	"standings": func(r *Reader, q Query) ([]rankcache.Standing, error) {
		s, err := r.Standings(context.Background(), q, nil, []string{"out", fixture.Member(1), "nobody"})
		return s.Rows, err
	},
	"ranked": func(r *Reader, q Query) ([]rankcache.Standing, error) {
		s, err := r.RankedStandings(context.Background(), q, rankcache.Competition, []string{"out", fixture.Member(1), "nobody"})
		return s.Rows, err
	},
	"me": func(r *Reader, q Query) (rows []rankcache.Standing, err error) {
		a, err := r.Page(context.Background(), &q, 0, 5)
		for _, m := range []string{"out", fixture.Member(1), "nobody"} {
			s, _, failed := r.Me(context.Background(), &q, &a, nil, []string{m})
			rows, err = append(rows, s), errors.Join(err, failed)
		}
		return rows, err
	},
	"whole": func(r *Reader, q Query) (rows []rankcache.Standing, err error) {
		for _, m := range []string{"out", fixture.Member(1), "nobody"} {
			a := r.WholePage(context.Background(), PageRead{q, rankcache.PageQuery{Limit: 5, Member: m, Around: 2, Gap: true}})
			rows, err = append(rows, a.Own.Standing), errors.Join(err, a.Err, a.Own.Err)
		}
		return rows, err
	},
	"batch": func(r *Reader, q Query) (rows []rankcache.Standing, err error) {
		var pages []PageRead
		for _, m := range []string{"out", fixture.Member(1), "nobody"} {
			pages = append(pages, PageRead{q, rankcache.PageQuery{Limit: 5, Member: m, Around: -1}})
		}
		for _, a := range r.Batch(context.Background(), append(pages, PageRead{Query{Board: "whole"}, rankcache.PageQuery{Limit: 1}}))[:3] {
			rows, err = append(rows, a.Own.Standing), errors.Join(err, a.Err, a.Own.Err)
		}
		return rows, err
	},
}

// TestTrimmedMemberHasItsScore on each tier and by each read, and Redis is asked for it once.
// A member that never had a score has none, and a board that keeps all members asks nothing.
func TestTrimmedMemberHasItsScore(t *testing.T) {
	for _, board := range []rankcache.BoardID{"local", "hot", "any_1", "whole"} {
		env := newEnv()
		r, redis := trimReader(env)
		for what, read := range memberReads {
			rows, err := read(r, Query{Board: board})
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
		if rows, err := read(r, Query{Board: "local"}); err != nil || rows[0].Score != 4 || !rows[0].Trimmed || rows[2].Trimmed {
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
		if rows, err := read(r, Query{Board: "local"}); !errors.Is(err, rankcache.ErrUnavailable) {
			t.Errorf("%s: %+v, %v", what, rows, err)
		}
	}
	a := r.WholePage(t.Context(), PageRead{Query{Board: "local"}, rankcache.PageQuery{Limit: 5, Member: "out"}})
	if a.Err != nil || len(a.Entries) != 5 || !errors.Is(a.Own.Err, rankcache.ErrUnavailable) {
		t.Errorf("%d rows, %v, %v", len(a.Entries), a.Err, a.Own.Err)
	}
	if s, err := r.Standings(t.Context(), Query{Board: "local"}, nil, []string{fixture.Member(1)}); err != nil || s.Rows[0].Rank != 2 {
		t.Errorf("a member on the board: %+v, %v", s, err)
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
				s, err := r.Standings(t.Context(), Query{Board: "local"}, nil, []string{"out"})
				if err != nil || s.Rows[0].Score != 5.25 {
					t.Errorf("%+v, %v", s.Rows, err)
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
		read := func(what string, q Query, score float64, asks int64) {
			t.Helper()
			q.Board = "local"
			s, err := r.Standings(t.Context(), q, nil, []string{"out"})
			if calls += asks; err != nil || s.Rows[0].Score != score || redis.scores.Load() != calls {
				t.Errorf("%s: %+v, %v, %d calls, want %v and %d", what, s.Rows, err, redis.scores.Load(), score, calls)
			}
		}
		env.Local.Publish(20)
		read("first", Query{}, 5.25, 1)
		redis.Trimmed.Store("out", 6.0)
		env.Origin.Seq.Store(13)
		time.Sleep(9 * time.Second)
		read("kept", Query{}, 5.25, 0)
		read("a write that it does not have", Query{MinSeq: 13}, 6, 1)
		read("one that it has", Query{MinState: fixture.Written.StateAt(13)}, 6, 0)
		redis.Trimmed.Store("out", 7.0)
		time.Sleep(5 * time.Second)
		env.Local.At = time.Now()
		read("too old", Query{MaxAge: time.Second}, 7, 1)
		redis.Trimmed.Store("out", 8.0)
		time.Sleep(11 * time.Second)
		read("after 11 s", Query{}, 8, 1)
		if _, err := r.Standings(t.Context(), Query{Board: "local", MinSeq: 14}, nil, []string{"out"}); !errors.Is(err, ErrNotReached) {
			t.Errorf("a score that is older than the write: %v", err)
		}
	})
}

// TestFewScoresAreKept, however many members are asked for.
func TestFewScoresAreKept(t *testing.T) {
	var kept trimmed
	rows := make([]rankcache.Standing, rankcache.MaxTop)
	for i := range 10 * maxScores / len(rows) {
		for j := range rows {
			rows[j].Member = fmt.Sprint(i, "/", j)
		}
		kept.keep("b", rows, rankcache.Stamp{At: time.Now()})
	}
	if n := len(kept.newer) + len(kept.old); n > 2*maxScores || n < maxScores {
		t.Errorf("%d are kept", n)
	}
	if s := (rankcache.Standing{Member: rows[0].Member}); !kept.look(&Query{Board: "b"}, &s) {
		t.Error("the last one is not")
	}
}
