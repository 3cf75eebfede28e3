package app

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"rankcache/internal/cli"
	"rankcache/internal/testkit"
)

// TestNobodyReadsTheLog: a reader of standard error that goes away, or stands still, ends nothing and keeps nothing
// from its end.
func TestNobodyReadsTheLog(t *testing.T) {
	t.Parallel()
	redis, kafka := testkit.Redis(t), testkit.Kafka(t)
	for name, args := range map[string][]string{"serve": {"--data", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--drain", "0s"},
		"write": {"--scores", "127.0.0.1:0", "--drain", "0s", "--group", testkit.Name(t), "--topic-commands", testkit.Name(t)}, "keep": nil} {
		for _, gone := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, gone %v", name, gone), func(t *testing.T) {
				t.Parallel()
				reader, stderr, err := os.Pipe()
				must(t, err)
				defer reader.Close()
				if gone {
					must(t, reader.Close())
				} else { // as much as a pipe holds
					_, err := stderr.Write(bytes.Repeat([]byte("x"), 64<<10))
					must(t, err)
				}
				socket := filepath.Join(t.TempDir(), "s")
				cmd := exec.Command(os.Args[0], append([]string{name, "--redis", "redis://" + redis, "--kafka", kafka, "--health", "unix:" + socket}, args...)...)
				cmd.Env, cmd.Stderr = append(os.Environ(), envRunMain+"=1"), stderr
				must(t, cmd.Start())
				stderr.Close()
				late := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
				defer late.Stop()
				client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
					return new(net.Dialer).DialContext(ctx, "unix", socket)
				}, DisableKeepAlives: true}}
				testkit.Eventually(t, time.Minute, func() error {
					res, err := client.Get("http://localhost/readyz")
					if err != nil {
						return err
					}
					defer res.Body.Close()
					if res.StatusCode != http.StatusOK {
						return fmt.Errorf("readiness: %s", res.Status)
					}
					return nil
				})
				must(t, cmd.Process.Signal(syscall.SIGTERM))
				_ = cmd.Wait()
				if code := cmd.ProcessState.ExitCode(); code != cli.ExitOK {
					t.Errorf("ended with %v", cmd.ProcessState)
				}
			})
		}
	}
}
