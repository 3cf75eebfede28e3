package faults

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/testkit"
)

// envTable names the file that the table is written into.
const envTable = "RANKCACHE_FAULTS_TABLE"

// binary is the command as it was built for the test that is running.
var binary string

func TestMain(m *testing.M) {
	if period := os.Getenv(envRollingPeriod); period != "" {
		fmt.Fprintln(os.Stderr, runRolling(os.Args[1:], period))
		os.Exit(1)
	}
	redis.SetLogger(quiet{}) // a server that is away is what we are about
	os.Setenv("TENCENTCLOUD_SECRET_ID", "id")
	os.Setenv("TENCENTCLOUD_SECRET_KEY", "key")
	testkit.Main(m)
}

// quiet is a logger of our own Redis clients.
type quiet struct{}

// Printf implements go-redis's logger.
func (quiet) Printf(context.Context, string, ...any) {}

// build builds the command for a test.
func build(t *testing.T) {
	t.Helper()
	binary = filepath.Join(t.TempDir(), "rankcache")
	out, err := exec.Command("go", "build", "-o", binary, "rankcache/cmd/rankcache").CombinedOutput()
	if err != nil {
		t.Fatalf("build the command: %v\n%s", err, out)
	}
}

// startListening runs the command, inside the cgroup if one is given, and waits
// until it listens.
func startListening(t testing.TB, cgroup string, args ...string) *testkit.Child {
	t.Helper()
	argv := testkit.InCgroup(cgroup, append([]string{binary}, append(args, "--log-format", "json")...)...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "RANKCACHE_") }) // ours, not its settings
	return testkit.StartChild(t, cmd).WaitListening()
}
