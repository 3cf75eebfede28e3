package origin

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/testkit"
)

// BenchmarkApproximate reads standings of members all over a board of 1,000,000, exact and by a ladder, alone and 100 in a call, and makes
// ladders. What counts is the CPU of Redis; calls are its own count of the time in commands (INFO commandstats).
func BenchmarkApproximate(b *testing.B) {
	bd, n := newBoard(b), 1_000_000
	r := rand.New(rand.NewPCG(1, 2))
	for from := 0; from < n; from += 10_000 {
		rows := make([]redis.Z, 10_000)
		for i := range rows {
			rows[i] = redis.Z{Member: strconv.Itoa(10_000_000 + from + i), Score: float64(r.IntN(1 << 30))}
		}
		must(b, bd.client.ZAdd(b.Context(), bd.names().BoardKey(bd.id), rows...).Err())
	}
	must(b, bd.client.Set(b.Context(), bd.names().MetaKey(bd.id), testkit.Meta(testRun, 7, nil), 0).Err())
	l, err := bd.makeLadder(b.Context(), bd.id)
	must(b, err)
	cost := make(map[string][2]float64)
	measure := func(name string, run func()) {
		b.Run(name, func(b *testing.B) {
			cpu, calls := bd.cpu(b), bd.commandTime(b)
			for b.Loop() {
				run()
			}
			used := [2]float64{(bd.cpu(b) - cpu) * 1e6 / float64(b.N), (bd.commandTime(b) - calls) / float64(b.N)}
			b.ReportMetric(used[0], "redis-cpu-us/op")
			b.ReportMetric(used[1], "redis-commands-us/op")
			cost[name] = used
		})
	}
	for _, members := range []int{1, 100} {
		read := func(l *rankcache.Ladder) func() {
			return func() {
				q := rankcache.Query{Mode: rankcache.Approx, Ladder: l}
				for range members {
					q.Members = append(q.Members, strconv.Itoa(10_000_000+r.IntN(n)))
				}
				must(b, bd.ask(q).Err)
			}
		}
		exact, about := fmt.Sprintf("exact/%d", members), fmt.Sprintf("approximate/%d", members)
		measure(exact, read(nil))
		measure(about, read(l))
		b.Logf("%d members: ratio %.2f of the CPU, %.2f of the time in commands", members, cost[about][0]/cost[exact][0], cost[about][1]/cost[exact][1])
	}
	measure("make", func() {
		_, err := bd.makeLadder(b.Context(), bd.id)
		must(b, err)
	})
}

// commandTime returns the microseconds that the server has spent in commands.
func (b board) commandTime(t testing.TB) (total float64) {
	t.Helper()
	stats, err := b.client.InfoMap(t.Context(), "commandstats").Result()
	must(t, err)
	for _, section := range stats {
		for name, values := range section {
			var calls, us float64
			if name == "cmdstat_exec" { // it has the others' time
				continue
			}
			if _, err := fmt.Sscanf(values, "calls=%f,usec=%f", &calls, &us); err == nil {
				total += us
			}
		}
	}
	return total
}
