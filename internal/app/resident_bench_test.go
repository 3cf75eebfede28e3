package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kfake"

	"rankcache"
	"rankcache/internal/lab/fill"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// BenchmarkResident is the memory of the real binary without a limit, with boards that were
// opened from Redis and profiles of 150 bytes, of which it reads as many as there are:
// go test -run '^$' -bench Resident -benchtime 1x ./internal/app
func BenchmarkResident(b *testing.B) {
	binary := filepath.Join(b.TempDir(), "rankcache")
	if out, err := exec.Command("go", "build", "-o", binary, "rankcache/cmd/rankcache").CombinedOutput(); err != nil {
		b.Fatalf("go build: %v\n%s", err, out)
	}
	for _, c := range []struct{ boards, members, profiles int }{{1, 300, 0}, {1, 210_000, 0}, {1, 2_000_000, 0}, {50, 57_000, 0}, {50, 57_000, 500_000}} {
		b.Run(fmt.Sprintf("%d of %d, %d profiles", c.boards, c.members, c.profiles), func(b *testing.B) {
			s := serveResident(b, binary, c.boards, c.members)
			const page = 500
			for n := range c.profiles / page {
				path := fmt.Sprintf("/v1/boards/resident-%02d/top?start=%d&limit=%d&profiles=1", n%c.boards, n/c.boards*page, page)
				if code, body := s.Get("data", path); code != http.StatusOK {
					b.Fatalf("%s: %d %s", path, code, body)
				}
			}
			for b.Loop() {
				_, heap := s.Get("admin", "/debug/pprof/heap?gc=1&debug=1")
				time.Sleep(time.Second)
				b.ReportMetric(mib(b, s.PID(), "RssAnon"), "anon-MiB")
				b.ReportMetric(mib(b, s.PID(), "RssFile"), "file-MiB")
				b.ReportMetric(mib(b, s.PID(), "VmHWM"), "highest-MiB")
				_, rest, _ := strings.Cut(heap, "# HeapAlloc = ")
				b.ReportMetric(number(b, rest)/(1<<20), "heap-MiB")
			}
		})
	}
}

// mib returns a size that the kernel knows of a process, in MiB.
func mib(b *testing.B, pid int, field string) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	must(b, err)
	_, rest, _ := strings.Cut(string(text), "\n"+field+":")
	return number(b, rest) / 1024
}

func number(b *testing.B, text string) (n float64) {
	b.Helper()
	_, err := fmt.Sscan(text, &n)
	must(b, err)
	return n
}

// serveResident starts the binary with open boards, whose members differ, and a service of profiles.
func serveResident(b *testing.B, binary string, boards, members int) *child {
	b.Helper()
	store := testkit.StartRedis(b, servers.RedisOptions{})
	client := redis.NewClient(&redis.Options{Addr: store.Addr(), Protocol: 2, ReadTimeout: time.Minute})
	b.Cleanup(func() { client.Close() })
	broker, err := servers.StartKfake(kfake.NumBrokers(1))
	must(b, err)
	b.Cleanup(broker.Close)
	profiles := httptest.NewServer(http.HandlerFunc(answerProfiles))
	b.Cleanup(profiles.Close)
	rooms := "boards:\n"
	for n := range boards {
		id, scores := rankcache.BoardID(fmt.Sprintf("resident-%02d", n)), make(map[string]float64, members)
		for i := range members {
			scores[fmt.Sprint(1_000_000_000+n*members+i)] = float64(i)
		}
		topic, err := fill.NewTopic(b.Context(), broker.Addr(), wire.DefaultNames().Topic(id), 1)
		must(b, err)
		topic.Close()
		must(b, fill.NewBoardOf(id, scores, uint64(members)).Redis(b.Context(), client, wire.DefaultNames(), 0))
		rooms += fmt.Sprintf("- {match: %q, mode: super-hot}\n", id)
	}
	path := filepath.Join(b.TempDir(), "rooms.yaml")
	must(b, os.WriteFile(path, []byte(rooms), 0o644))
	s := startCommand(b, binary, "serve", "--data", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--health", "127.0.0.1:0", "--redis", "redis://"+store.Addr(),
		"--redis-timeout", "5s", "--kafka", broker.Addr(), "--rooms", path, "--give-up-after", "10m",
		"--profile-url", profiles.URL, "--profile-budget-mib", "256", "--profile-deadline", "10s")
	s.WaitListening()
	s.WaitReady(10 * time.Minute)
	return s
}

// answerProfiles has a profile of 150 bytes of each member.
func answerProfiles(w http.ResponseWriter, r *http.Request) {
	var ask struct{ Members []string }
	if err := json.NewDecoder(r.Body).Decode(&ask); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer := make(map[string]json.RawMessage, len(ask.Members))
	for _, member := range ask.Members {
		answer[member] = fmt.Appendf(nil, `{"nick":"nick of %s","avatar":"https://img.example/%084d.webp"}`, member, 7)
	}
	json.NewEncoder(w).Encode(map[string]any{"profiles": answer})
}
