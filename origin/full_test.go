package origin

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// A Redis over its maxmemory, which refuses reads in MULTI, answers them.
func TestFullRedisIsRead(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: testkit.StartRedis(t, servers.RedisOptions{}).Addr()})
	defer client.Close()
	must(t, client.ZAdd(t.Context(), "b", redis.Z{Score: 7, Member: "m"}, redis.Z{Score: 5, Member: "n"}).Err())
	o := New(client, wire.DefaultNames())
	must(t, client.ConfigSet(t.Context(), "maxmemory", "1").Err())
	if err := client.ZAdd(t.Context(), "b", redis.Z{Score: 7, Member: "o"}).Err(); err == nil || !strings.HasPrefix(err.Error(), "OOM") {
		t.Fatal("Redis is not full:", err)
	}
	for name, q := range map[string]rankcache.Query{
		"a page":           {Board: "b", Limit: 10},
		"a member":         {Board: "b", Members: []string{"n"}},
		"both":             {Board: "b", Limit: 10, Members: []string{"n"}},
		"with neighbours":  {Board: "b", Members: []string{"n"}, Around: 3},
		"with a state":     {Board: "b", Members: []string{"n"}, MinSeq: 1},
		"scores in bounds": {Board: "b", Limit: 10, Range: &rankcache.ScoreRange{Least: 1, Most: 9}},
	} {
		a := rankcache.One(t.Context(), o, q)
		if a.Err != nil || a.Members != 2 || len(q.Members) > 0 && (a.Own[0].Rank != 2 || a.Own[0].Score != 5) || q.Limit > 0 && (len(a.Entries) != 2 || a.Entries[0].Member != "m") {
			t.Errorf("%s: %+v", name, a)
		}
	}
}
