package sidecar

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"rankcache"
	"rankcache/internal/testkit/fixture"
)

// TestWholeSources checks what answers page and member, at which seqs, and how often
// Redis is asked.
func TestWholeSources(t *testing.T) {
	for _, c := range []struct {
		name   string
		q      rankcache.Query
		source rankcache.Source
		calls  int64
		ownSeq uint64
		rank   int
	}{
		{"local", rankcache.Query{Board: "local", Limit: 50, Members: []string{fixture.Member(900)}}, rankcache.SourceLocal, 0, 917, 901},
		{"behind the local head", rankcache.Query{Board: "local", Start: 600, Limit: 50, Members: []string{fixture.Member(0)}}, rankcache.SourceLocal, 0, 917, 1},
		{"local, ascending", rankcache.Query{Board: "local", Order: rankcache.Ascending, Limit: 50, Members: []string{fixture.Member(0)}}, rankcache.SourceLocal, 0, 917, 57000},
		{"local, too old", rankcache.Query{Board: "local", MaxAge: 1, Limit: 50, Members: []string{fixture.Member(0)}}, rankcache.SourceRedis, 1, 12, 1},
		{"on the hot top", rankcache.Query{Board: "hot", Limit: 50, Members: []string{fixture.Member(90)}}, rankcache.SourceHot, 0, 33, 91},
		{"neighbours beyond the hot top", rankcache.Query{Board: "hot", Limit: 50, Members: []string{fixture.Member(97)}}, rankcache.SourceHot, 1, 12, 98},
		{"beyond the hot top", rankcache.Query{Board: "hot", Limit: 50, Members: []string{fixture.Member(200)}}, rankcache.SourceHot, 1, 12, 201},
		{"page beyond the hot top", rankcache.Query{Board: "hot", Start: 60, Limit: 50, Members: []string{fixture.Member(0)}}, rankcache.SourceRedis, 1, 12, 1},
		{"Redis", rankcache.Query{Board: "any", Limit: 50, Members: []string{fixture.Member(200)}}, rankcache.SourceRedis, 1, 12, 201},
		{"absent", rankcache.Query{Board: "any", Limit: 50, Members: []string{"nobody"}}, rankcache.SourceRedis, 1, 12, 0},
	} {
		env := newEnv()
		c.q.Around, c.q.Gap = 9, true
		a := rankcache.One(t.Context(), env.reader(), c.q)
		own := &a.Own[0]
		if a.Err != nil || own.Err != nil || a.Source != c.source || a.Start != c.q.Start || own.Stamp.Seq != c.ownSeq || own.Rank != c.rank || env.Origin.Calls.Load() != c.calls {
			t.Errorf("%s: %v from %d at seq %d, rank %d at seq %d, %d calls, %v, %v", c.name, a.Source, a.Start, a.Seq, own.Rank, own.Stamp.Seq,
				env.Origin.Calls.Load(), a.Err, own.Err)
		}
	}
}

// TestWholeBounds: it is answered under the same rule as a page.
func TestWholeBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv()
		r := env.reader()
		ask := func(q rankcache.Query) rankcache.Answer {
			q.Limit = 5
			return of(t.Context(), r, q, 3, fixture.Member(3))
		}
		if a := ask(rankcache.Query{Board: "local", MinSeq: 918}); !errors.Is(a.Err, ErrNotReached) {
			t.Errorf("Redis behind: %+v", a)
		}
		if a := ask(rankcache.Query{Board: "local", MinState: fixture.History{Run: fixture.Written.Run, Salt: 1}.StateAt(917)}); !errors.Is(a.Err, ErrWriteLost) {
			t.Errorf("another history: %+v", a)
		}
		time.AfterFunc(30*time.Millisecond, func() { env.Local.Publish(918) })
		if a := ask(rankcache.Query{Board: "local", MinSeq: 918, Wait: time.Second}); a.Err != nil || a.Source != rankcache.SourceLocal || a.Seq != 918 || a.Own[0].Stamp.Seq != 918 {
			t.Errorf("waited: %+v", a)
		}
	})
}

// TestSeveralQueriesRefuse: one that can't be answered has its own error.
func TestSeveralQueriesRefuse(t *testing.T) {
	env := newEnv()
	qs := []rankcache.Query{{Board: "any", Limit: 5}, {Board: "a b", Limit: 5}, {Board: "any", Limit: 5, Members: []string{"\x00"}, Around: 1},
		{Board: "shut", Limit: 5}, {Board: "any"}, {Board: "any", Limit: 5, Around: 2*MaxAround + 3}, {Board: "local", Limit: 5, Mode: rankcache.Dense}, {Board: "any", Limit: 5, Mode: rankcache.Dense}}
	answers := make([]rankcache.Answer, len(qs))
	env.reader().Read(t.Context(), qs, answers)
	for i, want := range []error{nil, rankcache.ErrBoard, rankcache.ErrMember, ErrBlocked, ErrRange, ErrRange, nil, rankcache.ErrRankMode} {
		if !errors.Is(answers[i].Err, want) {
			t.Errorf("query %d: %v, want %v", i, answers[i].Err, want)
		}
	}
	if a := answers[0]; len(a.Entries) != 5 || env.Origin.Calls.Load() != 1 {
		t.Errorf("%d rows with %d calls", len(a.Entries), env.Origin.Calls.Load())
	}
}

// TestSeveralMembersBesideRows: those on a hot page, or on a page of Redis, are of it; the others
// are asked for together.
func TestSeveralMembersBesideRows(t *testing.T) {
	for _, c := range []struct {
		board rankcache.BoardID
		calls int64
		seqs  [3]uint64
	}{{"local", 0, [3]uint64{917, 917, 917}}, {"hot", 1, [3]uint64{33, 12, 12}}, {"any", 2, [3]uint64{12, 12, 12}}} {
		env := newEnv()
		a := rankcache.One(t.Context(), env.reader(), rankcache.Query{Board: c.board, Limit: 5, Members: []string{fixture.Member(2), fixture.Member(700), fixture.Member(300)}})
		for i, rank := range []int{3, 701, 301} {
			if own := a.Own[i]; a.Err != nil || own.Err != nil || own.Rank != rank || own.Stamp.Seq != c.seqs[i] {
				t.Errorf("%s, member %d: %+v, %v", c.board, i, own, a.Err)
			}
		}
		if n := env.Origin.Calls.Load(); n != c.calls {
			t.Errorf("%s: %d calls, want %d", c.board, n, c.calls)
		}
	}
}

// shortOrigin answers without the neighbours of the member.
type shortOrigin struct{ *fixture.Origin }

func (o shortOrigin) Read(_ context.Context, qs []rankcache.Query, as []rankcache.Answer) {
	as[0].Begin(&qs[0], rankcache.SourceRedis, rankcache.Stamp{}, time.Time{})
	as[0].Own[0].Rank = 7
}

// TestOriginWithoutTheMember: an answer whose rows lack the member is refused.
func TestOriginWithoutTheMember(t *testing.T) {
	env := newEnv()
	cfg := env.config()
	cfg.Origin = shortOrigin{env.Origin}
	if a := of(t.Context(), readerOf(t, cfg), rankcache.Query{Board: "any", Limit: 5}, 3, "a"); a.Err == nil {
		t.Errorf("%+v", a)
	}
}
