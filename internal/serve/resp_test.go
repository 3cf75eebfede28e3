package serve

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"log"
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

// TestRESPOverTLS: connections to Redis are checked against --redis-ca.
func TestRESPOverTLS(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	t.Cleanup(server.Close)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	must(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	for caFile, want := range map[string]string{ca: "", "": "check --redis-ca"} {
		o, flags := Options{}, pflag.NewFlagSet("serve", pflag.ContinueOnError)
		o.Register(flags)
		must(t, flags.Parse([]string{"--redis", strings.Replace(server.URL, "https", "rediss", 1), "--redis-ca", caFile, "--redis-timeout", "10s"}))
		client, err := o.DialRedis()
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

	o, flags := Options{}, pflag.NewFlagSet("serve", pflag.ContinueOnError)
	o.Register(flags)
	must(t, flags.Parse([]string{"--redis", "redis://" + sentinel + "?master_name=boards", "--redis-mode", "sentinel", "--redis-timeout", "1s"}))
	client, err := o.DialRedis()
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
