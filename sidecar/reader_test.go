package sidecar

import (
	"context"
	"errors"
	"testing"
	"time"
	"unsafe"

	"rankcache"
	"rankcache/rooms"
	"rankcache/sidecar/internal/fixture"
	"rankcache/wire"
)

// TestReaderSources has for each query the source that answers, and the number of calls
// to Redis.
func TestReaderSources(t *testing.T) {
	for _, c := range []struct {
		name         string
		q            Query
		start, limit int
		source       Source
		calls        int64
		rows, first  int // number of rows, and which member is first
	}{
		{"open super-hot", Query{Board: "local"}, 0, 50, SourceLocal, 0, 50, 0},
		{"behind the head", Query{Board: "local"}, 480, 50, SourceLocal, 0, 50, 480},
		{"past the end", Query{Board: "local"}, 57000, 50, SourceLocal, 0, 0, 0},
		{"ascending", Query{Board: "local", Order: rankcache.Ascending}, 0, 2, SourceLocal, 0, 2, 56999},
		{"small enough for the head", Query{Board: "tiny"}, 2, 50, SourceLocal, 0, 1, 2},
		{"not open yet", Query{Board: "filling"}, 0, 50, SourceRedis, 1, 50, 0},
		{"hot", Query{Board: "hot"}, 0, 100, SourceHot, 0, 100, 0},
		{"beyond the hot page", Query{Board: "hot"}, 60, 50, SourceRedis, 1, 50, 60},
		{"hot, ascending", Query{Board: "hot", Order: rankcache.Ascending}, 0, 5, SourceRedis, 1, 5, 999},
		{"small", Query{Board: "any"}, 10, 5, SourceRedis, 1, 5, 10},
		{"room of a super-hot board that is not open", Query{Board: "any", Room: "88"}, 0, 5, SourceRedis, 1, 5, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := newEnv()
			a, err := env.reader().Page(context.Background(), &c.q, c.start, c.limit)
			if err != nil {
				t.Fatal(err)
			}
			if a.Source != c.source || env.Origin.Calls.Load() != c.calls || len(a.Entries) != c.rows || a.Start != c.start {
				t.Errorf("%v, %d calls, %d rows from %d; want %v, %d, %d from %d",
					a.Source, env.Origin.Calls.Load(), len(a.Entries), a.Start, c.source, c.calls, c.rows, c.start)
			}
			if c.rows > 0 && a.Entries[0].Member != fixture.Member(c.first) {
				t.Errorf("first is %s, want %s", a.Entries[0].Member, fixture.Member(c.first))
			}
		})
	}
}

// TestPeekInto: what is kept here, a whole board's rows in the caller's room.
func TestPeekInto(t *testing.T) {
	for _, c := range []struct {
		board  rankcache.BoardID
		order  rankcache.Direction
		source Source // SourceRedis: none
		own    bool
	}{{"local", rankcache.Descending, SourceLocal, true}, {"local", rankcache.Ascending, SourceLocal, true}, {"hot", rankcache.Descending, SourceHot, false},
		{"hot", rankcache.Ascending, SourceRedis, false}, {"filling", rankcache.Descending, SourceRedis, false}, {"any", rankcache.Descending, SourceRedis, false},
		{"shut", rankcache.Descending, SourceRedis, false}} {
		env := newEnv()
		r, room, q := env.reader(), make([]rankcache.Entry, 0, 50), Query{Board: c.board, Order: c.order}
		a, ok := r.PeekInto(&room, &q, 50)
		if ok != (c.source != SourceRedis) || ok && (a.Source != c.source || len(a.Entries) != 50) || env.Origin.Calls.Load() != 0 {
			t.Errorf("%s: %v from %v, %d rows, %d calls", c.board, ok, a.Source, len(a.Entries), env.Origin.Calls.Load())
		}
		if own := len(room) == 50 && &room[0] == &a.Entries[0]; own != c.own {
			t.Errorf("%s: in the room %v, want %v", c.board, own, c.own)
		}
		if c.order == rankcache.Ascending && c.source == SourceRedis {
			continue // a hot board has a copy, of other rows
		}
		want, _ := r.Copy(&q)
		if c.source == SourceRedis {
			want.Source, want.CurrentAt = SourceRedis, time.Time{}
		}
		if source, at := r.CurrentAt(&q); source != want.Source || !at.Equal(want.CurrentAt) {
			t.Errorf("%s: current at %v in %v, want %v in %v", c.board, at, source, want.CurrentAt, want.Source)
		}
	}
}

