package sidecar

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"rankcache"
	"rankcache/sidecar/internal/fixture"
)

// TestSurroundingsOnATop: what a head of a board tells of a member, and what it can't.
func TestSurroundingsOnATop(t *testing.T) {
	rows := []rankcache.Entry{{Member: "a", Score: 9}, {Member: "b", Score: 7}, {Member: "c", Score: 7}, {Member: "d", Score: 7}, {Member: "e", Score: 5}}
	own := func(i, first, end int, better ...float64) rankcache.Surroundings {
		s := rankcache.Surroundings{Standing: rankcache.Standing{Member: rows[i].Member, Score: rows[i].Score, Rank: i + 1}, First: first}
		if end > 0 {
			s.Neighbours = rows[first:end]
		}
		if s.HasBetter = len(better) > 0; s.HasBetter {
			s.Better = better[0]
		}
		return s
	}
	for _, c := range []struct {
		name, member  string
		around        int
		gap           bool
		part, ofWhole bool // whether a top that is a part of the board tells it, and one that is all of it
		want          rankcache.Surroundings
	}{
		{"the first", "a", 2, true, true, true, own(0, 0, 3)},
		{"behind a tie", "d", 1, true, true, true, own(3, 2, 5, 9)},
		{"at the end", "e", 0, true, true, true, own(4, 4, 5, 7)},
		{"beyond the end", "e", 1, true, false, true, own(4, 3, 5, 7)},
		{"no gap", "b", 0, false, true, true, own(1, 1, 2)},
		{"no neighbours", "e", -1, true, true, true, own(4, 0, 0, 7)},
		{"absent", "x", 1, true, false, true, rankcache.Surroundings{Standing: rankcache.Standing{Member: "x"}}},
	} {
		q := &rankcache.PageQuery{Member: c.member, Around: c.around, Gap: c.gap, Percentile: true}
		if row := max(c.want.Rank-1, 0); c.want.Rank > 0 {
			if c.around >= 0 {
				row = c.want.First
			}
			c.want.Ahead = rankcache.Ahead{Members: []int{0, 1, 1, 1, 4}[row], Scores: -1}
		}
		for members, told := range map[int]bool{len(rows): c.ofWhole, 1000: c.part} {
			got, ok := surroundingsIn(&rankcache.Top{Entries: rows, Members: members}, q)
			if ok != told {
				t.Errorf("%s, %d members: told %v, want %v", c.name, members, ok, told)
			}
			if diff := cmp.Diff(c.want, got); ok && diff != "" {
				t.Errorf("%s, %d members (-want +got):\n%s", c.name, members, diff)
			}
		}
	}
}

// TestWholePageSources checks what answers page and member, at which seqs, and how often
// Redis is asked.
func TestWholePageSources(t *testing.T) {
	for _, c := range []struct {
		name   string
		q      Query
		w      rankcache.PageQuery
		source Source
		calls  int64
		ownSeq uint64
		rank   int
	}{
		{"local", Query{Board: "local"}, rankcache.PageQuery{Limit: 50, Member: fixture.Member(900)}, SourceLocal, 0, 917, 901},
		{"behind the local head", Query{Board: "local"}, rankcache.PageQuery{Start: 600, Limit: 50, Member: fixture.Member(0)}, SourceLocal, 0, 917, 1},
		{"local, ascending", Query{Board: "local", Order: rankcache.Ascending}, rankcache.PageQuery{Limit: 50, Member: fixture.Member(0)}, SourceLocal, 0, 917, 57000},
		{"local, too old", Query{Board: "local", MaxAge: 1}, rankcache.PageQuery{Limit: 50, Member: fixture.Member(0)}, SourceRedis, 1, 12, 1},
		{"on the hot top", Query{Board: "hot"}, rankcache.PageQuery{Limit: 50, Member: fixture.Member(90)}, SourceHot, 0, 33, 91},
		{"neighbours beyond the hot top", Query{Board: "hot"}, rankcache.PageQuery{Limit: 50, Member: fixture.Member(97)}, SourceHot, 1, 12, 98},
		{"beyond the hot top", Query{Board: "hot"}, rankcache.PageQuery{Limit: 50, Member: fixture.Member(200)}, SourceHot, 1, 12, 201},
		{"page beyond the hot top", Query{Board: "hot"}, rankcache.PageQuery{Start: 60, Limit: 50, Member: fixture.Member(0)}, SourceRedis, 1, 12, 1},
		{"Redis", Query{Board: "any"}, rankcache.PageQuery{Limit: 50, Member: fixture.Member(200)}, SourceRedis, 1, 12, 201},
		{"absent", Query{Board: "any"}, rankcache.PageQuery{Limit: 50, Member: "nobody"}, SourceRedis, 1, 12, 0},
	} {
		env := newEnv()
		c.w.Around, c.w.Gap = 4, true
		a := env.reader().WholePage(t.Context(), PageRead{c.q, c.w})
		if a.Err != nil || a.Own.Err != nil || a.Source != c.source || a.Start != c.w.Start || a.Own.Seq != c.ownSeq || a.Own.Rank != c.rank || env.Origin.Calls.Load() != c.calls {
			t.Errorf("%s: %v from %d at seq %d, rank %d at seq %d, %d calls, %v, %v", c.name, a.Source, a.Start, a.Seq, a.Own.Rank, a.Own.Seq,
				env.Origin.Calls.Load(), a.Err, a.Own.Err)
		}
	}
}

