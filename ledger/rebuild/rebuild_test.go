package rebuild

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/ledger"
	"rankcache/wire"
)

// both runs a test with each kind of database.
func both(t *testing.T, test func(t *testing.T, kind string)) {
	for _, kind := range testkit.SQLKinds {
		t.Run(kind, func(t *testing.T) { test(t, kind) })
	}
}

// Of both kinds of database, with one writer and one ledger each, which need some seconds to start.
func TestRebuild(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, kind string) {
		f := newFixture(t, kind, single)
		for _, class := range []string{"plain", "ties", "trim", "groups", "cars", "best", "hides", "hides-ties", "hides-day"} {
			t.Run(class, func(t *testing.T) { asItWas(t, f.of(class, "7")) })
		}
		t.Run("writers wait", func(t *testing.T) { writersWait(t, f.of("plain", "wait")) })
		t.Run("killed", func(t *testing.T) { killed(t, f.of("plain", "there"), false) })
		t.Run("killed, board gone", func(t *testing.T) { killed(t, f.of("plain", "gone"), true) })
		t.Run("dead", func(t *testing.T) { writersOutliveIt(t, f.of("plain", "dead")) })
	})
}

// On a Redis Cluster, with boards in several nodes.
func TestRebuildOnACluster(t *testing.T) {
	t.Parallel()
	f := newFixture(t, testkit.SQLKinds[0], clustered)
	for _, zone := range []string{"1", "2", "3", "4"} {
		t.Run(zone, func(t *testing.T) { asItWas(t, f.of("plain", zone)) })
	}
	t.Run("killed", func(t *testing.T) { killed(t, f.of("plain", "there"), false) })
}

// A board that was changed by hand, and one that is gone, get the members of the ledger and
// know the order ids that were applied; then the writer goes on.
func asItWas(t *testing.T, f *fixture) {
	f.fill(t)
	want, before, hidden := f.scores(t), f.state(t), f.hidden(t)
	board := f.opts.Names.BoardKey(f.board)
	must(t, f.redis.ZAdd(t.Context(), board, redis.Z{Member: "m1", Score: 1e6}, redis.Z{Member: "stranger", Score: 5}).Err())
	must(t, f.redis.ZRem(t.Context(), board, "m7").Err())
	if f.class == "cars" {
		must(t, f.redis.HSet(t.Context(), f.opts.Names.CompanionKey(f.board, wire.Data), "m1", "stolen", "m2", "stolen").Err())
	}
	must(t, f.redis.Del(t.Context(), f.opts.Names.CompanionKey(f.board, wire.Hidden)).Err())
	found, err := f.Compare(t.Context(), f.board)
	must(t, err)
	equal(t, "hidden otherwise", found.Hidden, len(hidden))
	done, err := f.Rebuild(t.Context(), f.board)
	must(t, err)
	found, err = f.Compare(t.Context(), f.board)
	must(t, err)
	equal(t, "then hidden, or on the board, otherwise", found.Hidden+found.Differ, 0)
	equal(t, "before, members, orders", []any{done.Before, done.Members, done.Orders}, []any{before, len(want), len(f.orders)})
	equal(t, "after", done.After, f.state(t))
	f.wantRebuilt(t, want, before)
	equal(t, "hidden", f.hidden(t), hidden)

	before = f.state(t)
	f.lose(t)
	done, err = f.Rebuild(t.Context(), f.board)
	must(t, err)
	equal(t, "before, of a board that is gone", done.Before.Run, uint64(0))
	f.wantRebuilt(t, want, before)
	equal(t, "hidden, of a board that was gone", f.hidden(t), hidden)
	next := `"op":"incr","delta":3`
	if f.class == "best" {
		next = `"op":"best","score":100,"data":"last"`
	}
	f.give(t, "next", "m1", next)
	if got := f.state(t).Seq; got != before.Seq+1 && f.class != "best" {
		t.Errorf("the next change has seq %d, want %d", got, before.Seq+1)
	}
	if f.class != "trim" {
		f.wantProved(t)
	}
	if len(hidden) > 0 {
		unseen := f.hidden(t)["m1"]
		f.move(t, wire.OpRestore, "m1", 100)
		_, raw, _ := wire.ParseHidden(unseen)
		equal(t, "restored", f.scores(t)["m1"], raw)
		f.wantProved(t)
	}
}

