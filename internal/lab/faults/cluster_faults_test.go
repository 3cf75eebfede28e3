package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// clusterFaults are those of Redis as a cluster, and with sentinels.
func clusterFaults() []fault {
	return []fault{{
		name:    "Redis Cluster: a board's slot is moved",
		prepare: func(w *env) { w.useCluster() },
		inject:  func(w *env) { w.moveBoard() },
		due:     redisAway, // MIGRATE blocks both nodes
	}, {
		name:    "Redis Cluster: a master is killed and left dead",
		prepare: func(w *env) { w.useCluster() },
		inject:  func(w *env) { w.killMaster() },
	}, {
		name: "Redis with Sentinel fails over and loses writes", losesWrites: true, due: redisAway,
		prepare: func(w *env) { w.useSentinel() },
		inject:  func(w *env) { w.failOverSentinel(50) },
	}}
}

// useCluster gives the row a Redis Cluster, which rows share one after another.
func (w *env) useCluster() {
	w.Helper()
	w.lockClusters()
	c := w.redisCluster()
	addrs := c.Addrs()
	w.common = append(w.common, "--redis", "redis://"+addrs[0]+"?addr="+strings.Join(addrs[1:], "&addr="), "--redis-mode", "cluster")
	w.newClient = func() redis.UniversalClient {
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, Protocol: 2, DisableIdentity: true})
	}
}

// killMaster kills the master of the small board, which has no write that its replica lacks,
// and notes when the shard is read and written again.
func (w *env) killMaster() {
	w.Helper()
	c, b := w.redisCluster(), w.board("redis")
	old, err := c.Master(w.Context(), string(b.ID))
	w.must(err)
	there := w.servedBy(old)
	w.tally.Due = func(q *Question) bool { return redisAway(q) || !there[q.Board] }
	w.writes.Pause()
	w.must(old.Replicated(w.Context()))
	w.must(old.Kill())
	w.writes.Resume()
	w.Cleanup(func() { // for the next row
		if err := errors.Join(old.Restart(context.Background()), c.WaitWhole(context.Background())); err != nil {
			w.Error(err)
		}
	})

	died := time.Now()
	var elected, read, posted time.Duration
	var all sync.WaitGroup
	all.Go(func() {
		client := newClient(1)
		defer client.CloseIdleConnections()
		w.writes.post(w.Context(), client, w.writes.set(b.ID, memberName(0), 5))
		posted = time.Since(died)
	})
	w.eventually(func() error { _, err := c.Master(w.Context(), string(b.ID)); return err })
	elected = time.Since(died)
	w.eventually(func() error {
		_, r := w.ask(Question{Board: b.ID, Tier: b.Tier, Kind: KindTop, Limit: 10})
		return r.Err
	})
	read = time.Since(died)
	all.Wait()
	w.note("a new master after %.1f s; the shard is read again %.1f s and written %.1f s after it", elected.Seconds(), (read - elected).Seconds(), (posted - elected).Seconds())
}

// servedBy returns the boards that a node of the cluster is the master of.
func (w *env) servedBy(n *servers.Redis) map[rankcache.BoardID]bool {
	w.Helper()
	boards := map[rankcache.BoardID]bool{}
	for _, b := range w.boards {
		at, err := w.redisCluster().Master(w.Context(), string(b.ID))
		w.must(err)
		boards[b.ID] = at == n
	}
	return boards
}

// moveBoard moves the slot of a board of its own while commands for it are posted, and checks
// that each was counted once.
func (w *env) moveBoard() {
	w.Helper()
	const members, orders = 210_000, 1_000_000
	b, c := rankcache.BoardID(w.writes.Prefix+"_moved"), w.client()
	w.fillByHand(c, b, members)
	m := &mover{env: w, board: b, members: members}
	m.run(func() {
		m.waitPosts(20) // the writer has adopted the board by then
		w.rememberOrders(c, b, orders)
		m.longest.Store(0)
		m.waitPosts(200)
		usual := time.Duration(m.longest.Swap(0))
		cluster := w.redisCluster()
		to, err := cluster.OtherMaster(w.Context(), string(b))
		w.must(err)
		moved, err := cluster.MoveSlot(w.Context(), string(b), to, 10)
		w.must(err)
		m.waitPosts(200)
		w.note("%d members and %d orders, %d posts; %d MIGRATEs of %.2f s at most, %.2f s in all; the longest post %.2f s, before it %.2f s",
			members, orders, m.posted.Load(), moved.Calls, moved.Longest.Seconds(), moved.Total.Seconds(),
			time.Duration(m.longest.Load()).Seconds(), usual.Seconds())
	})
	m.check(c)
}

// fillByHand makes a board that no writer has seen.
func (w *env) fillByHand(c redis.UniversalClient, b rankcache.BoardID, members int) {
	w.Helper()
	for from := 0; from < members; from += 1000 {
		var zs []redis.Z
		for i := from; i < min(from+1000, members); i++ {
			zs = append(zs, redis.Z{Member: memberName(i), Score: float64(i)})
		}
		w.must(c.ZAdd(w.Context(), string(b), zs...).Err())
	}
}

