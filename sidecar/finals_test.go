package sidecar

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"rankcache"
	"rankcache/internal/testkit/fixture"
)

// finalsOnly is a ledger that has finals alone: of 30 members.
type finalsOnly struct{ *fixture.Origin }

func (f finalsOnly) Read(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer) {
	f.Origin.Read(ctx, qs, as)
	for i := range as {
		if as[i].Err == nil {
			as[i].Source, as[i].Life = rankcache.SourceFinal, rankcache.LifeFinal
		}
	}
}

// withFinals returns a reader of boards of days that Redis does not have, with a ledger. The clock of a test begins on 1 January 2000.
func withFinals(env *testEnv) (r *Reader, ledger finalsOnly) {
	ledger = finalsOnly{fixture.New().Origin}
	ledger.N.Store(30)
	env.Origin.N.Store(0)
	cfg := env.config()
	cfg.Tiers = fixture.Tiers(fixture.Rooms + "classes:\n- {name: paid, board: \"paid:{period}\", period: day, ledger: true, keep: 72h}\n- {name: plain, board: \"plain:{period}\", period: day}\n")
	cfg.Ledger = ledger
	r, err := NewReader(cfg, nil)
	if err != nil {
		panic(err)
	}
	return r, ledger
}

const yesterday, longAgo, today, tomorrow = "paid:19991231", "paid:19990101", "paid:20000101", "paid:20000102"

// TestEndedBoardIsItsFinal: an ended board that Redis does not have is read from its final, by all kinds of reads; one that runs, one
// without a ledger, and one that nobody knows are as Redis has them.
func TestEndedBoardIsItsFinal(t *testing.T) {
	for name, read := range kinds {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env := newEnv()
				r, ledger := withFinals(env)
				for board, want := range map[rankcache.BoardID]rankcache.Source{yesterday: rankcache.SourceFinal, longAgo: rankcache.SourceFinal, today: rankcache.SourceRedis,
					tomorrow: rankcache.SourceRedis, "plain:19991231": rankcache.SourceRedis, "any": rankcache.SourceRedis, "paid:19991350": rankcache.SourceRedis} {
					if source, _, _, err := read(r, rankcache.Query{Board: board}); source != want || err != nil {
						t.Errorf("%s: from %v, %v; want %v", board, source, err, want)
					}
				}
				unknown := fmt.Errorf("%w: %w", rankcache.ErrUnavailable, rankcache.ErrNoBoard)
				for board, want := range map[rankcache.BoardID]error{"paid:19991230": nil, "paid:19980101": ErrGone} {
					ledger.FailBoard(board, unknown)
					if source, _, _, err := read(r, rankcache.Query{Board: board}); !errors.Is(err, want) || err == nil && source != rankcache.SourceRedis {
						t.Errorf("%s, which nobody knows: from %v, %v; want %v", board, source, err, want)
					}
				}
				ledger.FailWith(errAway)
				if _, _, _, err := read(r, rankcache.Query{Board: "paid:19991229"}); !errors.Is(err, rankcache.ErrUnavailable) {
					t.Errorf("without the ledger: %v", err)
				}
				env.Origin.N.Store(5)
				if source, _, _, err := read(r, rankcache.Query{Board: "paid:19991229"}); source != rankcache.SourceRedis || err != nil {
					t.Errorf("of a board that Redis has: from %v, %v", source, err)
				}
			})
		})
	}
}

// TestEmptyCopiesOfEndedBoards: a copy that was refreshed from a Redis without the board is no answer.
func TestEmptyCopiesOfEndedBoards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv()
		r, _ := withFinals(env)
		for board, want := range map[rankcache.BoardID]rankcache.Source{yesterday: rankcache.SourceFinal, today: rankcache.SourceHot} {
			env.Hot.Set(fixture.NewTop(board, 0, 0, 1))
			if a := top(t.Context(), r, rankcache.Query{Board: board}, 3); a.Source != want || a.Err != nil {
				t.Errorf("%s: from %v, %v; want %v", board, a.Source, a.Err, want)
			}
		}
	})
}

// TestFinalsAreKept: neither Redis nor the ledger is asked again for a minute, and after a second where the ledger does not know the
// board. What is kept is bounded.
func TestFinalsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv()
		r, ledger := withFinals(env)
		read := func(board rankcache.BoardID, redis, final int64) {
			t.Helper()
			before, at := env.Origin.Calls.Load(), ledger.Calls.Load()
			a := top(t.Context(), r, rankcache.Query{Board: board, MaxAge: time.Nanosecond}, 3)
			if a.Err == nil && a.Source == rankcache.SourceFinal && (len(a.Entries) != 3 || a.Kept == nil || final == 0 && time.Since(a.CurrentAt) != 0) {
				t.Errorf("%+v", a)
			}
			if n, m := env.Origin.Calls.Load()-before, ledger.Calls.Load()-at; n != redis || m != final {
				t.Errorf("%s at %v: %d calls of Redis and %d of the ledger, want %d and %d", board, time.Now(), n, m, redis, final)
			}
		}
		read(yesterday, 1, 1)
		read(yesterday, 0, 0)
		time.Sleep(finalTime - time.Second)
		read(yesterday, 0, 0)
		time.Sleep(2 * time.Second)
		read(yesterday, 1, 1)

		const nobody = "paid:19991230"
		ledger.FailBoard(nobody, rankcache.ErrNoBoard)
		read(nobody, 1, 1)
		read(nobody, 1, 0)
		time.Sleep(unknownTime + time.Millisecond)
		read(nobody, 1, 1)

		finals := r.flights.origin
		for i := range 1000 {
			_ = top(t.Context(), r, rankcache.Query{Board: rankcache.BoardID(time.Now().AddDate(0, 0, -1-i).Format("paid:20060102")), Start: i}, rankcache.MaxTop)
		}
		if n := finals.n.Load(); n > 1000 || n != int64(len(finals.boards)) || finals.rows > maxFinalRows {
			t.Errorf("%d boards with %d rows are kept", n, finals.rows)
		}
	})
}
