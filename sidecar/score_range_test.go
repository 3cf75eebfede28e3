package sidecar

import (
	"context"
	"math"
	"sync"
	"testing"
	"testing/synctest"

	"rankcache"
	"rankcache/internal/testkit/fixture"
)

// TestRangeSources checks what answers between two scores, and how often Redis is asked: a hot page answers what it proves.
func TestRangeSources(t *testing.T) {
	inf := math.Inf(1)
	scoreOf := func(seq uint64, n, member int) float64 { return fixture.ScoreAt(seq, n, member) }
	env := newEnv()
	hot := func(member int) float64 {
		top, _ := env.Hot.Get("hot")
		return top.Entries[member].Score
	}
	last := func() int {
		top, _ := env.Hot.Get("hot")
		return len(top.Entries) - 1
	}()
	for _, c := range []struct {
		name        string
		q           rankcache.Query
		least, most float64
		source      rankcache.Source
		calls       int64
		start       int
		matches     int
	}{
		{"local", rankcache.Query{Board: "local", Limit: 5}, scoreOf(917, 57000, 700), scoreOf(917, 57000, 600), rankcache.SourceLocal, 0, 600, 101},
		{"local count", rankcache.Query{Board: "local"}, scoreOf(917, 57000, 700), inf, rankcache.SourceLocal, 0, 0, 701},
		{"local, ascending", rankcache.Query{Board: "local", Limit: 5, Order: rankcache.Ascending}, -inf, scoreOf(917, 57000, 56990), rankcache.SourceLocal, 0, 0, 10},
		{"local, too old", rankcache.Query{Board: "local", Limit: 5, MaxAge: 1}, scoreOf(12, 1000, 3), scoreOf(12, 1000, 2), rankcache.SourceRedis, 1, 2, 2},
		{"hot, proved", rankcache.Query{Board: "hot", Limit: 5}, hot(last - 1), hot(3), rankcache.SourceHot, 0, 3, last - 3},
		{"hot rank", rankcache.Query{Board: "hot"}, hot(7), hot(7), rankcache.SourceHot, 0, 7, 1},
		{"hot, above all", rankcache.Query{Board: "hot"}, 1e9, 1e9, rankcache.SourceHot, 0, 0, 0},
		{"hot, with a member of it", rankcache.Query{Board: "hot", Limit: 5, Members: []string{fixture.Member(5)}, Around: 3, Gap: true}, hot(9), inf, rankcache.SourceHot, 0, 0, 10},
		{"hot, with a member beyond it", rankcache.Query{Board: "hot", Limit: 5, Members: []string{fixture.Member(500)}, Around: 3, Gap: true}, hot(9), inf, rankcache.SourceHot, 1, 0, 10},
		{"hot, the last row", rankcache.Query{Board: "hot", Limit: 5}, hot(last), hot(3), rankcache.SourceRedis, 1, 0, 0},
		{"hot, below", rankcache.Query{Board: "hot"}, 0, 0, rankcache.SourceRedis, 1, 1000, 0},
		{"hot, ascending", rankcache.Query{Board: "hot", Order: rankcache.Ascending}, hot(7), hot(7), rankcache.SourceRedis, 1, 1000, 0},
		{"Redis", rankcache.Query{Board: "any", Start: 1, Limit: 5}, scoreOf(12, 1000, 9), scoreOf(12, 1000, 2), rankcache.SourceRedis, 1, 3, 8},
		{"Redis, with a member", rankcache.Query{Board: "any", Limit: 5, Members: []string{fixture.Member(500)}}, scoreOf(12, 1000, 9), inf, rankcache.SourceRedis, 1, 0, 10},
		{"nothing asked of Redis", rankcache.Query{Board: "any", CopiesOnly: true}, 0, 1, rankcache.SourceLocal, 0, 0, 0},
	} {
		env := newEnv()
		c.q.Range = &rankcache.ScoreRange{Least: c.least, Most: c.most, Shown: true}
		a := rankcache.One(t.Context(), env.reader(), c.q)
		if c.q.CopiesOnly {
			if a.Err != rankcache.ErrNotKept || env.Origin.Calls.Load() != 0 {
				t.Errorf("%s: %v", c.name, a.Err)
			}
			continue
		}
		if a.Err != nil || a.Source != c.source || env.Origin.Calls.Load() != c.calls || a.Source != rankcache.SourceRedis && a.Start != c.start || len(a.Entries) > c.q.Limit || a.Beyond {
			t.Errorf("%s: %v from %d after %d calls, %d rows, %v", c.name, a.Source, a.Start, env.Origin.Calls.Load(), len(a.Entries), a.Err)
		}
		if a.Source != rankcache.SourceRedis || c.q.Board == "any" || c.name == "local, too old" {
			if a.Start != c.start || a.Matches != c.matches || len(a.Entries) != max(min(c.q.Limit, c.matches-c.q.Start), 0) {
				t.Errorf("%s: start %d, %d matches, %d rows; want %d, %d", c.name, a.Start, a.Matches, len(a.Entries), c.start, c.matches)
			}
		}
		for i := range a.Own {
			if own := &a.Own[i]; own.Err != nil || own.Rank == 0 || c.q.Around > 0 && len(own.Neighbours) == 0 {
				t.Errorf("%s: %+v", c.name, own)
			}
		}
	}
}