// rememberOrders makes the hashes of a board's order ids as large as if so many had come.
func (w *env) rememberOrders(c redis.UniversalClient, b rankcache.BoardID, n int) {
	w.Helper()
	const script = `for i = 1, ARGV[1] do redis.call('HSET', KEYS[1], ARGV[2] .. string.format('%013d', i), string.rep('x', 60)) end return 1`
	var keys []string
	for set := range 2 {
		for bucket := range 4 {
			key := wire.DefaultNames().OrdersKey(b, set, bucket)
			if c.HLen(w.Context(), key).Val() > 0 {
				keys = append(keys, key)
			}
		}
	}
	if len(keys) == 0 {
		w.Fatalf("%s has no orders", b)
	}
	for _, key := range keys {
		for part := range 10 { // so that no script lasts long
			w.must(c.Eval(w.Context(), script, []string{key}, n/len(keys)/10, fmt.Sprint(part, "-")).Err())
		}
	}
}

// mover posts commands for one board until it is stopped.
type mover struct {
	*env
	board   rankcache.BoardID
	members int

	posted, longest atomic.Int64
}

// run posts while during lasts.
func (m *mover) run(during func()) {
	var all sync.WaitGroup
	done := make(chan struct{})
	for i := range posters {
		all.Go(func() {
			client, rng := newClient(1), rand.New(rand.NewPCG(7, uint64(i)))
			defer client.CloseIdleConnections()
			for {
				select {
				case <-done:
					return
				default:
					m.post(client, rng)
				}
			}
		})
	}
	stop := sync.OnceFunc(func() { close(done); all.Wait() })
	m.Cleanup(stop)
	during()
	stop()
}

// post posts one point for a member until it is answered.
func (m *mover) post(client *http.Client, rng *rand.Rand) {
	one := 1.0
	cmd := m.writes.set(m.board, memberName(rng.IntN(m.members)), 0)
	cmd.Op, cmd.Score, cmd.Delta = "incr", nil, &one
	start := time.Now()
	for m.Context().Err() == nil {
		again, _, err := m.writes.ask(client, m.writes.Base(), cmd)
		if err != nil {
			m.Errorf("post to %s: %v", m.board, err)
		}
		if !again {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	for took := int64(time.Since(start)); ; {
		was := m.longest.Load()
		if was >= took || m.longest.CompareAndSwap(was, took) {
			break
		}
	}
	m.posted.Add(1)
}

func (m *mover) waitPosts(n int64) {
	m.Helper()
	n += m.posted.Load()
	m.eventually(func() error {
		if got := m.posted.Load(); got < n {
			return fmt.Errorf("%d of %d posts", got, n)
		}
		return nil
	})
}

// check compares the board with what was posted: one point each.
func (m *mover) check(c redis.UniversalClient) {
	m.Helper()
	rows, err := c.ZRangeWithScores(m.Context(), string(m.board), 0, -1).Result()
	m.must(err)
	points := -m.members * (m.members - 1) / 2 // what it was filled with
	for _, r := range rows {
		points += int(r.Score)
	}
	posted := int(m.posted.Load())
	if seq := int(m.seqIn(c, m.board)); points != posted || seq != posted || len(rows) != m.members {
		m.Errorf("%d commands made %d points, seq %d and %d members of %d", posted, points, seq, len(rows), m.members)
	}
}

// useSentinel gives the row a master with replicas and sentinels.
func (w *env) useSentinel() {
	w.Helper()
	// A Sentinel that waits for less takes a busy machine for a dead master, and there are two failovers.
	s := testkit.StartSentinel(w, servers.SentinelOptions{DownAfter: 3 * time.Second})
	w.sentinel = s
	addrs := s.Addrs()
	w.common = append(w.common, "--redis", "redis://"+addrs[0]+"?master_name="+servers.SentinelMaster+"&addr="+strings.Join(addrs[1:], "&addr="), "--redis-mode", "sentinel")
	w.newClient = func() redis.UniversalClient {
		return redis.NewFailoverClient(&redis.FailoverOptions{MasterName: servers.SentinelMaster, SentinelAddrs: addrs, Protocol: 2, DisableIdentity: true})
	}
}

// failOverSentinel has the sentinels replace a master whose replicas lack its last writes.
func (w *env) failOverSentinel(lost uint64) {
	w.Helper()
	old, err := w.sentinel.Master(w.Context())
	w.must(err)
	w.must(w.sentinel.CutReplicas(w.Context(), old))
	b := w.board("local").ID
	from := w.oracle.Reached(b)
	w.eventually(func() error {
		if at := w.oracle.Reached(b); at < from+lost {
			return fmt.Errorf("%d of %d writes to be lost", at-from, lost)
		}
		return nil
	})
	w.writes.Pause()
	defer w.writes.Resume()
	w.losing()
	w.must(old.Kill())
	died := time.Now()
	var now *servers.Redis
	w.eventually(func() (err error) { now, err = w.sentinel.Master(w.Context()); return err })
	w.note("a new master after %.1f s", time.Since(died).Seconds())
	next := now.Client()
	defer next.Close()
	w.rewind(next)
}
