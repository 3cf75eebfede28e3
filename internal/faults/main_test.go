package faults

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/testkit"
)

// envTable names the file that the table is written into.
const envTable = "RANKCACHE_FAULTS_TABLE"

// binary is the command as it is built for these tests.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "rankcache-faults-")
	if err == nil {
		binary = filepath.Join(dir, "rankcache")
		err = build(binary)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
	defer os.RemoveAll(dir)
	redis.SetLogger(quiet{}) // a server that is away is what we are about
	testkit.Main(m)
}

// quiet is a logger of our own Redis clients.
type quiet struct{}

// Printf implements go-redis's logger.
func (quiet) Printf(context.Context, string, ...any) {}

func build(to string) error {
	out, err := exec.Command("go", "build", "-o", to, "rankcache/cmd/rankcache").CombinedOutput()
	if err != nil {
		return fmt.Errorf("build the command: %w\n%s", err, out)
	}
	return nil
}
