package faults

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"rankcache/internal/testkit"
)

// keptLines is how many lines of a child's log are kept.
const keptLines = 400

// child is a rankcache process.
type child struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended

	mu    sync.Mutex
	lines []string
	addrs map[string]string // of its "serving" or "writing" line
}

// startChild runs the command, inside the cgroup if one is given, and returns at
// once. It is killed at the end of the test.
func startChild(t testing.TB, cgroup string, args ...string) *child {
	t.Helper()
	argv := append([]string{binary}, append(args, "--log-format", "json")...)
	if cgroup != "" { // joined before the command is there to look at its limit
		argv = append([]string{"sh", "-c", `echo $$ > "$0/cgroup.procs" && exec "$@"`, cgroup}, argv...)
	}
	c := &child{cmd: exec.Command(argv[0], argv[1:]...), done: make(chan struct{})}
	c.cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "RANKCACHE_") }) // ours, not its settings
	stderr, err := c.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go c.read(stderr)
	t.Cleanup(func() {
		c.kill()
		if t.Failed() {
			t.Logf("rankcache %v:\n%s", args, c.log())
		}
	})
	return c
}

// startListening also waits until it says where it listens.
func startListening(t testing.TB, cgroup string, args ...string) *child {
	t.Helper()
	c := startChild(t, cgroup, args...)
	testkit.Eventually(t, time.Minute, func() error {
		if c.url("health") == "" {
			return fmt.Errorf("not listening yet: %s", c.log())
		}
		return nil
	})
	return c
}

func (c *child) read(stderr io.Reader) {
	defer close(c.done)
	lines := bufio.NewScanner(stderr)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		c.note(lines.Text())
	}
	c.cmd.Wait()
}

func (c *child) note(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lines = append(c.lines, line); len(c.lines) > keptLines {
		c.lines = c.lines[1:]
	}
	var said map[string]any
	if json.Unmarshal([]byte(line), &said) != nil || said["msg"] != "serving" && said["msg"] != "writing" {
		return
	}
	c.addrs = map[string]string{}
	for name, value := range said {
		if addr, ok := value.(string); ok {
			c.addrs[name] = addr
		}
	}
}

func (c *child) log() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.lines, "\n")
}

// addr returns where a listener listens, "" as long as it does not.
func (c *child) addr(listener string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.addrs[listener]
}

func (c *child) url(listener string) string {
	if addr := c.addr(listener); addr != "" {
		return "http://" + addr
	}
	return ""
}

func (c *child) signal(s syscall.Signal) { c.cmd.Process.Signal(s) }

// kill ends it as a crash would and waits until it is gone.
func (c *child) kill() {
	c.cmd.Process.Kill()
	<-c.done
}

// wait returns its exit code.
func (c *child) wait(t testing.TB, atMost time.Duration) int {
	t.Helper()
	select {
	case <-c.done:
	case <-time.After(atMost):
		t.Fatalf("rankcache did not end within %v", atMost)
	}
	return c.cmd.ProcessState.ExitCode()
}

// waitReady waits until the health port says ready.
func (c *child) waitReady(t testing.TB, atMost time.Duration) {
	t.Helper()
	testkit.Eventually(t, atMost, func() error {
		resp, err := http.Get(c.url("health") + "/readyz")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if body, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%d %s", resp.StatusCode, body)
		}
		return nil
	})
}
