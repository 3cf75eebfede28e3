package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/cli"
)

// TestRESP runs an unmodified client of Redis against the command.
func TestRESP(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.give(t, h.star, 5)
	h.give(t, h.small, 3)
	star, small, socket := string(h.star), string(h.small), filepath.Join(t.TempDir(), "resp.sock")
	s := h.serve(t, "--resp", "127.0.0.1:0", "--resp-socket", socket)
	s.WaitReady(time.Minute)
	ctx := t.Context()
	for _, o := range []redis.Options{{Addr: strings.TrimPrefix(s.URL("resp", ""), "http://")}, {Network: "unix", Addr: socket, Protocol: 2}} {
		client := redis.NewClient(&o)
		t.Cleanup(func() { _ = client.Close() })
		top, err := client.ZRevRangeWithScores(ctx, star, 0, 1).Result()
		if err != nil || len(top) != 2 || top[0] != (redis.Z{Score: 5, Member: "m4"}) {
			t.Errorf("the super-hot board: %v, %v", top, err)
		}
		pipe := client.Pipeline()
		n, rank, nobody := pipe.ZCard(ctx, small), pipe.ZRevRank(ctx, star, "m4"), pipe.ZScore(ctx, star, "nobody")
		if _, err := pipe.Exec(ctx); !errors.Is(err, redis.Nil) || n.Val() != 3 || rank.Val() != 0 || !errors.Is(nobody.Err(), redis.Nil) {
			t.Errorf("a pipeline: %d, %d, %v; %v", n.Val(), rank.Val(), nobody.Err(), err)
		}
		if err := client.ZAdd(ctx, star, redis.Z{Score: 1, Member: "m9"}).Err(); err == nil || !strings.Contains(err.Error(), "written by the writer") {
			t.Errorf("a write past the writer: %v", err)
		}
	}
	code, body := s.Get("admin", "/status")
	var status struct {
		RESP struct {
			Server  string
			Reached bool
		}
	}
	if err := json.Unmarshal([]byte(body), &status); code != http.StatusOK || err != nil || !status.RESP.Reached || !strings.HasPrefix(status.RESP.Server, "redis ") {
		t.Errorf("%v; /status: %s", err, body)
	}
	if _, metrics := s.Get("admin", "/metrics"); !strings.Contains(metrics, `rankcache_resp_commands_total{command="zrevrange",source="local"} 2`) {
		t.Errorf("metrics lack the reads:\n%s", metrics)
	}
}

func TestRESPNeedsOneRedis(t *testing.T) {
	args := []string{"serve", "--resp", "127.0.0.1:0", "--redis-mode", "cluster", "--data", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--health", "127.0.0.1:0"}
	err := cli.Run(t.Context(), NewCommand(), args, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "--resp can't be used with --redis-mode cluster") {
		t.Error(err)
	}
}

// TestRESPInManifests: the line that is commented out is a setting.
func TestRESPInManifests(t *testing.T) {
	text, err := os.ReadFile(manifests + "/config/rankcache.yaml")
	must(t, err)
	file := filepath.Join(t.TempDir(), "rankcache.yaml")
	must(t, os.WriteFile(file, bytes.Replace(text, []byte("\n# resp:"), []byte("\nresp:"), 1), 0o600))
	for _, command := range [][]string{nil, {"write"}, {"poll"}} { // they share the file
		values, err := runConfig(t, append(command, "--config", file)...)
		if got := values["resp"]; err != nil || command == nil && got != "127.0.0.1:6390" {
			t.Errorf("%v: %v, %v", command, got, err)
		}
	}
}
