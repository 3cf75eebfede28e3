package app

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/lab/fill"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// memoryCase is one step of the walk up to the memory limit.
type memoryCase struct {
	limit           int // in MiB
	boards, members int
	logged          bool // the updates are in Kafka; else the boards are loaded from Redis
	local           int  // so many boards fit at least; the others are Redis's
}

var memoryCases = []memoryCase{
	{128, 24, 20_000, true, 14},
	{96, 3, 20_000, true, 1},
	{240, 14, 100_000, true, 10},
	{360, 1, 2_000_000, false, 0},
	{512, 36, 100_000, false, 30},
	{512, 1, 2_000_000, true, 1},
}

// TestMemoryStaysUnderTheLimit runs the real binary, not the one with the race detector in
// it, with super-hot boards up to what the limit holds and beyond: those that fit open,
// the others are answered by Redis, also after all were filled again; the kernel does not
// kill it, and the garbage collector does not run all the time.
func TestMemoryStaysUnderTheLimit(t *testing.T) {
	testkit.FullOnly(t, "boards of 128 MiB and more take minutes and all of the machine")
	binary := filepath.Join(t.TempDir(), "rankcache")
	if out, err := exec.Command("go", "build", "-o", binary, "rankcache/cmd/rankcache").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	for _, c := range memoryCases {
		t.Run(fmt.Sprintf("%d MiB, %d boards of %d", c.limit, c.boards, c.members), func(t *testing.T) { c.run(t, binary) })
	}
}

// run starts the binary in a cgroup. Where none can be made it gets the limits as settings, which
// shows the same of its own arithmetic, but not that the kernel agrees.
func (c memoryCase) run(t *testing.T, binary string) {
	b := c.fill(t)
	argv := []string{binary, "serve", "--data", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--health", "127.0.0.1:0",
		"--redis", "redis://" + testkit.Redis(t), "--kafka", testkit.Kafka(t), "--rooms", b.rooms, "--redis-timeout", "5s",
		"--key-rooms", testkit.Name(t), "--hot=false", "--give-up-after", "10m"}
	group := testkit.MemoryCgroup(t, c.limit<<20)
	if argv = testkit.InCgroup(group, argv...); group == "" {
		fmt.Fprintf(os.Stderr, "\n*** NO MEMORY CGROUP CAN BE MADE HERE (that takes root, and cgroups that can be written): %s runs without the kernel's limit\n", t.Name())
		t.Setenv("GOMEMLIMIT", fmt.Sprint((c.limit-60)<<20))
		argv = append(argv, "--memory-budget", fmt.Sprint(c.limit<<20*60/100))
	}
	s := startCommand(t, argv[0], argv[1:]...)
	s.WaitListening()
	s.WaitReady(10 * time.Minute)
	if group != "" {
		s.waitStatus("memory.limit_source", "cgroup")
		s.waitStatus("memory.limit_bytes", fmt.Sprint(c.limit<<20))
	}
	local := s.waitLocal(b.all, 0)
	if local < c.local {
		t.Errorf("%d boards are answered locally, want %d at least", local, c.local)
	}
	b.beginAnew(t)
	s.waitLocal(b.all, local) // all of them filled again
	if most := mostMemory(t, s.PID()); most > c.limit<<20 {
		t.Errorf("%d MiB used of %d", most>>20, c.limit)
	}
	if share := s.collectorShare(); share > maxCollectorShare {
		t.Errorf("the garbage collector took %.0f %% of the CPU: it is short of memory", 100*share)
	}
	t.Logf("%d of %d boards open, at most %d MiB used of %d, collector %.1f %% of %.1f CPU-seconds", local, c.boards,
		mostMemory(t, s.PID())>>20, c.limit, 100*s.collectorShare(), s.metric("process_cpu_seconds_total"))
}

// maxCollectorShare is the share of the CPU that the collector may take. It takes a twentieth at
// most while boards are filled, and Go lets one that is short of memory take a half.
const maxCollectorShare = 0.3

// waitLocal waits until every board is answered, by memory if and only if it is admitted,
// and the given number of boards was filled again. It returns how many are in memory.
func (c *child) waitLocal(all []rankcache.BoardID, refills int) (local int) {
	c.t.Helper()
	testkit.Eventually(c.t, 10*time.Minute, func() error {
		local = 0
		for _, b := range all {
			if code, source := c.answers(b); code != 200 {
				return fmt.Errorf("%s answers %d", b, code)
			} else if source == "local" {
				local++
			}
		}
		if n := c.metric("rankcache_memory_admitted_boards"); local != int(n) {
			return fmt.Errorf("%d of %.0f admitted boards are open", local, n)
		}
		if n := c.metric("rankcache_replay_refills_total"); int(n) < refills {
			return fmt.Errorf("%.0f of %d boards were filled again", n, refills)
		}
		return nil
	})
	if refused := c.metric(`rankcache_memory_refused_boards{reason="over_budget"}`); local+int(refused) != len(all) {
		c.t.Errorf("%d boards are in memory and %.0f refused, of %d", local, refused, len(all))
	}
	return local
}

