package sidecar

import (
	"context"
	"testing"

	"rankcache"
	"rankcache/sidecar/internal/fixture"
)

// movedBoard answers standings from a moment after its head.
type movedBoard struct {
	*fixture.Board
	later *fixture.Board
}

func (b movedBoard) Standings(dst []rankcache.Standing, members []string, order rankcache.Order) ([]rankcache.Standing, rankcache.Stamp) {
	return b.later.Standings(dst, members, order)
}

// TestMe checks where the caller's own standing comes from: the rows that are
// here, then the local board at its own seq, then Redis.
func TestMe(t *testing.T) {
	for _, c := range []struct {
		name   string
		board  rankcache.BoardID
		member int
		order  rankcache.Order
		rank   int
		seq    uint64
		calls  int64 // to Redis, the page included
	}{
		{"local, same moment", "local", 900, rankcache.Desc, 901, 917, 0},
		{"moved on, in the page", "moved", 3, rankcache.Desc, 4, 100, 0},
		{"moved on, elsewhere", "moved", 900, rankcache.Desc, 901, 101, 0},
		{"hot, in the page", "hot", 1, rankcache.Desc, 2, 33, 0},
		{"hot, in the head behind the page", "hot", 99, rankcache.Desc, 100, 33, 0},
		{"hot, elsewhere", "hot", 500, rankcache.Desc, 501, 12, 1},
		{"hot, ascending", "hot", 0, rankcache.Asc, 1000, 12, 2},
		{"small, in the page", "any", 5, rankcache.Desc, 6, 12, 1},
		{"small, elsewhere", "any", 500, rankcache.Desc, 501, 12, 2},
		{"nobody on a whole board", "tiny", 99, rankcache.Desc, 0, 7, 0},
		{"nobody", "any", 2000, rankcache.Desc, 0, 12, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := newEnv()
			cfg := env.config()
			cfg.Tiers = fixture.Tiers(`rooms: [{uid: "1", mode: super-hot, boards: ["local", "moved", "tiny"]}]`)
			cfg.Boards.(fixture.Boards[Board])["moved"] = movedBoard{fixture.NewBoard("moved", 1000, 100), fixture.NewBoard("moved", 1000, 101)}
			r := readerOf(t, cfg)
			q := Query{Board: c.board, Order: c.order}
			a, err := r.Page(context.Background(), q, 0, 10)
			if err != nil {
				t.Fatal(err)
			}
			me, seq, err := r.Me(context.Background(), q, &a, nil, []string{fixture.Member(c.member)})
			if err != nil || me.Rank != c.rank || seq != c.seq || me.Member != fixture.Member(c.member) {
				t.Errorf("%+v at seq %d, %v; want rank %d at %d", me, seq, err, c.rank, c.seq)
			}
			if n := env.Origin.Calls.Load(); n != c.calls {
				t.Errorf("%d calls to Redis, want %d", n, c.calls)
			}
		})
	}
}
