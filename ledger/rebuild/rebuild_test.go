package rebuild

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"rankcache/internal/testkit"
)

// both runs a test with each kind of database.
func both(t *testing.T, test func(t *testing.T, kind string)) {
	for _, kind := range testkit.SQLKinds {
		t.Run(kind, func(t *testing.T) { test(t, kind) })
	}
}

// A board that was changed by hand, and one that is gone, get the members of the ledger and
// know the order ids that were applied; then the writer goes on.
func TestBoardIsAsItWas(t *testing.T) {
	both(t, func(t *testing.T, kind string) {
		f := newFixture(t, kind)
		for _, class := range []string{"plain", "ties", "trim"} {
			t.Run(class, func(t *testing.T) { asItWas(t, f.of(class, "7")) })
		}
	})
}

func asItWas(t *testing.T, f *fixture) {
	f.fill(t)
	want, before := f.scores(t), f.state(t)
	board := f.opts.Names.BoardKey(f.board)
	must(t, f.redis.ZAdd(t.Context(), board, redis.Z{Member: "m1", Score: 1e6}, redis.Z{Member: "stranger", Score: 5}).Err())
	must(t, f.redis.ZRem(t.Context(), board, "m7").Err())
	done, err := f.Rebuild(t.Context(), f.board)
	must(t, err)
	equal(t, "before, members, orders", []any{done.Before, done.Members, done.Orders}, []any{before, len(want), len(f.orders)})
	equal(t, "after", done.After, f.state(t))
	f.wantRebuilt(t, want, before)

	before = f.state(t)
	must(t, f.redis.Del(t.Context(), f.keys(t)...).Err())
	done, err = f.Rebuild(t.Context(), f.board)
	must(t, err)
	equal(t, "before, of a board that is gone", done.Before.Run, uint64(0))
	f.wantRebuilt(t, want, before)
	f.give(t, "next", "m1", `"op":"incr","delta":3`)
	if got := f.state(t).Seq; got != before.Seq+1 {
		t.Errorf("the next change has seq %d, want %d", got, before.Seq+1)
	}
	if f.class != "trim" {
		f.wantProved(t)
	}
}

// Writers wait while a board is rebuilt: no post is refused, and none is lost or counted twice.
func TestWritersWait(t *testing.T) {
	both(t, func(t *testing.T, kind string) {
		f := newFixture(t, kind).of("plain", "7")
		f.fill(t)
		sum := total(f.scores(t))
		var posted atomic.Int64
		var g errgroup.Group
		stop := make(chan struct{})
		for n := range 4 {
			g.Go(func() error {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return nil
					default:
					}
					if status, answer := f.post(f.command(fmt.Sprint("c-", n, "-", i), fmt.Sprint("m", i%20), `"op":"incr","delta":1`)); status != http.StatusOK {
						return fmt.Errorf("%d %s", status, answer)
					}
					posted.Add(1)
				}
			})
		}
		for i := range 8 {
			before := posted.Load()
			testkit.Eventually(t, testTimeout, func() error {
				if posted.Load() < before+20 {
					return errors.New("writers are still waiting")
				}
				return nil
			})
			if i%2 == 1 { // also what is wrong meanwhile
				must(t, f.redis.ZAdd(t.Context(), f.opts.Names.BoardKey(f.board), redis.Z{Member: "stranger", Score: 1000}).Err())
			}
			_, err := f.Rebuild(t.Context(), f.board)
			must(t, err)
		}
		close(stop)
		must(t, g.Wait())
		_, err := f.Rebuild(t.Context(), f.board)
		must(t, err)
		if got, want := total(f.scores(t)), sum+float64(posted.Load()); got != want {
			t.Errorf("all members have %v, want %v", got, want)
		}
		f.wantProved(t)
	})
}

func total(scores map[string]float64) (sum float64) {
	for _, score := range scores {
		sum += score
	}
	return sum
}
