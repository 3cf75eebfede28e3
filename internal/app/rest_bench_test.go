package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kfake"

	"rankcache"
	"rankcache/internal/lab/fill"
	"rankcache/internal/lab/load"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// BenchmarkBoardsAtRest is what a sidecar with many open boards at rest takes
// of Redis and of itself, by looks at their states and the walk through them:
// go test -run '^$' -bench BoardsAtRest -benchtime 1x ./internal/app
func BenchmarkBoardsAtRest(b *testing.B) {
	for _, n := range []int{200, 1000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			store := testkit.StartRedis(b, servers.RedisOptions{})
			client := redis.NewClient(&redis.Options{Addr: store.Addr(), Protocol: 2})
			b.Cleanup(func() { client.Close() })
			s := serveAtRest(b, client, store.Addr(), n)
			const span = 20 * time.Second
			for b.Loop() {
				own, theirs, calls := cpuOf(b, s.PID()), cpuOf(b, store.Pid()), redisCalls(b, s)
				time.Sleep(span)
				b.ReportMetric(100*(cpuOf(b, s.PID())-own).Seconds()/span.Seconds(), "%core")
				b.ReportMetric(100*(cpuOf(b, store.Pid())-theirs).Seconds()/span.Seconds(), "%redis-core")
				b.ReportMetric((redisCalls(b, s)-calls)/span.Seconds(), "roundtrips/s")
			}
		})
	}
}

// serveAtRest starts a sidecar with n open boards of 300 members.
func serveAtRest(b *testing.B, client *redis.Client, addr string, n int) *child {
	b.Helper()
	broker, err := servers.StartKfake(kfake.NumBrokers(1))
	must(b, err)
	b.Cleanup(broker.Close)
	scores := make(map[string]float64)
	for i := range 300 {
		scores[fmt.Sprintf("member-%03d", i)] = float64(i)
	}
	names, rooms := wire.DefaultNames(), "boards:\n"
	for i := range n {
		id := rankcache.BoardID(fmt.Sprintf("rest-%04d", i))
		topic, err := fill.NewTopic(b.Context(), broker.Addr(), names.Topic(id), 1)
		must(b, err)
		topic.Close()
		must(b, fill.NewBoardOf(id, scores, 300).Redis(b.Context(), client, names, 0))
		rooms += fmt.Sprintf("- {match: %q, mode: super-hot}\n", id)
	}
	path := filepath.Join(b.TempDir(), "rooms.yaml")
	must(b, os.WriteFile(path, []byte(rooms), 0o644))
	s := startListening(b, "serve", "--data", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--health", "127.0.0.1:0",
		"--redis", "redis://"+addr, "--kafka", broker.Addr(), "--rooms", path, "--give-up-after", "10m")
	s.WaitReady(5 * time.Minute)
	return s
}

// cpuOf returns the CPU time of a process.
func cpuOf(b *testing.B, pid int) time.Duration {
	b.Helper()
	took, err := load.CPU([]int{pid})
	must(b, err)
	return took
}

// redisCalls returns the round trips to Redis that the sidecar has made.
func redisCalls(b *testing.B, s *child) (n float64) {
	b.Helper()
	_, text := s.Get("health", "/metrics")
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "rankcache_redis_seconds_count{") {
			value, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndex(line, " "):]), 64)
			must(b, err)
			n += value
		}
	}
	return n
}
