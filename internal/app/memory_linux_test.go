package app

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/lab/fill"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// TestMemoryStaysUnderTheLimit runs the real binary, not the one with the race
// detector in it, with more super-hot boards than there is memory for: those that
// fit open, the others are answered by Redis, and the limit is kept. Where no cgroup
// can be made, the same is shown of limits that it is told.
func TestMemoryStaysUnderTheLimit(t *testing.T) {
	const boards, members, limit = 20, 50_000, 80 << 20
	binary := filepath.Join(t.TempDir(), "rankcache")
	if out, err := exec.Command("go", "build", "-o", binary, "rankcache/cmd/rankcache").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	all, rooms := manyBoards(t, boards, members)
	serve := []string{binary, "serve", "--data", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--health", "127.0.0.1:0",
		"--redis", "redis://" + testkit.Redis(t), "--kafka", testkit.Kafka(t), "--rooms", rooms, "--redis-timeout", "5s",
		"--key-rooms", testkit.Name(t), "--hot=false"}
	const fit = limit * 60 / 100 / (128<<10 + members*108)
	t.Run("of a cgroup", func(t *testing.T) {
		group := testkit.MemoryCgroup(t, limit)
		if group == "" {
			const why = "no memory cgroup can be made here: run as root, with cgroups that can be written"
			fmt.Fprintf(os.Stderr, "\n*** A TEST IS SKIPPED: %s: %s\n", t.Name(), why)
			t.Skip(why)
		}
		argv := testkit.InCgroup(group, serve...)
		s := startCommand(t, argv[0], argv[1:]...)
		s.keepsUnder(limit, all, fit)
		s.waitStatus("memory.limit_source", "cgroup")
		s.waitStatus("memory.limit_bytes", fmt.Sprint(limit))
	})
	t.Run("that it is told", func(t *testing.T) { // needs no cgroup
		t.Setenv("GOMEMLIMIT", fmt.Sprintf("%.0f", (limit-kafkaQueue-kafkaRest)*goShare))
		s := startCommand(t, serve[0], append(serve[1:], "--memory-budget", fmt.Sprint(limit*60/100))...)
		s.keepsUnder(limit, all, fit)
	})
}

// keepsUnder wants all boards answered, as many as fit from memory, and never more
// memory in use than the limit.
func (c *child) keepsUnder(limit int, all []rankcache.BoardID, fit int) {
	c.t.Helper()
	c.WaitListening()
	c.WaitReady(2 * time.Minute)
	if !strings.Contains(c.Log(), `"msg":"limits"`) {
		c.t.Errorf("Go's memory is not limited: %s", c.Log())
	}
	local := 0
	for _, b := range all {
		if code, source := c.answers(b); code != 200 {
			c.t.Errorf("%s answers %d", b, code)
		} else if source == "local" {
			local++
		}
	}
	if local != fit {
		c.t.Errorf("%d boards are answered locally, want %d", local, fit)
	}
	c.waitStatus("memory.admitted", fmt.Sprint(fit))
	most := mostMemory(c.t, c.PID())
	if most > limit {
		c.t.Errorf("%d MiB used of %d", most>>20, limit>>20)
	}
	c.t.Logf("%d boards open, %d refused, at most %d MiB used of %d", local, len(all)-local, most>>20, limit>>20)
}

// mostMemory returns the most bytes that a process ever had, less its pages of
// files, which the kernel drops before it kills.
func mostMemory(t testing.TB, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	kib := func(field string) (n int) {
		_, rest, _ := strings.Cut(string(text), "\n"+field+":")
		if _, err := fmt.Sscan(rest, &n); err != nil {
			t.Fatalf("no %s: %v", field, err)
		}
		return n
	}
	return (kib("VmHWM") - kib("RssFile")) << 10
}

// manyBoards puts boards into Redis and gives each a topic without records, so
// that it is loaded from Redis. It returns them and their rooms file.
func manyBoards(t *testing.T, boards, members int) (all []rankcache.BoardID, rooms string) {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: testkit.Redis(t), Protocol: 2, ReadTimeout: time.Minute})
	t.Cleanup(func() { client.Close() })
	names, text := wire.DefaultNames(), "boards:\n"
	scores := make(map[string]float64, members)
	for i := range members {
		scores[fmt.Sprintf("%08d", i)] = float64(i)
	}
	for range boards {
		b := rankcache.BoardID(testkit.Name(t))
		testkit.CreateTopic(t, testkit.Kafka(t), names.Topic(b), 1, nil)
		must(t, fill.NewBoardOf(b, scores, uint64(members)).Redis(t.Context(), client, names, time.Hour))
		all, text = append(all, b), text+fmt.Sprintf("- {match: %q, mode: super-hot}\n", b)
	}
	rooms = filepath.Join(t.TempDir(), "rooms.yaml")
	must(t, os.WriteFile(rooms, []byte(text), 0o644))
	return all, rooms
}
