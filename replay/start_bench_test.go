package replay_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

// startCost is what one start of a pod took.
type startCost struct {
	redis, open time.Duration // CPU of Redis, and time until ready
	records     float64       // read of Kafka
}

// BenchmarkStart starts pods with 4 boards of 100,000 members in turns: from the logs, from Redis where the logs have lost their
// beginning, and from the fleet's snapshots.
func BenchmarkStart(b *testing.B) {
	cache := testkit.StartRedis(b, servers.RedisOptions{})
	e := newEnvOn(b, testkit.Kafka(b), cache.Addr())
	e.still = false // no comparison of every entry within the time
	f, cut := e.newFleet(), e.newFleet()
	var whole, truncated []*board
	for range 4 {
		for _, all := range []*[]*board{&whole, &truncated} {
			board := e.newBoard(1, nil)
			board.fill(200_000, 100_000)
			*all = append(*all, board)
		}
	}
	f.keep(e, whole...)
	cut.keep(e, truncated...)
	for _, board := range truncated {
		board.deleteRecords(100_000)
	}
	costs := map[string][]startCost{}
	for b.Loop() {
		for range 3 {
			costs["log"] = append(costs["log"], e.startOnce(whole))
			costs["log, snapshots"] = append(costs["log, snapshots"], e.startOnce(whole, sharing(f)))
			costs["Redis"] = append(costs["Redis"], e.startOnce(truncated))
			costs["Redis, snapshots"] = append(costs["Redis, snapshots"], e.startOnce(truncated, sharing(cut)))
		}
	}
	for _, name := range []string{"log", "log, snapshots", "Redis", "Redis, snapshots"} {
		fmt.Printf("%-16s Redis %v, ready after %v, %v records\n", name, median(costs[name], func(c startCost) time.Duration { return c.redis }),
			median(costs[name], func(c startCost) time.Duration { return c.open }), costs[name][0].records)
	}
}

func median(all []startCost, of func(startCost) time.Duration) time.Duration {
	var values []time.Duration
	for _, c := range all {
		values = append(values, of(c))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// startOnce starts a sidecar until it is ready, and ends it.
func (e *env) startOnce(boards []*board, opts ...option) (c startCost) {
	e.t.Helper()
	runtime.GC()
	before, begun := redisCPU(e), time.Now()
	s := e.start(ids(boards...), opts...)
	defer s.stop()
	for ok := false; !ok; ok, _ = s.Ready() {
		time.Sleep(time.Millisecond)
	}
	c.open, c.redis, c.records = time.Since(begun), redisCPU(e)-before, s.counter("rankcache_replay_records_total")
	for _, board := range boards {
		if _, open := s.boards.Get(board.id); !open {
			e.t.Fatalf("%+v", s.status(board.id))
		}
	}
	return c
}

// redisCPU returns the CPU that Redis has taken.
func redisCPU(e *env) (sum time.Duration) {
	e.t.Helper()
	info, err := e.redis.Info(e.t.Context(), "cpu").Result()
	e.check(err)
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		var seconds float64
		if _, err := fmt.Sscan(value, &seconds); err == nil && (name == "used_cpu_user" || name == "used_cpu_sys") {
			sum += time.Duration(seconds * float64(time.Second))
		}
	}
	return sum
}
