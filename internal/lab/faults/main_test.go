package faults

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/testkit"
)

// envTable names the file that the table is written into.
const envTable = "RANKCACHE_FAULTS_TABLE"

// binary is the command, once build was called.
var binary string

func TestMain(m *testing.M) {
	if period := os.Getenv(envRollingPeriod); period != "" {
		fmt.Fprintln(os.Stderr, runRolling(os.Args[1:], period))
		os.Exit(1)
	}
	redis.SetLogger(quiet{}) // a server that is away is what we are about
	os.Setenv("TENCENTCLOUD_SECRET_ID", "id")
	os.Setenv("TENCENTCLOUD_SECRET_KEY", "key")
	testkit.Main(m, endBuild)
}

// quiet is a logger of our own Redis clients.
type quiet struct{}

// Printf implements go-redis's logger.
func (quiet) Printf(context.Context, string, ...any) {}

// buildOnce builds the command for all tests that start it, and returns its folder.
var buildOnce = sync.OnceValues(func() (folder string, err error) {
	if binary = os.Getenv("RANKCACHE_TEST_BINARY"); binary != "" {
		return "", nil
	}
	if folder, err = os.MkdirTemp("", "faults"); err != nil {
		return "", err
	}
	binary = filepath.Join(folder, "rankcache")
	if out, err := exec.Command("go", "build", "-o", binary, "rankcache/cmd/rankcache").CombinedOutput(); err != nil {
		return folder, fmt.Errorf("build the command: %w\n%s", err, out)
	}
	return folder, nil
})

// build builds the command, unless a test has or the environment names one.
func build(t *testing.T) {
	t.Helper()
	if _, err := buildOnce(); err != nil {
		t.Fatal(err)
	}
}

// endBuild removes the command that was built.
func endBuild() error {
	if binary == "" {
		return nil
	}
	folder, _ := buildOnce() // its error failed a test
	return os.RemoveAll(folder)
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