// moving is a board that is published again between being found and being read.
type moving struct{ *fixture.Board }

func (b moving) WholePage(q rankcache.PageQuery) (rankcache.WholePage, *rankcache.Top) {
	b.Publish(b.Head.Load().Seq + 1)
	return b.Board.WholePage(q)
}

// TestWholePageOfAMovingBoard: rows and member are of the moment that was read, on the head
// and beyond it.
func TestWholePageOfAMovingBoard(t *testing.T) {
	env := newEnv()
	cfg := env.config()
	cfg.Boards = fixture.Boards[Board]{"local": moving{env.Local}}
	r := readerOf(t, cfg)
	for _, start := range []int{0, 600} {
		a := r.WholePage(t.Context(), PageRead{Query{Board: "local"}, rankcache.PageQuery{Start: start, Limit: 5, Member: fixture.Member(3)}})
		seq := env.Local.Head.Load().Seq
		if a.Err != nil || a.Seq != seq || a.Own.Seq != seq || a.Entries[0].Score != fixture.ScoreAt(seq, env.Local.N, start) ||
			a.Own.Score != fixture.ScoreAt(seq, env.Local.N, 3) {
			t.Errorf("from %d at seq %d: %+v", start, seq, a)
		}
	}
}

// TestWholePageBounds: it is answered under the same rule as a page.
func TestWholePageBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv()
		r := env.reader()
		ask := func(q Query) PageAnswer {
			return r.WholePage(t.Context(), PageRead{q, rankcache.PageQuery{Limit: 5, Member: fixture.Member(3), Around: 1}})
		}
		if a := ask(Query{Board: "local", MinSeq: 918}); !errors.Is(a.Err, ErrNotReached) {
			t.Errorf("Redis behind: %+v", a)
		}
		if a := ask(Query{Board: "local", MinState: fixture.History{Run: fixture.Written.Run, Salt: 1}.StateAt(917)}); !errors.Is(a.Err, ErrWriteLost) {
			t.Errorf("another history: %+v", a)
		}
		time.AfterFunc(30*time.Millisecond, func() { env.Local.Publish(918) })
		if a := ask(Query{Board: "local", MinSeq: 918, Wait: time.Second}); a.Err != nil || a.Source != SourceLocal || a.Seq != 918 || a.Own.Seq != 918 {
			t.Errorf("waited: %+v", a)
		}
	})
}

// TestBatchRefuses: a read that can't be answered has its own error.
func TestBatchRefuses(t *testing.T) {
	env := newEnv()
	answers := env.reader().Batch(t.Context(), []PageRead{
		{Query{Board: "any"}, rankcache.PageQuery{Limit: 5, Around: -1}},
		{Query{Board: "a b"}, rankcache.PageQuery{Limit: 5}},
		{Query{Board: "any"}, rankcache.PageQuery{Limit: 5, Member: "\x00"}},
		{Query{Board: "shut"}, rankcache.PageQuery{Limit: 5}},
		{Query{Board: "any"}, rankcache.PageQuery{}},
		{Query{Board: "any"}, rankcache.PageQuery{Limit: 5, Around: MaxAround + 1}},
	})
	for i, want := range []error{nil, rankcache.ErrBoard, rankcache.ErrMember, ErrBlocked, ErrRange, ErrRange} {
		if !errors.Is(answers[i].Err, want) {
			t.Errorf("read %d: %v, want %v", i, answers[i].Err, want)
		}
	}
	if a := answers[0]; len(a.Entries) != 5 || env.Origin.Calls.Load() != 1 {
		t.Errorf("%d rows with %d calls", len(a.Entries), env.Origin.Calls.Load())
	}
}

// shortOrigin answers without the neighbours of the member.
type shortOrigin struct{ *fixture.Origin }

func (o shortOrigin) WholePages(_ context.Context, queries []rankcache.PageQuery) []rankcache.WholePage {
	pages := make([]rankcache.WholePage, len(queries))
	pages[0].Own.Rank = 7
	return pages
}

// TestOriginWithoutTheMember: an answer whose rows lack the member is refused.
func TestOriginWithoutTheMember(t *testing.T) {
	env := newEnv()
	cfg := env.config()
	cfg.Origin = shortOrigin{env.Origin}
	read := PageRead{Query{Board: "any"}, rankcache.PageQuery{Limit: 5, Member: "a", Around: 1}}
	if a := readerOf(t, cfg).WholePage(t.Context(), read); a.Err == nil {
		t.Errorf("%+v", a)
	}
}
