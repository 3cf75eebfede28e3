package origin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// cluster is three masters that share the slots, and replicas of theirs.
type cluster struct {
	masters, replicas []*clusterNode
}

type clusterNode struct {
	*servers.Redis
	client *redis.Client
}

// startCluster starts three masters, with a replica each if they are to have one.
func startCluster(t *testing.T, replicas bool) *cluster {
	t.Helper()
	c := &cluster{}
	for i := range 3 {
		node := c.join(t, i+1)
		c.masters = append(c.masters, node)
		must(t, node.client.Do(t.Context(), "CLUSTER", "ADDSLOTSRANGE", i*16384/3, (i+1)*16384/3-1).Err())
	}
	c.waitOK(t)
	for _, master := range c.masters {
		if !replicas {
			break
		}
		replica := c.join(t, 0)
		id, err := master.client.Do(t.Context(), "CLUSTER", "MYID").Text()
		must(t, err)
		testkit.Eventually(t, testTimeout, func() error { return replica.client.Do(t.Context(), "CLUSTER", "REPLICATE", id).Err() })
		c.replicas = append(c.replicas, replica)
		testkit.Eventually(t, testTimeout, func() error { return checkRole(t.Context(), replica.client, "slave", "connected") })
	}
	c.waitOK(t)
	return c
}

// join starts a node, a master if it has an epoch, and has it meet the first master.
func (c *cluster) join(t *testing.T, epoch int) *clusterNode {
	t.Helper()
	server := testkit.StartRedis(t, servers.RedisOptions{Cluster: true, Args: []string{"--cluster-node-timeout", "1000", "--repl-diskless-sync-delay", "0"}})
	node := &clusterNode{server, redis.NewClient(&redis.Options{Addr: server.Addr(), Protocol: 2})}
	t.Cleanup(func() { node.client.Close() })
	if epoch > 0 {
		must(t, node.client.Do(t.Context(), "CLUSTER", "SET-CONFIG-EPOCH", epoch).Err())
	}
	if len(c.masters) > 0 {
		first := c.masters[0]
		host, port, _ := net.SplitHostPort(first.Addr())
		must(t, node.client.Do(t.Context(), "CLUSTER", "MEET", host, port, first.Bus).Err())
	}
	return node
}

func (c *cluster) url() string { return "redis://" + c.masters[0].Addr() }

func (c *cluster) waitOK(t *testing.T) {
	t.Helper()
	for _, node := range slices.Concat(c.masters, c.replicas) {
		testkit.Eventually(t, testTimeout, func() error { return checkCluster(t.Context(), node.client) })
	}
}

// checkRole compares the first values of ROLE with these; a replica's fourth is that
// of its link.
func checkRole(ctx context.Context, node *redis.Client, role, link string) error {
	values, err := node.Do(ctx, "ROLE").Slice()
	if err == nil && (values[0] != role || link != "" && values[3] != link) {
		err = fmt.Errorf("role %v, want %s", values, role)
	}
	return err
}

func checkCluster(ctx context.Context, node *redis.Client) error {
	info, err := node.ClusterInfo(ctx).Result()
	if err == nil && !strings.Contains(info, "cluster_state:ok") {
		err = fmt.Errorf("cluster is not ok: %s", info)
	}
	return err
}

// A cluster keeps the keys of a board on one node, and boards on different ones: a
// pipeline over many boards goes to all nodes, and each loads the scripts.
func TestCluster(t *testing.T) {
	t.Parallel()
	readsFromAll(t, dialed(t, Options{URL: startCluster(t, false).url(), Mode: ModeCluster, Timeout: testTimeout}))
}

// readsFromAll has boards read that are on three servers.
func readsFromAll(t *testing.T, client redis.UniversalClient) {
	o := New(client, wire.DefaultNames(), WithTimeout(testTimeout))
	var boards []rankcache.BoardID
	var uids []string
	for i := range 30 {
		b := board{o, client, rankcache.BoardID(fmt.Sprintf("1_2_%d", i))}
		b.fill(t, 100+i, abc...)
		boards, uids = append(boards, b.id), append(uids, fmt.Sprint(i))
		must(t, client.SAdd(t.Context(), b.names().RoomKey(uids[i]), string(b.id)).Err())
		checkSeq(t, b, uint64(100+i))
	}
	for i, top := range (board{Origin: o}).tops(boards, 50) {
		must(t, top.Err)
		equal(t, string(boards[i]), top.Entries, desc)
		equal(t, "seq", top.Seq, uint64(100+i))
	}
	queries, whole := make([]rankcache.Query, len(boards)), make([]rankcache.Answer, len(boards))
	for i, id := range boards {
		queries[i] = rankcache.Query{Board: id, Limit: 50, Members: []string{"a"}, Around: 3, Gap: true}
	}
	o.Read(t.Context(), queries, whole) // now each node has the script
	sent := new(pipelines)
	must(t, client.(*redis.ClusterClient).ForEachMaster(t.Context(), func(_ context.Context, node *redis.Client) error {
		node.AddHook(sent)
		return nil
	}))
	o.Read(t.Context(), queries, whole)
	equal(t, "pipelines", sent.n.Load(), int64(3))
	for i, w := range whole {
		must(t, w.Err)
		equal(t, string(boards[i]), w.Entries, desc)
		equal(t, "seq and rank", []any{w.Seq, w.Own[0].Rank}, []any{uint64(100 + i), 1})
	}
	rooms, err := o.RoomBoards(t.Context(), uids)
	must(t, err)
	for i, uid := range uids {
		equal(t, "room "+uid, rooms[uid], boards[i:i+1])
	}
}

// A master that dies and stays dead is replaced by its replica; reads and stamps of its
// boards go there at once, although no node redirects the client.
func TestClusterFailover(t *testing.T) {
	t.Parallel()
	c := startCluster(t, true)
	client := dialed(t, Options{URL: c.url(), Mode: ModeCluster})
	b := board{New(client, wire.DefaultNames()), client, "1_2_3"}
	b.fill(t, 917, abc...)
	killed := slices.IndexFunc(c.masters, func(n *clusterNode) bool {
		return n.client.Exists(t.Context(), b.names().BoardKey(b.id)).Val() == 1
	})
	must(t, c.masters[killed].client.Do(t.Context(), "WAIT", 1, 5000).Err())
	must(t, c.masters[killed].Kill())
	reads := make(map[string]time.Duration)
	taken := c.replaced(t, killed, func() { b.readAll(t.Context()) })
	testkit.Eventually(t, testTimeout, func() error {
		errs := b.readAll(t.Context())
		for name := range errs {
			if reads[name] == 0 && errs[name] == nil {
				reads[name] = time.Since(taken)
			}
		}
		return errors.Join(slices.Collect(maps.Values(errs))...)
	})
	t.Logf("after the new master: %v", reads)
}

// replaced calls meanwhile until a replica has taken over, and returns when it was.
func (c *cluster) replaced(t *testing.T, killed int, meanwhile func()) (at time.Time) {
	t.Helper()
	testkit.Eventually(t, testTimeout, func() error {
		meanwhile()
		at = time.Now()
		if err := checkRole(t.Context(), c.replicas[killed].client, "master", ""); err != nil {
			return err
		}
		return checkCluster(t.Context(), c.replicas[killed].client)
	})
	return at
}

// readAll calls each method that returns a state.
func (b board) readAll(ctx context.Context) map[string]error {
	errs := make(map[string]error)
	for name, read := range b.reads() {
		_, errs[name] = read(ctx)
	}
	return errs
}
