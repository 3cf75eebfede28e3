package app

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/pflag"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
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
	err := Run(t.Context(), NewCommand(), args, io.Discard, io.Discard)
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

// TestRESPOverTLS: connections to Redis are checked against --redis-ca.
func TestRESPOverTLS(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	t.Cleanup(server.Close)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	must(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	for caFile, want := range map[string]string{ca: "", "": "check --redis-ca"} {
		o, flags := serveOptions{}, pflag.NewFlagSet("serve", pflag.ContinueOnError)
		o.register(flags)
		must(t, flags.Parse([]string{"--redis", strings.Replace(server.URL, "https", "rediss", 1), "--redis-ca", caFile, "--redis-timeout", "10s"}))
		client, err := o.dialRedis()
		must(t, err)
		conn, err := rawDial(client.(*redis.Client).Options())(t.Context())
		if err == nil {
			if _, secure := conn.(*tls.Conn); !secure {
				t.Errorf("a %T", conn)
			}
			_ = conn.Close()
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("--redis-ca %q: %v, want %q", caFile, err, want)
		}
		_ = client.Close()
	}
}

// TestRESPFindsTheMaster that Sentinel names.
func TestRESPFindsTheMaster(t *testing.T) {
	master := testkit.StartRedis(t, servers.RedisOptions{})
	_, port, _ := strings.Cut(master.Addr(), ":")
	ln := testkit.Listen(t, "tcp")
	sentinel := ln.Addr().String()
	_, sentinelPort, _ := strings.Cut(sentinel, ":")
	must(t, ln.Close())
	file := filepath.Join(t.TempDir(), "sentinel.conf")
	must(t, os.WriteFile(file, fmt.Appendf(nil, "bind 127.0.0.1\nport %s\nsentinel monitor boards 127.0.0.1 %s 1\n", sentinelPort, port), 0o600))
	cmd := exec.CommandContext(t.Context(), "redis-server", file, "--sentinel")
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})

	o, flags := serveOptions{}, pflag.NewFlagSet("serve", pflag.ContinueOnError)
	o.register(flags)
	must(t, flags.Parse([]string{"--redis", "redis://" + sentinel + "?master_name=boards", "--redis-mode", "sentinel", "--redis-timeout", "1s"}))
	client, err := o.dialRedis()
	must(t, err)
	t.Cleanup(func() { _ = client.Close() })
	dial := rawDial(client.(*redis.Client).Options())
	testkit.Eventually(t, 10*time.Second, func() error {
		conn, err := dial(t.Context())
		if err != nil {
			return err
		}
		defer conn.Close()
		if got := conn.RemoteAddr().String(); got != master.Addr() {
			return fmt.Errorf("connected to %s, want the master %s", got, master.Addr())
		}
		return nil
	})
}
