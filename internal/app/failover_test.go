package app

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/lab/compare"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/ledger"
	"rankcache/origin"
	"rankcache/wire"
)

// failover is a writer, a sidecar and a ledger on a Redis that Sentinel watches.
type failover struct {
	*testing.T
	*fixture
	sentinel *servers.Sentinel
	client   redis.UniversalClient
	rows     *sql.DB
	store    *ledger.Store
	ledgerOf []string // arguments of rankcache ledger
	http     *http.Client
	orders   atomic.Int64 // acknowledged
}

func newFailover(t *testing.T, kind string) *failover {
	s := testkit.StartSentinel(t, servers.SentinelOptions{Replicas: 1, DownAfter: 5 * time.Second}) // a replica that was cut off for ten times that is not promoted
	addrs := s.Addrs()
	topic := testkit.Name(t)
	url := testkit.Database(t, kind)
	f := &failover{T: t, sentinel: s, rows: testkit.SQL(t, url), http: &http.Client{Timeout: 5 * time.Second}}
	f.fixture = newFixtureOn(t, addrs[0]+"?master_name="+servers.SentinelMaster+"&addr="+strings.Join(addrs[1:], "&addr="), "--redis-mode", "sentinel", "--topic-ledger", topic,
		"--ledger-partitions", "2")
	f.writeRooms(t, fmt.Sprintf(`classes: [{name: gift, board: "%s:{zone}", period: none, ledger: true, ops: [incr], mode: super-hot, dims: {zone: ["1"]}}]`, topic))
	f.star = rankcache.BoardID(topic + ":1")
	f.common = append(f.common, "--redis-mode", "sentinel")
	f.client = redis.NewFailoverClient(&redis.FailoverOptions{MasterName: servers.SentinelMaster, SentinelAddrs: addrs, Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { f.client.Close() })
	f.ledgerOf = append([]string{"ledger", "--http", "127.0.0.1:0", "--database", url, "--topic-ledger", topic, "--ledger-group", topic}, f.common...)
	store, err := ledger.Open(url, nil)
	must(t, err)
	t.Cleanup(func() { store.Close() })
	f.store = store
	must(t, store.Migrate(t.Context()))
	return f
}

// post posts a command until it is acknowledged.
func (f *failover) post(ctx context.Context, order, command string) {
	body := fmt.Sprintf(`{"order":%q,"at":%d,%s}`, order, time.Now().UnixMilli(), command)
	for ctx.Err() == nil {
		resp, err := f.http.Post(f.writer.URL("scores", "/v1/scores"), "application/json", strings.NewReader(body))
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body) // the connection is used again
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				f.orders.Add(1)
				return
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// incr gives one point to member n of the star board.
func (f *failover) incr(ctx context.Context, order string, n int) {
	f.post(ctx, order, fmt.Sprintf(`"board":%q,"member":"m%d","op":"incr","delta":1`, f.star, n%50))
}

// die has the master die, and returns once there is another.
func (f *failover) die(old *servers.Redis) {
	f.Helper()
	must(f.T, old.Kill())
	testkit.Eventually(f, time.Minute, func() error { _, err := f.sentinel.Master(f.Context()); return err })
}

// awaitPositions waits until a replica has a position of the command topic.
func (f *failover) awaitPositions() {
	f.Helper()
	testkit.Eventually(f, time.Minute, func() error {
		for _, key := range f.client.Keys(f.Context(), "rankcache:applied:*").Val() {
			if position := f.client.HGet(f.Context(), key, "0").Val(); position != "" && !strings.HasSuffix(position, " -") {
				return f.client.Do(f.Context(), "WAIT", 1, 0).Err()
			}
		}
		return errors.New("there is no position")
	})
}

// count returns the rows of rank_lost of a condition.
func (f *failover) count(where string) (n int) {
	f.Helper()
	must(f.T, f.rows.QueryRowContext(f.Context(), "SELECT count(*) FROM rank_lost WHERE "+where).Scan(&n))
	return n
}

// points returns what all members of a board have.
func (f *failover) points(board rankcache.BoardID) (points int) {
	f.Helper()
	rows, err := f.client.ZRangeWithScores(f.Context(), string(board), 0, -1).Result()
	must(f.T, err)
	for _, r := range rows {
		points += int(r.Score)
	}
	return points
}

// TestFailoverLosesNothing: a master that dies with 1,000 acknowledged increments that no replica has gets
// each of them again, once, while others go on; the sidecar and the ledger agree with it.
func TestFailoverLosesNothing(t *testing.T) {
	testkit.FullOnly(t, "two failovers take half a minute")
	for _, kind := range testkit.SQLKinds {
		t.Run(kind, func(t *testing.T) { newFailover(t, kind).losesNothing() })
	}
}

func (f *failover) losesNothing() {
	t := f.T
	f.post(t.Context(), "first", `"class":"gift","dims":{"zone":"1"},"member":"m0","op":"incr","delta":1`) // once the class is known
	l := startListening(t, f.ledgerOf...)
	sidecar := f.serve(t)
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	for w := range 4 {
		load.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				f.incr(context.WithoutCancel(ctx), fmt.Sprintf("load-%d-%d", w, i), i)
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	sidecar.WaitReady(time.Minute)
	f.awaitPositions() // else the new master counts as damaged, and the ledger rebuilds the board
	old, err := f.sentinel.Master(t.Context())
	must(t, err)
	must(t, f.sentinel.CutReplicas(t.Context(), old))
	before := f.orders.Load()
	var posts sync.WaitGroup
	for w := range 8 {
		posts.Go(func() {
			for i := range 125 {
				f.incr(t.Context(), fmt.Sprintf("lost-%d-%d", w, i), i)
			}
		})
	}
	posts.Wait()
	acknowledged := f.orders.Load() - before
	f.die(old)
	begun := time.Now()
	testkit.Eventually(t, time.Minute, func() error {
		if n, again := f.count("1 = 1"), f.count("state = 1"); n < 1000 || again < n {
			return fmt.Errorf("%d changes in rank_lost, %d of them applied again, %d were acknowledged", n, again, acknowledged)
		}
		return nil
	})
	t.Logf("%d acknowledged increments were lost, all were back %.1f s after the new master was there", f.count("1 = 1"), time.Since(begun).Seconds())
	stop()
	load.Wait()
	if got, want := f.points(f.star), int(f.orders.Load()); got != want {
		t.Errorf("%d points after %d acknowledged increments", got, want)
	}
	f.agree(l, sidecar)
}

// agree waits until the ledger has everything, and compares it and the sidecar with Redis.
func (f *failover) agree(l, sidecar *child) {
	f.Helper()
	state := testkit.BoardState(f, f.client, wire.DefaultNames(), f.star)
	testkit.Eventually(f, time.Minute, func() error {
		if settled, err := f.store.Settled(f.Context(), f.star, state); err != nil || !settled {
			_, status := l.Get("http", "/status")
			return fmt.Errorf("the ledger is not settled: %w %s", err, status)
		}
		return nil
	})
	p, err := f.store.Prove(f.Context(), f.star)
	if err != nil || !p.Proved || p.State != state {
		f.Errorf("the ledger proves %+v, %v; Redis has %v", p, err, state)
	}
	base := strings.TrimSuffix(sidecar.URL("data", ""), "/")
	o := origin.New(f.client, wire.DefaultNames(), origin.WithTimeout(5*time.Second))
	testkit.Eventually(f, time.Minute, func() error {
		_, err := compare.Board(f.Context(), http.DefaultClient, base, f.star, o, state.Seq)
		return err
	})
}
