package writer

import (
	"regexp"
	"testing"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/masters"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// The masters have the eras that they tell, and names whose slots are theirs.
func TestMasters(t *testing.T) {
	t.Parallel()
	cluster, nodes, _ := clusterOfTwo(t)
	id := nodes[1].ClusterMyID(t.Context()).Val()
	for _, n := range nodes {
		must(t, n.Do(t.Context(), "CLUSTER", "SETSLOT", 0, "NODE", id).Err())
	}
	single := redisClient(t, testkit.Redis(t))
	for _, try := range []struct {
		client redis.UniversalClient
		nodes  []*redis.Client
		lowest []int
	}{{single, []*redis.Client{single}, []int{0}}, {cluster, nodes[:], []int{1, 0}}} {
		a := quiet(t, func(o *Options) { o.Redis = try.client }).applier
		all, err := a.masters(t.Context())
		must(t, err)
		equal(t, "masters", len(all), len(try.nodes))
		for i, node := range try.nodes {
			at := -1
			for k := range all {
				if string(all[k].name) == masters.Tag(try.lowest[i]) {
					at = k
				}
			}
			if at < 0 {
				t.Fatalf("no master has slot %d: %v", try.lowest[i], all)
			}
			equal(t, "era", string(all[at].era), eraOf(t, node))
			equal(t, "slot of its name", nodes[0].ClusterKeySlot(t.Context(), string(all[at].name)).Val(), int64(try.lowest[i]))
			equal(t, "by its client", eraOf(t, all[at].client), eraOf(t, node))
		}
	}
}

// eraOf returns the era of a server as it tells it.
func eraOf(t testing.TB, node redis.Cmdable) string { return fullEra(t, node)[:wire.EraLen] }

func fullEra(t testing.TB, node redis.Cmdable) string {
	t.Helper()
	return regexp.MustCompile(`master_replid:(\w{40})`).FindStringSubmatch(node.Info(t.Context(), "replication").Val())[1]
}

// The eras are known once they were read.
func TestErasList(t *testing.T) {
	t.Parallel()
	h := quiet(t, nil)
	equal(t, "before", h.applier.eras.list(), "unknown")
	must(t, h.applier.fenced(t.Context()))
	equal(t, "after", h.applier.eras.list(), eraOf(t, h.client))
}