// metric returns the value of a series, 0 if there is none.
func (c *child) metric(series string) float64 {
	_, body := c.Get("health", "/metrics")
	_, rest, _ := strings.Cut(body, "\n"+series+" ")
	text, _, _ := strings.Cut(rest, "\n")
	value, _ := strconv.ParseFloat(text, 64)
	return value
}

// collectorShare returns the garbage collector's share of the CPU, without what it does
// while nothing else wants it.
func (c *child) collectorShare() float64 {
	const cpu = "go_cpu_classes_%s_cpu_seconds_total"
	idle, gcIdle := c.metric(fmt.Sprintf(cpu, "idle")), c.metric(fmt.Sprintf(cpu, "gc_mark_idle"))
	gc, total := c.metric(fmt.Sprintf(cpu, "gc_total")), c.metric("go_cpu_classes_total_cpu_seconds_total")
	if total == 0 {
		c.t.Error("no metrics of the garbage collector")
		return 1
	}
	return (gc - gcIdle) / (total - idle - gcIdle)
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

// filledBoards are boards in Redis, each with a topic.
type filledBoards struct {
	all    []rankcache.BoardID
	rooms  string // their rooms file
	client *redis.Client
	scores map[string]float64 // of each
	boards map[rankcache.BoardID]*fill.Board
}

// fill makes the boards.
func (c memoryCase) fill(t *testing.T) *filledBoards {
	t.Helper()
	b := &filledBoards{client: redis.NewClient(&redis.Options{Addr: testkit.Redis(t), Protocol: 2, ReadTimeout: time.Minute}),
		rooms: filepath.Join(t.TempDir(), "rooms.yaml"), scores: make(map[string]float64, c.members), boards: map[rankcache.BoardID]*fill.Board{}}
	t.Cleanup(func() { b.client.Close() })
	for i := range c.members {
		b.scores[fmt.Sprintf("%010d", i)] = float64(i)
	}
	text := "boards:\n"
	for range c.boards {
		id := rankcache.BoardID(testkit.Name(t))
		b.all, text = append(b.all, id), text+fmt.Sprintf("- {match: %q, mode: super-hot}\n", id)
		if b.boards[id] = fill.NewBoardOf(id, b.scores, uint64(c.members)); c.logged {
			b.boards[id] = fill.NewBoard(id)
		}
		b.publish(t, id, c.logged)
	}
	b.inRedis(t)
	t.Cleanup(func() { b.forget(t) })
	must(t, os.WriteFile(b.rooms, []byte(text), 0o644))
	return b
}

// publish makes a board's topic, with or without its updates.
func (b *filledBoards) publish(t *testing.T, id rankcache.BoardID, updates bool) {
	t.Helper()
	topic, err := fill.NewTopic(t.Context(), testkit.Kafka(t), wire.DefaultNames().Topic(id), 1)
	must(t, err)
	defer topic.Close()
	if !updates {
		return
	}
	for member, score := range b.scores {
		u := b.boards[id].Set(member, score)
		must(t, topic.Put(&u))
	}
	must(t, topic.Flush(t.Context()))
}

func (b *filledBoards) inRedis(t *testing.T) {
	t.Helper()
	for _, board := range b.boards {
		must(t, board.Redis(t.Context(), b.client, wire.DefaultNames(), time.Hour))
	}
}

// beginAnew makes Redis what it is after each board began a new run in another state: all are to be
// filled again.
func (b *filledBoards) beginAnew(t *testing.T) {
	b.scores[fmt.Sprintf("%010d", 0)]--
	for id := range b.boards {
		b.boards[id] = fill.NewBoardOf(id, b.scores, uint64(len(b.scores)))
	}
	b.inRedis(t)
}

// forget frees what the next case needs of the machine.
func (b *filledBoards) forget(t *testing.T) {
	for _, id := range b.all {
		must(t, b.client.Unlink(context.Background(), string(id)).Err())
		must(t, fill.DeleteTopic(context.Background(), testkit.Kafka(t), wire.DefaultNames().Topic(id)))
	}
}
