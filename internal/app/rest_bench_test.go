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
	"rankcache/rooms"
	"rankcache/wire"
)

// BenchmarkBoardsAtRest is what a sidecar with many open boards at rest takes
// of Redis and of itself, by looks at their states and the walk through them, where each
// board has a topic of its own, and where they are a class's and share one:
// go test -run '^$' -bench BoardsAtRest -benchtime 1x ./internal/app
func BenchmarkBoardsAtRest(b *testing.B) {
	for _, n := range []int{200, 1000, 5000} {
		b.Run(fmt.Sprint(n, "/own"), func(b *testing.B) { benchAtRest(b, ownTopics(n)) })
		b.Run(fmt.Sprint(n, "/shared"), func(b *testing.B) { benchAtRest(b, sharedTopic(b, n)) })
	}
}

func benchAtRest(b *testing.B, boards restBoards) {
	store := testkit.StartRedis(b, servers.RedisOptions{})
	client := redis.NewClient(&redis.Options{Addr: store.Addr(), Protocol: 2})
	b.Cleanup(func() { client.Close() })
	s := boards.serve(b, client, store.Addr())
	for b.Loop() {
		begun, own, theirs, calls := time.Now(), cpuOf(b, s.PID()), cpuOf(b, store.Pid()), redisCalls(b, s)
		time.Sleep(20 * time.Second)
		took := time.Since(begun).Seconds()
		b.ReportMetric(100*(cpuOf(b, s.PID())-own).Seconds()/took, "%core")
		b.ReportMetric(100*(cpuOf(b, store.Pid())-theirs).Seconds()/took, "%redis-core")
		b.ReportMetric((redisCalls(b, s)-calls)/took, "roundtrips/s")
	}
}

// restBoards are boards of 300 members, their topics and their rooms file.
type restBoards struct {
	ids    []rankcache.BoardID
	topics []string
	rooms  string
}

func ownTopics(n int) (r restBoards) {
	r.rooms = "boards:\n"
	for i := range n {
		id := rankcache.BoardID(fmt.Sprintf("rest-%04d", i))
		r.ids, r.topics = append(r.ids, id), append(r.topics, wire.DefaultNames().Topic(id))
		r.rooms += fmt.Sprintf("- {match: %q, mode: super-hot}\n", id)
	}
	return r
}

// sharedTopic returns the running boards of a class, whose period goes on for 6 hours at least.
func sharedTopic(b *testing.B, n int) (r restBoards) {
	b.Helper()
	zone := "UTC"
	if time.Now().UTC().Hour()%12 >= 6 {
		zone = "Etc/GMT+6"
	}
	r.rooms = fmt.Sprintf("classes:\n- {name: rest, board: \"rest:{n}:{period}\", period: 12h, tz: %s}\nboards:\n", zone)
	file, err := rooms.Parse([]byte(r.rooms))
	must(b, err)
	for i := range n {
		board, err := file.Classes[0].At(map[string]string{"n": strconv.Itoa(i)}, time.Now())
		must(b, err)
		r.ids, r.topics = append(r.ids, board.ID), []string{board.Topic(wire.DefaultNames())}
		r.rooms += fmt.Sprintf("- {match: %q, mode: super-hot}\n", board.ID)
	}
	return r
}

// serve starts a sidecar, and returns when the boards are open.
func (r restBoards) serve(b *testing.B, client *redis.Client, addr string) *child {
	b.Helper()
	broker, err := servers.StartKfake(kfake.NumBrokers(1))
	must(b, err)
	b.Cleanup(broker.Close)
	scores := make(map[string]float64)
	for i := range 300 {
		scores[fmt.Sprintf("member-%03d", i)] = float64(i)
	}
	for _, name := range r.topics {
		topic, err := fill.NewTopic(b.Context(), broker.Addr(), name, 1)
		must(b, err)
		topic.Close()
	}
	for _, id := range r.ids {
		must(b, fill.NewBoardOf(id, scores, 300).Redis(b.Context(), client, wire.DefaultNames(), 0))
	}
	path := filepath.Join(b.TempDir(), "rooms.yaml")
	must(b, os.WriteFile(path, []byte(r.rooms), 0o644))
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