// Writers wait while a board is rebuilt: no post is refused, and none is lost or counted twice.
func writersWait(t *testing.T, f *fixture) {
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
	for i := range 5 {
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
	if got, want := total(f.scores(t)), sum+float64(posted.Load()); got != want {
		t.Errorf("all members have %v, want %v", got, want)
	}
	f.wantProved(t)
	lost := 0
	must(t, testkit.SQL(t, f.database).QueryRowContext(t.Context(), "SELECT count(*) FROM rank_lost").Scan(&lost))
	if lost > 0 {
		t.Errorf("%d changes were lost, if only for a while", lost)
	}
}

func total(scores map[string]float64) (sum float64) {
	for _, score := range scores {
		sum += score
	}
	return sum
}

// A board that is closed stays so, and primed: its final can be made of what was rebuilt.
func TestLifeStays(t *testing.T) {
	f := newIdle(t, testkit.SQLKinds[0], single).of("plain", "7")
	_, last := f.fillLedger(t, 10, 30)
	meta := wire.Meta{Life: wire.LifeClosed, Primed: true, State: rankcache.State{Run: 5, Seq: 20, HasSum: true}, End: 7, Expires: uint64(f.at) + 3_600_000, OrderLife: 3600, Buckets: 2}
	must(t, f.redis.Set(t.Context(), f.opts.Names.MetaKey(f.board), wire.AppendMeta(nil, &meta), time.Hour).Err())
	_, err := f.Rebuild(t.Context(), f.board)
	must(t, err)
	value, err := f.redis.Get(t.Context(), f.opts.Names.MetaKey(f.board)).Result()
	must(t, err)
	got, err := wire.ParseMeta(value)
	must(t, err)
	if got.Run <= last.Run {
		t.Errorf("run %d, want one behind the ledger's %d", got.Run, last.Run)
	}
	meta.State, meta.Members, meta.Now, meta.Turn = rankcache.State{Run: got.Run, Seq: 30, Sum: last.Sum, HasSum: true}, 10, got.Now, got.Turn
	equal(t, "meta", got, meta)
}

// What the ledger does not have all of is not rebuilt, and stays as it is.
func TestRefused(t *testing.T) {
	f := newIdle(t, testkit.SQLKinds[0], single).of("plain", "7")
	f.opts.Wait = 10 * time.Millisecond
	f.fillLedger(t, 10, 30)
	db, key := testkit.SQL(t, f.database), f.opts.Names.MetaKey(f.board)
	before := func(seq uint64) string {
		meta := wire.Meta{State: rankcache.State{Run: 5, Seq: seq, HasSum: true}, OrderLife: 3600, Buckets: 2}
		must(t, f.redis.Set(t.Context(), key, wire.AppendMeta(nil, &meta), time.Hour).Err())
		return f.redis.Get(t.Context(), key).Val()
	}
	refused := func(what string, seq uint64, want error, statement string) {
		t.Helper()
		if statement != "" {
			_, err := db.ExecContext(t.Context(), statement+" board = '"+string(f.board)+"'")
			must(t, err)
		}
		meta := before(seq)
		if _, err := f.Rebuild(t.Context(), f.board); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
		if got := f.redis.Get(t.Context(), key).Val(); got != meta {
			t.Errorf("%s: the meta was changed", what)
		}
	}
	refused("Redis is ahead", 31, ErrBehind, "")
	refused("a change is missing", 30, ErrBehind, "DELETE FROM rank_log WHERE seq = 7 AND")
	refused("members are unknown", 30, ErrIncomplete, "UPDATE rank_board SET begin_seq = 2 WHERE")
	refused("the ledger has nothing", 30, ledger.ErrNoBoard, "DELETE FROM rank_board WHERE")
}
