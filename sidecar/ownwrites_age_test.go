package sidecar

import (
	"testing"
	"testing/synctest"
	"time"

	"rankcache"
	"rankcache/internal/testkit/fixture"
)

func ownReader(t *testing.T, env *testEnv) *Reader {
	cfg := env.config()
	cfg.OwnWrites = true
	return readerOf(t, cfg)
}

// TestOwnWriteAges: a copy that has forgotten the sum of a state as old as the write answers nevertheless.
func TestOwnWriteAges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv()
		env.Local.Oldest = 917
		env.Origin.Seq.Store(917)
		r, member := ownReader(t, env), fixture.Member(3)
		r.Wrote("local", member, fixture.Written.StateAt(900))
		time.Sleep(ownTime)
		if a := of(t.Context(), r, rankcache.Query{Board: "local"}, 0, member); a.Err != nil || a.Source != rankcache.SourceLocal || env.Origin.Calls.Load() != 0 {
			t.Errorf("after %v: from %v, %v, %d calls of Redis", ownTime, a.Source, a.Err, env.Origin.Calls.Load())
		}
	})
}

// TestOwnWriteAfterLoss: a write of a history that Redis has lost since does not hide the next one, of a lower seq.
func TestOwnWriteAfterLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv()
		env.Origin.Seq.Store(918)
		r, member := ownReader(t, env), fixture.Member(3)
		r.Wrote("local", member, fixture.Written.StateAt(2000))
		time.Sleep(ownTime)
		r.Wrote("local", member, fixture.Written.StateAt(918))
		if a := of(t.Context(), r, rankcache.Query{Board: "local"}, 0, member); a.Err != nil || a.Seq != 918 {
			t.Errorf("seq %d from %v, %v; want 918", a.Seq, a.Source, a.Err)
		}
	})
}

// TestOwnWritesOfSeveralBoards: boards that are read together are waited for together.
func TestOwnWritesOfSeveralBoards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env, began := newEnv(), time.Now()
		cfg := env.config()
		second := fixture.NewBoard("tiny", 3, 917)
		cfg.OwnWrites, cfg.Boards = true, fixture.Boards[Board]{"local": env.Local, "tiny": second}
		cfg.Tiers = fixture.Tiers(fixture.Rooms)
		env.Origin.Seq.Store(918)
		r, member := readerOf(t, cfg), fixture.Member(2)
		qs := make([]rankcache.Query, 2)
		for i, board := range []rankcache.BoardID{"local", "tiny"} {
			r.Wrote(board, member, fixture.Written.StateAt(918))
			qs[i] = rankcache.Query{Board: board, Limit: 5, Members: []string{member}}
		}
		time.AfterFunc(ownWait/2, func() { second.Publish(918) })
		as := make([]rankcache.Answer, 2)
		r.Read(t.Context(), qs, as)
		if as[0].Source != rankcache.SourceRedis || as[1].Source != rankcache.SourceLocal || as[0].Seq != 918 || as[1].Seq != 918 || time.Since(began) != ownWait {
			t.Errorf("from %v and %v at %d and %d after %v, want Redis and the copy at 918 after %v", as[0].Source, as[1].Source, as[0].Seq, as[1].Seq, time.Since(began), ownWait)
		}
		second.Publish(917)
		as, began = make([]rankcache.Answer, 2), time.Now()
		if r.Read(t.Context(), qs, as); as[0].Seq != 918 || as[1].Seq != 918 || time.Since(began) != ownWait {
			t.Errorf("neither copy came: %d and %d after %v, want 918 after %v", as[0].Seq, as[1].Seq, time.Since(began), ownWait)
		}
	})
}
