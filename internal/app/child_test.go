package app

import (
	"cmp"
	"os"
	"os/exec"
	"testing"

	"rankcache/internal/cli"
	"rankcache/internal/testkit"
)

// envRunMain makes the test binary be rankcache itself, so that the end-to-end
// tests run the real command as a process of its own, under the race detector.
const envRunMain = "RANKCACHE_TEST_RUN_MAIN"

// envBinary names another rankcache to run instead, such as the static one.
const envBinary = "RANKCACHE_TEST_BINARY"

func TestMain(m *testing.M) {
	if os.Getenv(envRunMain) != "" {
		cli.Main(NewCommand())
		return
	}
	testkit.Main(m, endBrowser)
}

// child is a rankcache process of a test.
type child struct {
	*testkit.Child
	t testing.TB
}

// startChild runs rankcache with args and returns at once.
func startChild(t testing.TB, args ...string) *child {
	t.Helper()
	return startCommand(t, cmp.Or(os.Getenv(envBinary), os.Args[0]), args...)
}

// startCommand is startChild for a command that becomes rankcache.
func startCommand(t testing.TB, command string, args ...string) *child {
	t.Helper()
	cmd := exec.Command(command, append(args, "--log-format", "json")...)
	cmd.Env = append(os.Environ(), envRunMain+"=1")
	return &child{testkit.StartChild(t, cmd), t}
}

// startListening also waits until it tells where it listens.
func startListening(t testing.TB, args ...string) *child {
	t.Helper()
	c := startChild(t, args...)
	c.WaitListening()
	return c
}
