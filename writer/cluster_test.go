package writer

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

// clusterOfTwo returns a client of a cluster of two nodes, of which the first has all
// slots, and clients of the nodes.
func clusterOfTwo(t *testing.T) (*redis.ClusterClient, [2]*redis.Client, [2]*servers.Redis) {
	t.Helper()
	var nodes [2]*redis.Client
	var all [2]*servers.Redis
	for i := range nodes {
		all[i] = testkit.StartRedis(t, servers.RedisOptions{Cluster: true})
		nodes[i] = redisClient(t, all[i].Addr())
	}
	must(t, nodes[0].Do(t.Context(), "CLUSTER", "ADDSLOTSRANGE", 0, 16383).Err())
	host, port, _ := strings.Cut(all[1].Addr(), ":")
	must(t, nodes[0].Do(t.Context(), "CLUSTER", "MEET", host, port, all[1].Bus).Err())
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{all[0].Addr()}, Protocol: 2})
	t.Cleanup(func() { cluster.Close() })
	testkit.Eventually(t, testTimeout, func() error {
		for _, n := range nodes {
			info, err := n.ClusterInfo(t.Context()).Result()
			if err != nil || !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_known_nodes:2") {
				return fmt.Errorf("%s, %v", info, err)
			}
		}
		return cluster.Set(t.Context(), "x", 1, 0).Err()
	})
	return cluster, nodes, all
}

// While the keys of a slot move one by one, posts wait, and each order is applied once:
// at the old node, between the two, and at the new one, which knows no script.
func TestPostsWhileASlotMoves(t *testing.T) {
	t.Parallel()
	cluster, nodes, all := clusterOfTwo(t)
	h := quiet(t, func(o *Options) { o.Redis, o.OrderBuckets = cluster, 2 })
	h.posts.time = testTimeout
	h.whileASlotMoves(t, nodes, all, func(command string) error {
		_, err := h.do(t.Context(), []byte(command))
		return err
	})
}

// The same for a durable board, which has another era at the new node.
func TestDurablePostsWhileASlotMoves(t *testing.T) {
	t.Parallel()
	cluster, nodes, all := clusterOfTwo(t)
	h := durableOn(t, cluster)
	h.applier.buckets.usual, h.applier.birth.buckets = 2, 2
	h.whileASlotMoves(t, nodes, all, func(command string) error {
		jobs := h.jobs(t, command)
		return h.retry(t.Context(), "redis", func() error { return h.applier.applyPosts(t.Context(), jobs) })
	})
	h.client = nodes[1]
	equal(t, "era", h.meta(t).Era, eraOf(t, nodes[1]))
}

// whileASlotMoves moves the slot of the board while commands are posted.
func (h *fixture) whileASlotMoves(t *testing.T, nodes [2]*redis.Client, all [2]*servers.Redis, post func(command string) error) {
	t.Helper()
	must(t, post(h.opCommand("incr", "first", "m", "delta", 1)))
	ctx, keys := t.Context(), h.applier.allKeys(h.board, &rules{})
	slot := nodes[0].ClusterKeySlot(ctx, keys[0]).Val()
	var ids [2]string
	for i, n := range nodes {
		ids[i] = n.Do(ctx, "CLUSTER", "MYID").Val().(string)
	}

	var posted atomic.Int64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := post(h.opCommand("incr", fmt.Sprint("o", i, "-", n), fmt.Sprint("m", i), "delta", 1)); err != nil {
					t.Error(err)
					return
				}
				posted.Add(1)
			}
		})
	}
	must(t, nodes[1].Do(ctx, "CLUSTER", "SETSLOT", slot, "IMPORTING", ids[0]).Err())
	must(t, nodes[0].Do(ctx, "CLUSTER", "SETSLOT", slot, "MIGRATING", ids[1]).Err())
	host, port, _ := strings.Cut(all[1].Addr(), ":")
	for _, key := range keys {
		must(t, nodes[0].Migrate(ctx, host, port, key, 0, 10*time.Second).Err())
		time.Sleep(50 * time.Millisecond) // posts meet each state
	}
	for _, n := range nodes {
		must(t, n.Do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", ids[1]).Err())
	}
	moved := posted.Load()
	testkit.Eventually(t, testTimeout, func() error {
		if posted.Load() < moved+20 {
			return fmt.Errorf("%d posts, %d before the slot had moved", posted.Load(), moved)
		}
		return nil
	})
	close(stop)
	wg.Wait()
	h.client = nodes[1]
	total := 0.0
	for _, score := range h.scores(t) {
		total += score
	}
	equal(t, "increments", total, float64(posted.Load()+1))
	equal(t, "seq", h.meta(t).Seq, uint64(posted.Load()+1))
	h.checkSum(t)
}