func TestReaderRefuses(t *testing.T) {
	env := newEnv()
	names, cfg := wire.DefaultNames(), env.config()
	names.Rooms, cfg.CheckBoard = "lb:rooms", func(b rankcache.BoardID) error { return names.CheckBoard(b) }
	r := readerOf(t, cfg)
	for _, c := range []struct {
		name         string
		q            Query
		start, limit int
		want         error
	}{
		{"blocked board", Query{Board: "shut"}, 0, 50, ErrBlocked},
		{"blocked pattern", Query{Board: "9_1_1"}, 0, 50, ErrBlocked},
		{"blocked room", Query{Board: "local", Room: "99"}, 0, 50, ErrBlocked},
		{"no rows", Query{Board: "local"}, 0, 0, ErrRange},
		{"too many rows", Query{Board: "local"}, 0, 501, ErrRange},
		{"before the first row", Query{Board: "local"}, -1, 10, ErrRange},
		{"bad board", Query{Board: "a b"}, 0, 10, rankcache.ErrBoard},
		{"a key of rankcache", Query{Board: "lb:rooms"}, 0, 10, rankcache.ErrBoard},
	} {
		if _, err := r.Page(context.Background(), &c.q, c.start, c.limit); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	if n := env.Origin.Calls.Load(); n != 0 {
		t.Errorf("%d calls to Redis, want none", n)
	}
}

func TestReaderStandings(t *testing.T) {
	env := newEnv()
	r := env.reader()
	for _, c := range []struct {
		board  rankcache.BoardID
		source Source
		calls  int64
	}{{"local", SourceLocal, 0}, {"hot", SourceRedis, 1}, {"any", SourceRedis, 2}} {
		s, err := r.Standings(context.Background(), Query{Board: c.board}, nil, []string{"m000004", "nobody", "m000000"})
		if err != nil {
			t.Fatal(err)
		}
		if s.Source != c.source || s.Rows[0].Rank != 5 || s.Rows[1].Rank != 0 || s.Rows[2].Rank != 1 {
			t.Errorf("%s: %v %v", c.board, s.Source, s.Rows)
		}
		if n := env.Origin.Calls.Load(); n != c.calls {
			t.Errorf("%s: %d calls, want %d", c.board, n, c.calls)
		}
	}
	if _, err := r.Standings(context.Background(), Query{Board: "any"}, nil, []string{"a\x00b"}); !errors.Is(err, rankcache.ErrMember) {
		t.Errorf("control character in a member: %v", err)
	}
	if _, err := r.Standings(context.Background(), Query{Board: "any"}, nil, nil); !errors.Is(err, ErrRange) {
		t.Errorf("no members: %v", err)
	}
}

func TestReaderAround(t *testing.T) {
	env := newEnv()
	r := env.reader()
	for _, board := range []rankcache.BoardID{"local", "any"} {
		a, rank, err := r.Around(context.Background(), Query{Board: board}, fixture.Member(2), 4)
		if err != nil || rank != 3 || a.Start != 0 || len(a.Entries) != 7 {
			t.Errorf("%s: rank %d, %d rows from %d, %v", board, rank, len(a.Entries), a.Start, err)
		}
		if _, _, err := r.Around(context.Background(), Query{Board: board}, "nobody", 4); !errors.Is(err, rankcache.ErrUnknownMember) {
			t.Errorf("%s: unknown member: %v", board, err)
		}
	}
	if _, _, err := r.Around(context.Background(), Query{Board: "local"}, fixture.Member(2), MaxAround+1); !errors.Is(err, ErrRange) {
		t.Errorf("too many neighbours: %v", err)
	}
}

// TestHotCountsEverySource checks which reads the hot tier counts: all
// but those that are refused.
func TestHotCountsEverySource(t *testing.T) {
	env := newEnv()
	r := env.reader()
	memory := []byte("any")
	for _, board := range []rankcache.BoardID{"local", "hot", "filling", "shut", rankcache.BoardID(unsafe.String(&memory[0], len(memory)))} {
		_, _ = r.Top(context.Background(), Query{Board: board}, 10)
	}
	copy(memory, "xyz") // the request's memory serves the next one
	want := map[rankcache.BoardID]bool{"local": true, "hot": true, "filling": true, "any": true}
	env.Hot.Counts.Range(func(id, _ any) bool {
		if !want[id.(rankcache.BoardID)] {
			t.Errorf("counted %v", id)
		}
		delete(want, id.(rankcache.BoardID))
		return true
	})
	if len(want) > 0 {
		t.Errorf("not counted: %v", want)
	}
}

// TestLocalBoardWithoutHead: a board that is open but has fixture.Published nothing is
// not half answered.
func TestLocalBoardWithoutHead(t *testing.T) {
	env := newEnv()
	env.Local.Head.Store(nil)
	a, err := env.reader().Top(context.Background(), Query{Board: "local"}, 10)
	if err != nil || a.Source != SourceRedis {
		t.Errorf("%v, %v; want an answer of Redis", a.Source, err)
	}
}

func TestReaderNeedsTiersAndOrigin(t *testing.T) {
	if _, err := NewReader(Config{}, nil); err == nil {
		t.Error("an empty config was accepted")
	}
	env := newEnv()
	env.limits.Calls = -1
	if _, err := NewReader(env.config(), nil); err == nil {
		t.Error("a negative limit was accepted")
	}
	r, err := NewReader(Config{Tiers: fixture.Tiers(""), Origin: env.Origin}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if a, err := r.Top(context.Background(), Query{Board: "local"}, 1); err != nil || a.Source != SourceRedis {
		t.Errorf("without local and hot boards: %v, %v", a.Source, err)
	}
}

// movedBoard answers standings from a moment after its head.
type movedBoard struct {
	*fixture.Board
	later *fixture.Board
}

func (b movedBoard) Standings(dst []rankcache.Standing, members []string, order rankcache.Direction) ([]rankcache.Standing, *rankcache.Top) {
	return b.later.Standings(dst, members, order)
}

// TestMe checks where the caller's own standing comes from: the rows that are
// here, then the local board at its own seq, then Redis.
func TestMe(t *testing.T) {
	for _, c := range []struct {
		name   string
		board  rankcache.BoardID
		member int
		order  rankcache.Direction
		rank   int
		seq    uint64
		calls  int64 // to Redis, the page included
	}{
		{"local, same moment", "local", 900, rankcache.Descending, 901, 917, 0},
		{"moved on, in the page", "moved", 3, rankcache.Descending, 4, 100, 0},
		{"moved on, elsewhere", "moved", 900, rankcache.Descending, 901, 101, 0},
		{"hot, in the page", "hot", 1, rankcache.Descending, 2, 33, 0},
		{"hot, in the head behind the page", "hot", 99, rankcache.Descending, 100, 33, 0},
		{"hot, elsewhere", "hot", 500, rankcache.Descending, 501, 12, 1},
		{"hot, ascending", "hot", 0, rankcache.Ascending, 1000, 12, 2},
		{"small, in the page", "any", 5, rankcache.Descending, 6, 12, 1},
		{"small, elsewhere", "any", 500, rankcache.Descending, 501, 12, 2},
		{"absent, on a whole board", "tiny", 99, rankcache.Descending, 0, 7, 0},
		{"absent", "any", 2000, rankcache.Descending, 0, 12, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := newEnv()
			cfg := env.config()
			cfg.Tiers = fixture.Tiers(`rooms: [{uid: "1", mode: super-hot, boards: ["local", "moved", "tiny"]}]`)
			cfg.Boards.(fixture.Boards[Board])["moved"] = movedBoard{fixture.NewBoard("moved", 1000, 100), fixture.NewBoard("moved", 1000, 101)}
			r := readerOf(t, cfg)
			q := Query{Board: c.board, Order: c.order}
			a, err := r.Page(context.Background(), &q, 0, 10)
			if err != nil {
				t.Fatal(err)
			}
			me, seq, err := r.Me(context.Background(), &q, &a, nil, []string{fixture.Member(c.member)})
			if err != nil || me.Rank != c.rank || seq != c.seq || me.Member != fixture.Member(c.member) {
				t.Errorf("%+v at seq %d, %v; want rank %d at %d", me, seq, err, c.rank, c.seq)
			}
			if n := env.Origin.Calls.Load(); n != c.calls {
				t.Errorf("%d calls to Redis, want %d", n, c.calls)
			}
		})
	}
}

func TestDecide(t *testing.T) {
	const open, hot = true, true
	for _, c := range []struct {
		mode      rooms.Mode
		open, hot bool
		want      Tier
	}{
		{rooms.ModeNone, !open, !hot, TierRedis},
		{rooms.ModeNone, !open, hot, TierHot}, // promoted by its own traffic
		{rooms.ModeNone, open, !hot, TierRedis},
		{rooms.ModeNone, open, hot, TierHot}, // its room just left the file
		{rooms.ModeHot, !open, !hot, TierRedis},
		{rooms.ModeHot, !open, hot, TierHot},
		{rooms.ModeHot, open, !hot, TierRedis},
		{rooms.ModeHot, open, hot, TierHot},
		{rooms.ModeSuperHot, !open, !hot, TierRedis}, // filling
		{rooms.ModeSuperHot, !open, hot, TierHot},    // filling, but hot already
		{rooms.ModeSuperHot, open, !hot, TierLocal},
		{rooms.ModeSuperHot, open, hot, TierLocal},
		{rooms.ModeBlocked, !open, !hot, TierBlocked},
		{rooms.ModeBlocked, !open, hot, TierBlocked},
		{rooms.ModeBlocked, open, !hot, TierBlocked},
		{rooms.ModeBlocked, open, hot, TierBlocked},
	} {
		if got := decide(c.mode, c.open, c.hot); got != c.want {
			t.Errorf("decide(%v, open %v, hot %v) = %v, want %v", c.mode, c.open, c.hot, got, c.want)
		}
	}
}

// emptied is a board that is emptied between being found and being read.
type emptied struct{ Board }

func (emptied) Page(int, int, rankcache.Direction) rankcache.Page { return rankcache.Page{} }

func (emptied) Standings(dst []rankcache.Standing, members []string, _ rankcache.Direction) ([]rankcache.Standing, *rankcache.Top) {
	return append(dst, rankcache.Standing{Member: members[0]}), nil
}

func (emptied) Around(string, int, rankcache.Direction) (rankcache.Page, int, bool) {
	return rankcache.Page{}, 0, false
}

func (emptied) WholePage(rankcache.PageQuery) (rankcache.WholePage, *rankcache.Top) {
	return rankcache.WholePage{}, nil
}

func TestABoardThatWasEmptiedIsReadFromRedis(t *testing.T) {
	env := newEnv()
	cfg := env.config()
	cfg.Boards = fixture.Boards[Board]{"local": emptied{env.Local}}
	r, q := readerOf(t, cfg), Query{Board: "local"}
	if a, err := r.Page(t.Context(), &q, rankcache.MaxTop, 50); err != nil || a.Source != SourceRedis {
		t.Errorf("page %+v, %v", a, err)
	}
	if s, err := r.Standings(t.Context(), q, nil, []string{fixture.Member(1)}); err != nil || s.Source != SourceRedis || len(s.Rows) != 1 {
		t.Errorf("standings %+v, %v", s, err)
	}
	if a, rank, err := r.Around(t.Context(), q, fixture.Member(1), 1); err != nil || a.Source != SourceRedis || rank == 0 {
		t.Errorf("around %+v, %d, %v", a, rank, err)
	}
	read := PageRead{q, rankcache.PageQuery{Limit: 5, Member: fixture.Member(1), Around: 1, Gap: true}}
	if a := r.WholePage(t.Context(), read); a.Err != nil || a.Source != SourceRedis || a.Own.Rank == 0 || a.Own.Seq != a.Seq {
		t.Errorf("whole page %+v", a)
	}
}
