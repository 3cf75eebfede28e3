package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"rankcache/internal/testkit"
)

// envRunMain makes the test binary be rankcache itself, so that the end-to-end
// tests run the real command as a process of its own, under the race detector.
const envRunMain = "RANKCACHE_TEST_RUN_MAIN"

// envBinary names another rankcache to run instead, such as the static one.
const envBinary = "RANKCACHE_TEST_BINARY"

func TestMain(m *testing.M) {
	if os.Getenv(envRunMain) != "" {
		main()
		return
	}
	testkit.Main(m)
}

// child is a rankcache process.
type child struct {
	t   testing.TB
	cmd *exec.Cmd

	mu     sync.Mutex
	output bytes.Buffer
	addrs  map[string]string // of its "serving", "writing" or "polling" line
	done   chan struct{}     // closed when it has ended
}

// startChild runs rankcache with args and returns at once.
func startChild(t testing.TB, args ...string) *child {
	t.Helper()
	return startCommand(t, cmp.Or(os.Getenv(envBinary), os.Args[0]), args...)
}

// startCommand is startChild for a command that becomes rankcache.
func startCommand(t testing.TB, command string, args ...string) *child {
	t.Helper()
	c := &child{t: t, cmd: exec.Command(command, args...), done: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), envRunMain+"=1")
	stderr, err := c.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go c.read(stderr)
	t.Cleanup(func() {
		c.cmd.Process.Kill()
		<-c.done
		if t.Failed() {
			t.Logf("rankcache %v:\n%s", args, c.text())
		}
	})
	return c
}

// startListening also waits until it says where it listens.
func startListening(t testing.TB, args ...string) *child {
	t.Helper()
	return startChild(t, append(args, "--log-format", "json")...).waitListening()
}

// waitListening waits until it says, in JSON, where it listens.
func (c *child) waitListening() *child {
	c.t.Helper()
	testkit.Eventually(c.t, 30*time.Second, func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.addrs == nil {
			return fmt.Errorf("not listening yet: %s", c.output.String())
		}
		return nil
	})
	return c
}

func (c *child) read(stderr io.Reader) {
	defer close(c.done)
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		c.note(lines.Bytes())
	}
	c.cmd.Wait()
}

func (c *child) note(line []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.output.Write(line)
	c.output.WriteByte('\n')
	var said map[string]any
	if json.Unmarshal(line, &said) != nil || said["msg"] != "serving" && said["msg"] != "writing" && said["msg"] != "polling" {
		return
	}
	c.addrs = map[string]string{}
	for name, value := range said {
		if addr, ok := value.(string); ok {
			c.addrs[name] = addr
		}
	}
}

func (c *child) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.output.String()
}

func (c *child) url(listener, path string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return "http://" + c.addrs[listener] + path
}

func (c *child) signal(s syscall.Signal) { c.cmd.Process.Signal(s) }

// kill ends it as a crash would and waits until it is gone.
func (c *child) kill() {
	c.cmd.Process.Kill()
	<-c.done
}

// wait returns its exit code.
func (c *child) wait(atMost time.Duration) int {
	c.t.Helper()
	select {
	case <-c.done:
	case <-time.After(atMost):
		c.t.Fatalf("rankcache did not end within %v:\n%s", atMost, c.text())
	}
	return c.cmd.ProcessState.ExitCode()
}

// status asks a probe and returns its status code and body.
func (c *child) status(listener, path string) (int, string) {
	resp, err := http.Get(c.url(listener, path))
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body)
}

// waitReady waits until the health port says ready.
func (c *child) waitReady(atMost time.Duration) {
	c.t.Helper()
	testkit.Eventually(c.t, atMost, func() error {
		if code, body := c.status("health", "/readyz"); code != http.StatusOK {
			return fmt.Errorf("%d %s", code, body)
		}
		return nil
	})
}
