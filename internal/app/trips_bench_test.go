package app

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

// BenchmarkRoundTrips is what Redis takes for the requests of sidecars at rest, by how far they are apart: it sleeps between
// them, and to wake up is dearer than the command.
// go test -run '^$' -bench RoundTrips -benchtime 3000x ./internal/app
func BenchmarkRoundTrips(b *testing.B) {
	store := testkit.StartRedis(b, servers.RedisOptions{})
	client := redis.NewClient(&redis.Options{Addr: store.Addr(), Protocol: 2})
	b.Cleanup(func() { client.Close() })
	const boards, rows = 100, 2000
	members := make([]redis.Z, rows)
	for i := range members {
		members[i] = redis.Z{Score: float64(i), Member: fmt.Sprintf("member-%07d", i)}
	}
	board := func(i int) string { return fmt.Sprintf("board-%03d", i) }
	for i := range boards {
		must(b, client.ZAdd(b.Context(), board(i), members...).Err())
		must(b, client.Set(b.Context(), board(i)+":meta", make([]byte, 60), 0).Err())
	}
	must(b, client.Set(b.Context(), "states", make([]byte, 29+31*boards), 0).Err())
	for i := range 1000 {
		must(b, client.HSet(b.Context(), "reads", fmt.Sprint("pod-", i), make([]byte, 200)).Err())
	}
	run := func(name string, gap time.Duration, request func(redis.Pipeliner)) {
		b.Run(fmt.Sprintf("%s/gap=%v", name, gap), func(b *testing.B) {
			n, before := 0, cpuOf(b, store.Pid())
			for ; b.Loop(); n++ {
				_, err := client.Pipelined(b.Context(), func(p redis.Pipeliner) error { request(p); return nil })
				must(b, err)
				time.Sleep(gap)
			}
			b.ReportMetric(float64((cpuOf(b, store.Pid())-before).Microseconds())/float64(n), "redis-µs/op")
		})
	}
	for _, gap := range []time.Duration{0, 100 * time.Microsecond, time.Millisecond, 10 * time.Millisecond} {
		run("value", gap, func(p redis.Pipeliner) { p.GetRange(b.Context(), "states", 0, -1) })
	}
	run("rooms", 0, func(p redis.Pipeliner) { p.HLen(b.Context(), "reads") })
	run("report", 0, func(p redis.Pipeliner) {
		p.HSet(b.Context(), "reads", "pod-1", make([]byte, 200))
		p.PExpire(b.Context(), "reads", time.Minute)
	})
	run("states of 100 boards", 0, func(p redis.Pipeliner) {
		for i := range boards {
			p.Get(b.Context(), board(i)+":meta")
			p.ZCard(b.Context(), board(i))
			p.Get(b.Context(), board(i)+":meta")
		}
	})
	run("walk of 256 rows", 0, func(p redis.Pipeliner) { p.ZRevRangeWithScores(b.Context(), board(1), 256, 511) })
	run("1000 reports", 0, func(p redis.Pipeliner) { p.HGetAll(b.Context(), "reads") })
}
