package sidecar

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
	"unsafe"

	"rankcache"
	"rankcache/internal/testkit/fixture"
	"rankcache/rooms"
	"rankcache/wire"
)

// TestReaderSources has for each query the source that answers, and the number of calls
// to Redis.
func TestReaderSources(t *testing.T) {
	for _, c := range []struct {
		name         string
		q            rankcache.Query
		start, limit int
		source       rankcache.Source
		calls        int64
		rows, first  int // number of rows, and which member is first
	}{
		{"open super-hot", rankcache.Query{Board: "local"}, 0, 50, rankcache.SourceLocal, 0, 50, 0},
		{"behind the head", rankcache.Query{Board: "local"}, 480, 50, rankcache.SourceLocal, 0, 50, 480},
		{"past the end", rankcache.Query{Board: "local"}, 57000, 50, rankcache.SourceLocal, 0, 0, 0},
		{"ascending", rankcache.Query{Board: "local", Order: rankcache.Ascending}, 0, 2, rankcache.SourceLocal, 0, 2, 56999},
		{"small enough for the head", rankcache.Query{Board: "tiny"}, 2, 50, rankcache.SourceLocal, 0, 1, 2},
		{"not open yet", rankcache.Query{Board: "filling"}, 0, 50, rankcache.SourceRedis, 1, 50, 0},
		{"hot", rankcache.Query{Board: "hot"}, 0, 100, rankcache.SourceHot, 0, 100, 0},
		{"beyond the hot page", rankcache.Query{Board: "hot"}, 60, 50, rankcache.SourceRedis, 1, 50, 60},
		{"hot, ascending", rankcache.Query{Board: "hot", Order: rankcache.Ascending}, 0, 5, rankcache.SourceRedis, 1, 5, 999},
		{"small", rankcache.Query{Board: "any"}, 10, 5, rankcache.SourceRedis, 1, 5, 10},
		{"room of a super-hot board that is not open", rankcache.Query{Board: "any", Room: "88"}, 0, 5, rankcache.SourceRedis, 1, 5, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := newEnv()
			c.q.Start = c.start
			a := top(context.Background(), env.reader(), c.q, c.limit)
			if a.Err != nil {
				t.Fatal(a.Err)
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

// TestCopiesOnly: what is kept here, and Redis is not asked.
func TestCopiesOnly(t *testing.T) {
	for _, c := range []struct {
		board  rankcache.BoardID
		order  rankcache.Direction
		source rankcache.Source // SourceRedis: none
	}{{"local", rankcache.Descending, rankcache.SourceLocal}, {"local", rankcache.Ascending, rankcache.SourceLocal}, {"hot", rankcache.Descending, rankcache.SourceHot},
		{"hot", rankcache.Ascending, rankcache.SourceRedis}, {"filling", rankcache.Descending, rankcache.SourceRedis}, {"any", rankcache.Descending, rankcache.SourceRedis}} {
		env := newEnv()
		r, q := env.reader(), rankcache.Query{Board: c.board, Order: c.order, CopiesOnly: true, Uncounted: true}
		a := top(t.Context(), r, q, 50)
		if kept := a.Err == nil; kept != (c.source != rankcache.SourceRedis) || !kept && a.Err != rankcache.ErrNotKept || kept && (a.Source != c.source || len(a.Entries) != 50) {
			t.Errorf("%s: from %v, %d rows, %v", c.board, a.Source, len(a.Entries), a.Err)
		}
		q.Limit = 5
		if a := of(t.Context(), r, q, 0, fixture.Member(900)); a.Err == nil && a.Own[0].Err != nil && a.Own[0].Err != rankcache.ErrNotKept {
			t.Errorf("%s: %+v", c.board, a.Own[0])
		}
		if env.Origin.Calls.Load() != 0 || env.Hot.Reads.Load() != 0 {
			t.Errorf("%s: %d calls, %d counted", c.board, env.Origin.Calls.Load(), env.Hot.Reads.Load())
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
		q            rankcache.Query
		start, limit int
		want         error
	}{
		{"blocked board", rankcache.Query{Board: "shut"}, 0, 50, ErrBlocked},
		{"blocked pattern", rankcache.Query{Board: "9_1_1"}, 0, 50, ErrBlocked},
		{"blocked room", rankcache.Query{Board: "local", Room: "99"}, 0, 50, ErrBlocked},
		{"no rows", rankcache.Query{Board: "local"}, 0, 0, ErrRange},
		{"too many rows", rankcache.Query{Board: "local"}, 0, 501, ErrRange},
		{"before the first row", rankcache.Query{Board: "local"}, -1, 10, ErrRange},
		{"bad board", rankcache.Query{Board: "a b"}, 0, 10, rankcache.ErrBoard},
		{"a key of rankcache", rankcache.Query{Board: "lb:rooms"}, 0, 10, rankcache.ErrBoard},
	} {
		c.q.Start = c.start
		if err := top(context.Background(), r, c.q, c.limit).Err; !errors.Is(err, c.want) {
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
		source rankcache.Source
		calls  int64
	}{{"local", rankcache.SourceLocal, 0}, {"hot", rankcache.SourceRedis, 1}, {"any", rankcache.SourceRedis, 2}} {
		s := of(context.Background(), r, rankcache.Query{Board: c.board}, 0, "m000004", "nobody", "m000000")
		if s.Err != nil {
			t.Fatal(s.Err)
		}
		if s.Source != c.source || s.Own[0].Rank != 5 || s.Own[1].Rank != 0 || s.Own[2].Rank != 1 {
			t.Errorf("%s: %v %v", c.board, s.Source, s.Own)
		}
		if n := env.Origin.Calls.Load(); n != c.calls {
			t.Errorf("%s: %d calls, want %d", c.board, n, c.calls)
		}
	}
	if err := of(context.Background(), r, rankcache.Query{Board: "any"}, 0, "a\x00b").Err; !errors.Is(err, rankcache.ErrMember) {
		t.Errorf("control character in a member: %v", err)
	}
	if err := of(context.Background(), r, rankcache.Query{Board: "any"}, 0).Err; !errors.Is(err, ErrRange) {
		t.Errorf("no members: %v", err)
	}
}

func TestReaderAround(t *testing.T) {
	env := newEnv()
	r := env.reader()
	for _, board := range []rankcache.BoardID{"local", "any"} {
		a := of(context.Background(), r, rankcache.Query{Board: board}, 9, fixture.Member(2), "nobody")
		if own := a.Own[0]; a.Err != nil || own.Rank != 3 || own.First != 0 || len(own.Neighbours) != 7 || a.Own[1].Rank != 0 {
			t.Errorf("%s: %+v, %v", board, a.Own, a.Err)
		}
	}
	for _, around := range []int{-1, 2*MaxAround + 3} {
		if err := of(context.Background(), r, rankcache.Query{Board: "local"}, around, fixture.Member(2)).Err; !errors.Is(err, ErrRange) {
			t.Errorf("%d rows around: %v", around, err)
		}
	}
}

// TestHotCountsEverySource checks which reads the hot tier counts: all
// but those that are refused.
func TestHotCountsEverySource(t *testing.T) {
	env := newEnv()
	r := env.reader()
	memory := []byte("any")
	for _, board := range []rankcache.BoardID{"local", "hot", "filling", "shut", rankcache.BoardID(unsafe.String(&memory[0], len(memory)))} {
		top(context.Background(), r, rankcache.Query{Board: board}, 10)
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
	if a := top(context.Background(), r, rankcache.Query{Board: "local"}, 1); a.Err != nil || a.Source != rankcache.SourceRedis {
		t.Errorf("without local and hot boards: %v, %v", a.Source, a.Err)
	}
}

// TestMe checks where the caller's own standing comes from: the rows that are
// here, then Redis.
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
			cfg.Tiers = fixture.Tiers(`rooms: [{uid: "1", mode: super-hot, boards: ["local", "tiny"]}]`)
			r := readerOf(t, cfg)
			a := rankcache.One(context.Background(), r, rankcache.Query{Board: c.board, Order: c.order, Limit: 10, Members: []string{fixture.Member(c.member)}})
			if me := a.Own[0]; a.Err != nil || me.Err != nil || me.Rank != c.rank || me.Stamp.Seq != c.seq || me.Member != fixture.Member(c.member) {
				t.Errorf("%+v, %v; want rank %d at %d", me, a.Err, c.rank, c.seq)
			}
			if n := env.Origin.Calls.Load(); n != c.calls {
				t.Errorf("%d calls to Redis, want %d", n, c.calls)
			}
		})
	}
}

// TestTiers: where a board is read, by the operator's mode and what is kept here.
func TestTiers(t *testing.T) {
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
		env := newEnv()
		cfg := env.config()
		file := ""
		if c.mode != rooms.ModeNone {
			file = fmt.Sprintf("boards: [{match: b, mode: %v}]", c.mode)
		}
		cfg.Tiers, cfg.Boards = fixture.Tiers(file), fixture.Boards[Board]{}
		if c.open {
			cfg.Boards = fixture.Boards[Board]{"b": env.Local}
		}
		if c.hot {
			env.Hot.Set(fixture.NewTop("b", 2000, 100, 33))
		}
		if got := readerOf(t, cfg).Tier("b", ""); got != c.want {
			t.Errorf("%v, open %v, hot %v: %v, want %v", c.mode, c.open, c.hot, got, c.want)
		}
	}
}

// emptied is a board that is emptied between being found and being read.
type emptied struct{ Board }

func (emptied) Read(_ context.Context, _ []rankcache.Query, as []rankcache.Answer) {
	for i := range as {
		as[i].Fail(rankcache.ErrNotKept)
	}
}

func TestABoardThatWasEmptiedIsReadFromRedis(t *testing.T) {
	env := newEnv()
	cfg := env.config()
	cfg.Boards = fixture.Boards[Board]{"local": emptied{env.Local}}
	r := readerOf(t, cfg)
	for _, q := range []rankcache.Query{{Start: rankcache.MaxTop, Limit: 50}, {Members: []string{fixture.Member(1)}}, {Members: []string{fixture.Member(1)}, Around: 3},
		{Limit: 5, Members: []string{fixture.Member(1)}, Around: 3, Gap: true}, {Limit: 5, MaxAge: time.Hour, Wait: time.Hour}} {
		q.Board = "local"
		if a := rankcache.One(t.Context(), r, q); a.Err != nil || a.Source != rankcache.SourceRedis || len(a.Own) != len(q.Members) {
			t.Errorf("%+v: %+v", q, a)
		}
	}
}