// TestRangesShareNoFlight: callers who ask for other scores at the same time get their own answers, those who ask for
// the same ones share a call.
func TestRangesShareNoFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv()
		env.Origin.Hold = make(chan struct{})
		r := env.reader()
		var answered sync.WaitGroup
		for i := range 40 {
			answered.Go(func() {
				scores := rankcache.ScoreRange{Least: fixture.ScoreAt(12, 1000, i%4), Most: math.Inf(1), Shown: true}
				q := rankcache.Query{Board: "any", Limit: 9, Range: &scores}
				as := make([]rankcache.Answer, 1)
				r.Read(context.Background(), []rankcache.Query{q}, as)
				if as[0].Err != nil || as[0].Matches != i%4+1 || len(as[0].Entries) != i%4+1 {
					t.Errorf("%d: %+v", i%4, as[0])
				}
				scores.Least = 0 // the caller's own
			})
		}
		synctest.Wait()
		close(env.Origin.Hold)
		answered.Wait()
		if n := env.Origin.Calls.Load(); n != 4 {
			t.Errorf("%d calls, want 4", n)
		}
	})
}

// TestRangeBeyondATrimmedBoard: below the last member that is kept there may be others.
func TestRangeBeyondATrimmedBoard(t *testing.T) {
	for _, board := range []rankcache.BoardID{"local", "any_1", "whole"} {
		env := newEnv()
		env.Local.N = 10 // as many as the class keeps
		env.Local.Publish(917)
		env.Origin.N.Store(10)
		r, _ := trimReader(env)
		seq := env.Origin.Seq.Load()
		if board == "local" {
			seq = 917
		}
		at := func(member int) float64 { return fixture.ScoreAt(seq, 10, member) }
		trims := board != "whole"
		for _, c := range []struct {
			what        string
			least, most float64
			order       rankcache.Direction
			beyond      bool
			rank        int
		}{
			{"above all", at(0) + 1, at(0) + 1, rankcache.Descending, false, 1},
			{"the last kept", at(9), at(9), rankcache.Descending, true, 10},
			{"a little above", at(9) + 0.5, at(9) + 0.5, rankcache.Descending, false, 10},
			{"below", at(9) - 0.5, at(9) - 0.5, rankcache.Descending, true, 0},
			{"down to the last", at(9), at(3), rankcache.Descending, true, 4},
			{"upwards, below", at(9) - 0.5, at(9) - 0.5, rankcache.Ascending, true, 0},
			{"upwards, the last kept", at(9), at(9), rankcache.Ascending, true, 1},
			{"upwards", at(8), at(8), rankcache.Ascending, false, 2},
		} {
			q := rankcache.Query{Board: board, Order: c.order, Range: &rankcache.ScoreRange{Least: c.least, Most: c.most, Shown: true}}
			want := c.rank
			if !trims && c.rank == 0 {
				want = map[rankcache.Direction]int{rankcache.Descending: 11, rankcache.Ascending: 1}[c.order]
			}
			a := rankcache.One(t.Context(), r, q)
			both := make([]rankcache.Answer, 2)
			r.Read(t.Context(), []rankcache.Query{{Board: "other", Limit: 1}, q}, both)
			if a.Err != nil || a.Beyond != (c.beyond && trims) || a.ScoreRank() != want || both[1].Beyond != a.Beyond || both[1].ScoreRank() != want {
				t.Errorf("%s of %s: beyond %t, rank %d, together %t and %d, %v; want %t and %d", c.what, board, a.Beyond, a.ScoreRank(), both[1].Beyond, both[1].ScoreRank(), a.Err, c.beyond && trims, want)
			}
		}
	}
}
