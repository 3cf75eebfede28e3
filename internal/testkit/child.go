package testkit

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	// keptLines is how many lines of a child's log are kept: all of a test's, the last of a long run's.
	keptLines = 4000
	// listenWithin is how long a child may take until it listens.
	listenWithin = time.Minute
)

// Child is a rankcache process. Its methods may be called concurrently; those that wait fail the test, so call them
// from its goroutine.
type Child struct {
	t    testing.TB
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended

	mu    sync.Mutex
	lines []string          // of its log
	addrs map[string]string // by listener, from its log
}

// StartChild starts cmd, which is rankcache or becomes it and logs in JSON, and returns at once. What it logs is kept;
// at the end of the test it is killed, and its log shown if the test failed.
func StartChild(t testing.TB, cmd *exec.Cmd) *Child {
	t.Helper()
	c := &Child{t: t, cmd: cmd, done: make(chan struct{})}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go c.read(stderr)
	t.Cleanup(func() {
		c.Kill()
		if t.Failed() {
			t.Logf("rankcache %v:\n%s", cmd.Args[1:], c.Log())
		}
	})
	return c
}

func (c *Child) read(stderr io.Reader) {
	defer close(c.done)
	lines := bufio.NewScanner(stderr)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		c.note(lines.Text())
	}
	_ = c.cmd.Wait() // its state has how it ended
}

// listening are the messages, with the listeners' addresses, of a command that has started.
var listening = []any{"serving", "writing", "polling", "controlling", "keeping", "keeping the ledger", "reconciling"}

func (c *Child) note(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lines = append(c.lines, line); len(c.lines) > keptLines {
		c.lines = c.lines[1:]
	}
	var entry map[string]any
	if json.Unmarshal([]byte(line), &entry) != nil || !slices.Contains(listening, entry["msg"]) {
		return
	}
	c.addrs = map[string]string{}
	for name, value := range entry {
		if addr, ok := value.(string); ok {
			c.addrs[name] = addr
		}
	}
}

// WaitListening waits until it tells where it listens, and returns c.
func (c *Child) WaitListening() *Child {
	c.t.Helper()
	Eventually(c.t, listenWithin, func() error {
		if c.Addr("health") == "" && c.Addr("http") == "" {
			return fmt.Errorf("not listening yet:\n%s", c.Log())
		}
		return nil
	})
	return c
}

// WaitReady waits until the health port reports ready.
func (c *Child) WaitReady(atMost time.Duration) {
	c.t.Helper()
	Eventually(c.t, atMost, func() error {
		if code, body := c.Get("health", "/readyz"); code != http.StatusOK {
			return fmt.Errorf("%d %s", code, body)
		}
		return nil
	})
}

// Log returns what it has logged.
func (c *Child) Log() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.lines, "\n")
}

// Addr returns the host:port of a listener, named by its flag, or "" before it listens.
func (c *Child) Addr(listener string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.addrs[listener]
}

// URL returns the URL of a path at a listener.
func (c *Child) URL(listener, path string) string { return "http://" + c.Addr(listener) + path }

// Get asks a listener for a path and returns status and body, or 0 and why there is no answer.
func (c *Child) Get(listener, path string) (status int, body string) {
	resp, err := http.Get(c.URL(listener, path))
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

// PID returns its process id.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Signal sends it a signal; one that has ended does not mind.
func (c *Child) Signal(s syscall.Signal) { _ = c.cmd.Process.Signal(s) }

// Kill ends it as a crash would and waits until it is gone.
func (c *Child) Kill() {
	_ = c.cmd.Process.Kill() // it may have ended
	<-c.done
}

// Done is closed when it has ended.
func (c *Child) Done() <-chan struct{} { return c.done }

// Wait waits until it has ended by itself or by a signal, and returns its exit code.
func (c *Child) Wait(atMost time.Duration) int {
	c.t.Helper()
	select {
	case <-c.done:
	case <-time.After(atMost):
		c.t.Fatalf("rankcache did not end within %v:\n%s", atMost, c.Log())
	}
	return c.cmd.ProcessState.ExitCode()
}
