package app

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/cli"
	"rankcache/internal/testkit"
)

// A sidecar without Kafka is ready, complains of nothing, and refuses boards that it could not keep.
func TestServeWithoutKafka(t *testing.T) {
	t.Parallel()
	s := needy(t, "serve", "redis://"+testkit.Redis(t), "", "--admin-token", "hush")
	s.becomesReady("serve")
	var status struct {
		Dependencies map[string]struct{ State string }
	}
	_, body := s.Get("admin", "/status")
	if err := json.Unmarshal([]byte(body), &status); err != nil || status.Dependencies["kafka"].State != "off" {
		t.Errorf("%v: %s", err, body)
	}
	set := func(mode string, token ...string) error {
		var out bytes.Buffer
		return cli.Run(t.Context(), NewCommand(), append([]string{"rooms", "set", "88", "--mode", mode, "--admin", s.Addr("admin")}, token...), &out, &out)
	}
	for _, token := range [][]string{nil, {"--admin-token", "another"}} {
		if err := set("hot", token...); err == nil || !strings.Contains(err.Error(), "the sidecar has its token from its --admin-token (or its variable, or its file), this command from the same flag") {
			t.Errorf("with the token %q: %v", token, err)
		}
	}
	if err := set("super-hot", "--admin-token", "hush"); err == nil || !strings.Contains(err.Error(), `room "88" is super-hot, which needs Kafka`) {
		t.Error("a super-hot room:", err)
	}
	if err := set("hot", "--admin-token", "hush"); err != nil {
		t.Error("a hot room:", err)
	}
	for line := range strings.Lines(s.Log()) {
		if strings.Contains(line, `"WARN"`) || strings.Contains(line, `"ERROR"`) {
			t.Error("it complains:", line)
		}
	}
}

// Keys as apps have them are boards over HTTP, percent-encoded, and over RESP, and pinned by their pattern.
func TestOddBoardIDs(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: testkit.Redis(t)})
	t.Cleanup(func() { _ = client.Close() })
	s := needy(t, "serve", "redis://"+testkit.Redis(t), "", "--resp", "127.0.0.1:0")
	s.becomesReady("serve")
	here := redis.NewClient(&redis.Options{Addr: strings.TrimPrefix(s.URL("resp", ""), "http://")})
	t.Cleanup(func() { _ = here.Close() })
	name := testkit.Name(t)
	for _, id := range []string{"lb:{eu}:weekly", "a/b//c", "/", "#1", "u@h", "p|q", "k=v&w=x", "a+b", "1,2", "~$!", "..", "{a}{b}", "x;y(z)^"} {
		id = name + id
		must(t, client.ZAdd(t.Context(), id, redis.Z{Score: 7, Member: "m/1"}).Err())
		t.Cleanup(func() { client.Del(context.Background(), id) })
		for _, path := range []string{"/top?limit=1&me=m%2F1", "/members/m%2F1"} {
			if code, body := s.Get("data", "/v1/boards/"+url.PathEscape(id)+path); code != http.StatusOK || !strings.Contains(body, `"m/1","score":7`) {
				t.Errorf("%s of %s: %d %s", path, id, code, body)
			}
		}
		must(t, here.ZIncrBy(t.Context(), id, 1, "m/1").Err())
		if rows, err := here.ZRevRangeWithScores(t.Context(), id, 0, 0).Result(); err != nil || len(rows) != 1 || rows[0] != (redis.Z{Score: 8, Member: "m/1"}) {
			t.Errorf("%s over RESP: %v, %v", id, rows, err)
		}
	}
	for _, id := range []string{"a b", "a*", "a%2F", `a"`, "a`", "{}a", "a{b"} {
		if code, body := s.Get("data", "/v1/boards/"+url.PathEscape(id)+"/top"); code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", id, code, body)
		}
	}
}

// What can't be without Kafka is refused at the start, by name.
func TestKafkaIsMissed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "rooms.yaml")
	must(t, os.WriteFile(file, []byte("rooms: [{uid: '88', mode: super-hot}]"), 0o600))
	durable := filepath.Join(t.TempDir(), "durable.yaml")
	must(t, os.WriteFile(durable, []byte("classes: [{name: gift, board: gift, period: none, durable: true}]"), 0o600))
	for line, want := range map[string]string{
		"serve --rooms " + file:                  `room "88" is super-hot, which needs Kafka`,
		"write":                                  "rankcache write needs Kafka",
		"write --log both":                       "rankcache write needs Kafka",
		"write --log redis --kafka 127.0.0.1:1":  "leave out --kafka",
		"write --log redis --redis-mode cluster": "several masters (--redis-mode cluster) can't have the log",
		"write --log both --redis-mode cluster --kafka 127.0.0.1:1": "several masters (--redis-mode cluster) can't have the log",
		"write --log redis --redis-mode instances":                  "several masters (--redis-mode instances) can't have the log",
		"write --log redis --log-size 64":                           "want bytes such as 64MiB",
		"write --log redis --rooms " + durable:                      "class gift: it is durable, which needs Kafka",
		"controller":                                                "rankcache controller needs Kafka",
		"ledger --database postgres://127.0.0.1/none":               "rankcache ledger needs Kafka",
		"rebuild --from log --board b --database postgres://none":   "rankcache rebuild --from log needs Kafka",
	} {
		var out bytes.Buffer
		if err := cli.Run(t.Context(), NewCommand(), strings.Fields(line), &out, &out); cli.ExitCode(err) != cli.ExitUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want a usage error with %q", line, err, want)
		}
	}
}

// Doctor leaves Kafka out where there is none, and tells roles that can't do without it.
func TestDoctorWithoutKafka(t *testing.T) {
	t.Parallel()
	args := []string{"--redis", "redis://" + testkit.Redis(t), "--key-rooms", testkit.Name(t)}
	found, code, text := examine(t, args...)
	expect(t, found, "kafka", "skip: no Kafka")
	expect(t, found, "kafka-topics", "skip: no Kafka")
	expect(t, found, "redis", "ok: answers")
	if code != 0 {
		t.Error(code, text)
	}
	found, code, _ = examine(t, append(args, "--for", "serve,write")...)
	if expect(t, found, "kafka", "fail: rankcache write needs Kafka"); code != 1 {
		t.Error("doctor for a writer: exit code", code)
	}
}
