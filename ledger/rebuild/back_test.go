package rebuild

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

// flapping is a fixture whose address of Redis leads to one of two servers. Neither is ever demoted or restarted.
type flapping struct {
	*fixture
	a, b *servers.Redis
	at   atomic.Pointer[string]
	n    int
	// anyRun has the ledger be in another run, as Redis's has no change yet.
	anyRun bool
}

func newFlapping(t *testing.T, partitions int) *flapping {
	f := &flapping{a: testkit.StartRedis(t, servers.RedisOptions{}), b: testkit.StartRedis(t, servers.RedisOptions{})}
	f.at.Store(new(f.a.Addr()))
	host, port, err := net.SplitHostPort(f.a.Addr())
	must(t, err)
	must(t, f.b.Do(t.Context(), "REPLICAOF", host, port))
	f.fixture = newIdle(t, testkit.SQLKinds[0], f.dial)
	f.commands = partitions
	run(t, f.start(t, nil).Run)
	f.fixture = f.of("free-ledger", "back")
	return f
}

// dial returns a client of the address.
func (f *flapping) dial(testing.TB) redis.UniversalClient {
	return redis.NewClient(&redis.Options{Addr: "redis", Protocol: 2, DisableIdentity: true, Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", *f.at.Load())
	}})
}

// count posts n increments of one, and waits until Redis and the ledger have what was posted.
func (f *flapping) count(t *testing.T, n int) {
	t.Helper()
	f.increments(t, f.fixture, n)
	f.agree(t)
}

// increments posts n increments of one to a writer.
func (f *flapping) increments(t *testing.T, to *fixture, n int) {
	t.Helper()
	for range n {
		f.n++
		to.give(t, fmt.Sprint("o", f.n), fmt.Sprint("m", f.n%5), `"op":"incr","delta":1`)
	}
}

// agree waits until Redis has all, each once, and the ledger the same, of the run that Redis has.
func (f *flapping) agree(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, testTimeout, func() error {
		sum, rows := 0.0, f.redis.ZRangeWithScores(t.Context(), f.opts.Names.BoardKey(f.board), 0, -1).Val()
		for _, row := range rows {
			sum += row.Score
		}
		state := f.state(t)
		settled, err := f.opts.Store.Settled(t.Context(), f.board, state)
		if err != nil {
			return err
		}
		p, err := f.opts.Store.Prove(t.Context(), f.board)
		if err == nil && (int(sum) != f.n || !settled || !p.Proved || p.State.Run != state.Run && !f.anyRun || p.State.Sum != state.Sum) {
			err = fmt.Errorf("posted %d, in Redis %v, state %v, in the ledger %v: %s", f.n, sum, state, p.State, p.Why())
		}
		return err
	})
	f.wantChecked(t)
}

// lead has the address lead to a server.
func (f *flapping) lead(t *testing.T, from, to *servers.Redis) {
	t.Helper()
	f.at.Store(new(to.Addr()))
	must(t, from.Do(t.Context(), "CLIENT", "KILL", "TYPE", "normal"))
}

// part has the replica stay as it is, once it has what its master has.
func (f *flapping) part(t *testing.T) {
	t.Helper()
	client := f.b.Client()
	defer client.Close()
	want := f.state(t)
	testkit.Eventually(t, testTimeout, func() error {
		if got := testkit.BoardState(t, client, f.opts.Names, f.board); got != want || want == (rankcache.State{}) {
			return fmt.Errorf("the replica is at %v, its master at %v", got, want)
		}
		return nil
	})
	must(t, f.b.Do(t.Context(), "REPLICAOF", "NO", "ONE"))
}

// The address leads to another server and back. What was posted there is applied again, and the ledger has the history of the
// server that Redis is, whose run is the lower one.
func TestRedisComesBack(t *testing.T) {
	t.Parallel()
	f := newFlapping(t, 1)
	f.count(t, 40)
	f.part(t)
	f.lead(t, f.a, f.b)
	f.count(t, 30)
	f.lead(t, f.b, f.a)
	f.count(t, 60)
}

// Nobody posts after the return: no board is touched, as the server that comes back has had all of it.
func TestRedisComesBackInSilence(t *testing.T) {
	t.Parallel()
	f := newFlapping(t, 1)
	f.count(t, 40)
	f.part(t)
	f.count(t, 20)
	f.lead(t, f.a, f.b)
	f.agree(t)
	f.lead(t, f.b, f.a)
	f.agree(t)
}

// Of two writers only one is led to another server and back, and nobody posts after the return. What it has posted there, and what the
// other one has posted meanwhile, is on the server that all have.
func TestRedisComesBackToOneOfTwo(t *testing.T) {
	t.Parallel()
	f := newFlapping(t, 2)
	stays := *f.fixture
	f.redis = f.a.Client() // of the test
	t.Cleanup(func() { f.redis.Close() })
	stays.handler = f.startWriter(t, f.redis).Handler()
	f.count(t, 40)
	for _, handler := range []http.Handler{f.handler, stays.handler} {
		testkit.Eventually(t, testTimeout, func() error { return hasOnePartition(handler) })
	}
	f.part(t)
	f.lead(t, f.a, f.b)
	f.increments(t, f.fixture, 10)
	f.increments(t, &stays, 10)
	f.lead(t, f.b, f.a)
	f.agree(t)
}

// hasOnePartition asks a writer what it reads.
func hasOnePartition(handler http.Handler) error {
	rec := httptest.NewRecorder()
	handler.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/v1/status", nil))
	var status struct{ Commands []any }
	err := json.Unmarshal(rec.Body.Bytes(), &status)
	if err == nil && len(status.Commands) != 1 {
		err = fmt.Errorf("it reads %v", status.Commands)
	}
	return err
}

// The era of a server changes with nothing lost, as of a master without replicas after a while, and all that comes is a repeat of an order
// that was applied two servers ago: the ledger still has what Redis has.
func TestRepeatInAnotherEra(t *testing.T) {
	t.Parallel()
	f := newFlapping(t, 1)
	f.count(t, 10)
	f.part(t)
	f.lead(t, f.a, f.b)
	f.count(t, 10)
	before := f.eras(t)
	must(t, f.b.Do(t.Context(), "CONFIG", "SET", "repl-backlog-ttl", "1"))
	testkit.Eventually(t, testTimeout, func() error {
		if maps.Equal(f.eras(t), before) {
			return errors.New("the era is the same")
		}
		return nil
	})
	testkit.Eventually(t, testTimeout, func() error {
		if status, answer := f.post(f.orders[0].command); status != http.StatusOK || !strings.Contains(answer, `"duplicate":true`) {
			return fmt.Errorf("%d %s", status, answer)
		}
		return nil
	})
	behind := f.of("plain", "warm") // its changes are behind the repeat
	behind.give(t, "behind", "m", `"op":"incr","delta":1`)
	behind.settle(t)
	f.anyRun = true
	f.agree(t)
}
