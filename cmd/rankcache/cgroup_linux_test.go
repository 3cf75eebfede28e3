package main

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
	"rankcache/internal/testkit"
)

// cgroup is a memory cgroup of this test, of version 1 or 2.
type cgroup struct{ dir string }

// newCgroup makes a cgroup with a limit. Where that is not allowed, the test is
// skipped, which is said on standard error.
func newCgroup(t *testing.T, limit int) cgroup {
	t.Helper()
	name := testkit.Name(t)
	for _, v := range []struct{ root, file string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
		{"/sys/fs/cgroup", "memory.max"},
	} {
		g := cgroup{filepath.Join(v.root, name)}
		if os.Mkdir(g.dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { os.Remove(g.dir) })
		if os.WriteFile(filepath.Join(g.dir, v.file), fmt.Append(nil, limit), 0o644) == nil {
			return g
		}
	}
	const why = "no memory cgroup can be made here: run as root, with cgroups that can be written"
	fmt.Fprintf(os.Stderr, "\n*** A TEST IS SKIPPED: %s: %s\n", t.Name(), why)
	t.Skip(why)
	return cgroup{}
}

// start runs the command in the cgroup.
func (g cgroup) start(t *testing.T, command string, args ...string) *child {
	t.Helper()
	enter := []string{"-c", `echo $$ > "$0" && exec "$@"`, filepath.Join(g.dir, "cgroup.procs"), command}
	return startCommand(t, "/bin/sh", append(enter, args...)...)
}

// TestMemoryStaysUnderTheCgroupsLimit runs the real binary, not the one with the
// race detector in it, with more super-hot boards than its cgroup has room for:
// those that fit open, the others are answered by Redis, nobody is killed.
func TestMemoryStaysUnderTheCgroupsLimit(t *testing.T) {
	const boards, members, limit = 20, 50_000, 80 << 20
	group := newCgroup(t, limit)
	binary := filepath.Join(t.TempDir(), "rankcache")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	all, rooms := manyBoards(t, boards, members)
	s := group.start(t, binary, "serve", "--data", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--health", "127.0.0.1:0",
		"--redis", "redis://"+testkit.Redis(t), "--kafka", testkit.Kafka(t), "--rooms", rooms, "--redis-timeout", "5s",
		"--key-rooms", testkit.Name(t), "--hot=false")
	s.WaitListening()
	s.WaitReady(2 * time.Minute)

	s.waitStatus("memory.limit_source", "cgroup")
	s.waitStatus("memory.limit_bytes", fmt.Sprint(limit))
	local := 0
	for _, b := range all {
		if code, source := s.answers(b); code != 200 {
			t.Errorf("%s answers %d", b, code)
		} else if source == "local" {
			local++
		}
	}
	if want := limit * 60 / 100 / (128<<10 + members*98); local != want {
		t.Errorf("%d boards are answered locally, want %d", local, want)
	}
	s.waitStatus("memory.admitted", fmt.Sprint(local))
	if !strings.Contains(s.Log(), `"msg":"limits"`) {
		t.Errorf("Go's memory is not limited: %s", s.Log())
	}
	if used, err := os.ReadFile(filepath.Join(group.dir, "memory.max_usage_in_bytes")); err == nil {
		t.Logf("%d boards open, %d refused, at most %.1f MiB used of %d", local, boards-local, mib(used), limit>>20)
	}
}

func mib(text []byte) float64 {
	var n float64
	fmt.Sscan(string(text), &n)
	return n / (1 << 20)
}

// manyBoards puts boards into Redis and gives each a topic without records, so
// that it is loaded from Redis. It returns them and their rooms file.
func manyBoards(t *testing.T, boards, members int) (all []rankcache.BoardID, rooms string) {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: testkit.Redis(t), Protocol: 2, ReadTimeout: time.Minute})
	t.Cleanup(func() { client.Close() })
	names, text := rankcache.DefaultNames(), "boards:\n"
	scores := make(map[string]float64, members)
	for i := range members {
		scores[fmt.Sprintf("%08d", i)] = float64(i)
	}
	for range boards {
		b := rankcache.BoardID(testkit.Name(t))
		testkit.CreateTopic(t, testkit.Kafka(t), names.Topic(b), 1, nil)
		must(t, fillRedis(t.Context(), client, names, b, scores, uint64(members), time.Hour))
		all, text = append(all, b), text+fmt.Sprintf("- {match: %q, mode: super-hot}\n", b)
	}
	rooms = filepath.Join(t.TempDir(), "rooms.yaml")
	must(t, os.WriteFile(rooms, []byte(text), 0o644))
	return all, rooms
}
