package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rankcache/internal/cli"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

// logInRedis is a board that is super-hot by the log in a Redis of its own; there is no Kafka.
type logInRedis struct {
	*testing.T
	redis  *servers.Redis
	writer *child
	board  string
	args   []string // of each process
	orders int
}

func newLogInRedis(t *testing.T) *logInRedis {
	r := &logInRedis{T: t, redis: testkit.StartRedis(t, servers.RedisOptions{Args: []string{"--appendonly", "yes"}}), board: "star"}
	file := filepath.Join(t.TempDir(), "rooms.yaml")
	must(t, os.WriteFile(file, []byte("boards: [{match: star, mode: super-hot}, {match: \"lb:*:weekly\", mode: super-hot}]\n"), 0o600))
	r.args = []string{"--log", "redis", "--rooms", file}
	r.writer = r.start("write")
	r.writer.becomesReady("write")
	return r
}

func (r *logInRedis) start(command string, more ...string) *child {
	return needy(r.T, command, "redis://"+r.redis.Addr(), "", append(r.args, more...)...)
}

// post makes n changes.
func (r *logInRedis) post(n int) {
	r.Helper()
	for range n {
		r.orders++
		body := fmt.Sprintf(`{"order":"o%d","board":%q,"member":"m%d","op":"incr","delta":1}`, r.orders, r.board, r.orders%7)
		resp, err := http.Post(r.writer.URL("scores", "/v1/scores"), "application/json", strings.NewReader(body))
		must(r.T, err)
		if resp.Body.Close(); resp.StatusCode != http.StatusOK {
			r.Fatal(resp.Status)
		}
	}
}

// whole waits until a sidecar answers the board from its memory with all changes.
func (r *logInRedis) whole(s *child) {
	r.Helper()
	testkit.Eventually(r, time.Minute, func() error {
		_, body := s.Get("data", "/v1/boards/"+r.board+"/top")
		var page struct {
			Seq    int
			Source string
		}
		if err := json.Unmarshal([]byte(body), &page); err != nil || page.Source != "local" || page.Seq != r.orders {
			return fmt.Errorf("%v: want %d, got %s", err, r.orders, body)
		}
		return nil
	})
}

// A board is whole in memory with one Redis and no Kafka anywhere: in a sidecar, in one that begins with the snapshot of
// a keeper, in one that begins with its file, and after Redis was killed.
func TestWholeByTheLogInRedis(t *testing.T) {
	t.Parallel()
	r := newLogInRedis(t)
	r.post(30)
	s := r.start("serve")
	s.becomesReady("serve")
	r.whole(s)
	r.post(20)
	r.whole(s)
	if _, status := s.Get("admin", "/status"); contains(status, "log: Redis") != nil {
		t.Error("the status:", status)
	}

	url := "file://" + t.TempDir()
	keeper := r.start("keep", "--snapshots", url, "--snapshot-every", "100ms")
	keeper.becomesReady("keep")
	testkit.Eventually(t, time.Minute, func() error {
		_, body := keeper.Get("health", "/metrics")
		return contains(body, `rankcache_snapshots_saves_total{result="ok"}`)
	})
	dir := t.TempDir()
	fresh := r.start("serve", "--snapshots", url, "--snapshot-dir", dir)
	loads := func(c *child, want string) {
		t.Helper()
		if _, body := c.Get("admin", "/metrics"); contains(body, "rankcache_replay_snapshots_total "+want) != nil {
			t.Errorf("want %s boards loaded from Redis", want)
		}
	}
	r.whole(fresh)
	r.post(5)
	r.whole(fresh)
	loads(fresh, "0")
	fresh.Signal(syscall.SIGTERM)
	fresh.Wait(time.Minute)
	r.post(5)
	again := r.start("serve", "--snapshot-dir", dir)
	r.whole(again)
	loads(again, "0")

	must(t, r.redis.Kill())
	must(t, r.redis.Restart(t.Context()))
	testkit.Eventually(t, time.Minute, func() error { code, _ := s.Get("health", "/readyz"); return statusOK(code) })
	r.writer.becomesReady("write")
	r.post(5)
	for _, c := range []*child{s, again} {
		r.whole(c)
	}
}

func statusOK(code int) error {
	if code != http.StatusOK {
		return fmt.Errorf("code %d", code)
	}
	return nil
}

// Doctor and rooms check tell that the log is in Redis; what can't be with it is refused at the start, by name.
func TestLogInRedisIsTold(t *testing.T) {
	t.Parallel()
	addr := "redis://" + testkit.StartRedis(t, servers.RedisOptions{}).Addr()
	args := []string{"--redis", addr, "--log", "redis", "--for", "serve,keep,write"}
	found, code, text := examine(t, args...)
	expect(t, found, "kafka", "skip: no Kafka")
	if expect(t, found, "log", "ok: log: Redis, key rankcache:log, which has nothing yet"); code != 0 {
		t.Error(code, text)
	}
	run := func(line ...string) (string, error) {
		var out bytes.Buffer
		err := cli.Run(t.Context(), NewCommand(), line, &out, &out)
		return out.String(), err
	}
	file := filepath.Join(t.TempDir(), "rooms.yaml")
	must(t, os.WriteFile(file, []byte("rooms: [{uid: '88', mode: super-hot}]"), 0o600))
	if text, err := run("rooms", "check", file, "--log", "redis"); err != nil || !strings.Contains(text, "Log of changes: Redis.") {
		t.Error(text, err)
	}
	durable := filepath.Join(t.TempDir(), "durable.yaml")
	must(t, os.WriteFile(durable, []byte("classes: [{name: gift, board: gift, period: none, durable: true, mode: super-hot}]"), 0o600))
	for line, want := range map[string]string{
		"rooms check " + durable + " --log redis":                              "it is durable, which needs Kafka",
		"serve --log redis --rooms " + durable:                                 "it is durable, which needs Kafka",
		"serve --log redis --redis-role replica":                               "regions follow a log in Kafka",
		"serve --log redis --total none":                                       "--total none",
		"serve --log redis --redis-mode cluster":                               "or Kafka",
		"keep --log redis --redis-mode cluster":                                "or Kafka",
		"keep --log redis --redis-mode instances --redis redis://a:1?addr=b:1": "or Kafka",
		"serve --log both":                                                     "want kafka or redis",
	} {
		if _, err := run(strings.Fields(line)...); cli.ExitCode(err) == 0 || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}
