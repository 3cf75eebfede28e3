package rebuild

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/ledger"
	"rankcache/wire"
)

// A board of 210,000 members with 1,000,000 orders in their life. How long it takes is logged.
func TestRebuildInFullSize(t *testing.T) {
	if !testkit.Full() || testkit.Race {
		t.Skip("a million rows take a minute: RANKCACHE_FULL=1 has them, without the race detector")
	}
	const members, orders = 210_000, 1_000_000
	both(t, func(t *testing.T, kind string) {
		f := newIdle(t, kind, single).of("plain", "7")
		begun := time.Now()
		scores, last := f.fillLedger(t, members, orders)
		t.Logf("%d rows written in %v", orders, time.Since(begun))
		for _, what := range []string{"gone", "there"} {
			done, err := f.Rebuild(t.Context(), f.board)
			must(t, err)
			t.Logf("%s, board %s: %d members and %d order ids in %v, writers waited %v", kind, what, done.Members, done.Orders, done.Took, done.Held)
			equal(t, "members, orders, seq", []any{done.Members, done.Orders, done.After.Seq}, []any{members, orders, last.Seq})
			equal(t, "sum", done.After.Sum, last.Sum)
		}
		if got := f.redis.ZCard(t.Context(), f.opts.Names.BoardKey(f.board)).Val(); got != int64(len(scores)) {
			t.Errorf("%d members in Redis", got)
		}
		for range 100 {
			m := fmt.Sprint("m", rand.IntN(members))
			if got := f.redis.ZScore(t.Context(), f.opts.Names.BoardKey(f.board), m).Val(); got != scores[m] {
				t.Errorf("%s has %v, want %v", m, got, scores[m])
			}
		}
	})
}

// Redis loses a board of 30,000 members, with the order ids of all of them, and goes on to be written. How long it takes, and how much
// is written meanwhile, is logged.
func TestLostBoardInFullSize(t *testing.T) {
	if !testkit.Full() || testkit.Race {
		t.Skip("30,000 commands take a minute: RANKCACHE_FULL=1 has them, without the race detector")
	}
	const members, posters, size = 30_000, 8, 100
	for _, kind := range testkit.SQLKinds {
		t.Run(kind, func(t *testing.T) {
			server := testkit.StartRedis(t, servers.RedisOptions{})
			l := newLossyOn(t, kind, func(testing.TB) redis.UniversalClient {
				return redis.NewClient(&redis.Options{Addr: server.Addr(), Protocol: 2, DisableIdentity: true, ContextTimeoutEnabled: true})
			})
			f := l.of("free-ledger", "big")
			var next, acked atomic.Int64
			post := func(until func() bool) {
				var all sync.WaitGroup
				for range posters {
					all.Go(func() {
						for !t.Failed() && !until() {
							f.postBatch(t, next.Add(size)-size, size, members)
							acked.Add(size)
						}
					})
				}
				all.Wait()
			}
			begun := time.Now()
			post(func() bool { return acked.Load() >= members })
			t.Logf("%d commands, %.0f a second", acked.Load(), float64(acked.Load())/time.Since(begun).Seconds())
			f.settle(t)
			t.Logf("in the ledger after %.1f s", time.Since(begun).Seconds())
			before, life := acked.Load(), l.life(t)
			var whole atomic.Bool
			var writes sync.WaitGroup
			must(t, l.redis.FlushAll(t.Context()).Err())
			begun = time.Now()
			var first atomic.Int64
			writes.Go(func() {
				post(func() bool {
					if acked.Load() > before {
						first.CompareAndSwap(0, int64(time.Since(begun)))
					}
					return whole.Load()
				})
			})
			l.awaitWhole(t, life)
			took := time.Since(begun)
			meanwhile := acked.Load() - before
			whole.Store(true)
			writes.Wait()
			t.Logf("%s: whole after %.1f s, the first command after %.1f s, %d commands meanwhile: %.0f a second with the %d that were read again", kind, took.Seconds(),
				time.Duration(first.Load()).Seconds(), meanwhile, float64(before+meanwhile)/took.Seconds(), before)
			sum := 0.0
			for _, score := range f.scores(t) {
				sum += score
			}
			equal(t, "points and changes", []float64{sum, float64(f.state(t).Seq)}, []float64{float64(acked.Load()), float64(acked.Load())})
			f.wantProved(t)
		})
	}
}

// postBatch posts increments of one point until each is applied.
func (f *fixture) postBatch(t testing.TB, from int64, n, members int) {
	var body strings.Builder
	for i := range int64(n) {
		body.WriteString(map[bool]string{true: `{"commands":[`, false: ","}[i == 0])
		body.WriteString(f.command(fmt.Sprint("o", from+i), fmt.Sprint("m", (from+i)%int64(members)), `"op":"incr","delta":1`))
	}
	body.WriteString("]}")
	testkit.Eventually(t, 2*testTimeout, func() error {
		rec := httptest.NewRecorder()
		req := httptest.NewRequest(http.MethodPost, "/v1/scores:batch", strings.NewReader(body.String()))
		req.Header.Set("Content-Type", "application/json")
		f.handler.ServeHTTP(rec, req)
		if rec.Code == http.StatusBadRequest {
			t.Errorf("%s", rec.Body)
			return nil
		}
		if rec.Code != http.StatusOK || strings.Contains(rec.Body.String(), `"problem":`) {
			return fmt.Errorf("%d %.500s", rec.Code, rec.Body.String())
		}
		return nil
	})
}

// fillLedger writes increments of one run, and returns the scores and the last change.
func (f *fixture) fillLedger(t *testing.T, members, orders int) (scores map[string]float64, last *wire.LedgerUpdate) {
	scores = make(map[string]float64, members)
	run, sum, next := newRun(uint64(f.at)), uint64(0), int64(0)
	must(t, f.opts.Store.Begin(t.Context(), "test", 0, 0))
	for batch := ledger.NewBatch("test"); int(next) < orders; {
		m := fmt.Sprint("m", int(next)%members)
		before, there := scores[m]
		if there {
			sum -= wire.Hash(m, before)
		}
		scores[m] = before + 1
		sum = (sum + wire.Hash(m, before+1)) & wire.SumMask
		last = &wire.LedgerUpdate{Update: wire.Update{Board: f.board, Member: m, Op: wire.OpIncr, Delta: 1, Score: before + 1, Run: run, Seq: uint64(next) + 1, Sum: sum, HasSum: true,
			Members: len(scores), OrderID: fmt.Sprintf("order-%08d", next), At: f.at}, Class: "plain", Dims: map[string]string{"zone": "7"}}
		if next++; !batch.Add(last, 0, next-1-int64(batch.Len()), next-1) {
			t.Fatal("not added")
		}
		if batch.Len() == ledger.MaxBatch || int(next) == orders {
			_, err := f.opts.Store.Apply(t.Context(), batch)
			must(t, err)
			batch = ledger.NewBatch("test")
		}
	}
	return scores, last
}
