package origin

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// startCluster starts three masters that share the slots, and returns a URL.
func startCluster(t *testing.T) string {
	t.Helper()
	var nodes []*redis.Client
	var first *servers.Redis
	for i := range 3 {
		server := testkit.StartRedis(t, servers.RedisOptions{Cluster: true})
		node := redis.NewClient(&redis.Options{Addr: server.Addr(), Protocol: 2})
		t.Cleanup(func() { node.Close() })
		must(t, node.Do(t.Context(), "CLUSTER", "ADDSLOTSRANGE", i*16384/3, (i+1)*16384/3-1).Err())
		must(t, node.Do(t.Context(), "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err())
		if i == 0 {
			first = server
		} else {
			host, port, _ := net.SplitHostPort(first.Addr())
			must(t, node.Do(t.Context(), "CLUSTER", "MEET", host, port, first.Bus).Err())
		}
		nodes = append(nodes, node)
	}
	for _, node := range nodes {
		testkit.Eventually(t, testTimeout, func() error { return checkCluster(t.Context(), node) })
	}
	return "redis://" + nodes[0].Options().Addr
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
	client := dialed(t, Options{URL: startCluster(t), Mode: ModeCluster, Timeout: testTimeout})
	o := New(client, wire.DefaultNames(), WithTimeout(testTimeout))
	var boards []rankcache.BoardID
	var uids []string
	for i := range 30 {
		b := board{o, client, rankcache.BoardID(fmt.Sprintf("1_2_%d", i))}
		b.fill(t, 100+i, abc...)
		boards, uids = append(boards, b.id), append(uids, fmt.Sprint(i))
		must(t, client.SAdd(t.Context(), b.names.RoomKey(uids[i]), string(b.id)).Err())
		checkSeq(t, b, uint64(100+i))
	}
	tops, err := o.Tops(t.Context(), boards, 50)
	must(t, err)
	for i, top := range tops {
		equal(t, string(boards[i]), top.Entries, desc)
		equal(t, "seq", top.Seq, uint64(100+i))
	}
	rooms, err := o.RoomBoards(t.Context(), uids)
	must(t, err)
	for i, uid := range uids {
		equal(t, "room "+uid, rooms[uid], boards[i:i+1])
	}
}
