package faults

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"rankcache/internal/testkit"
)

// EnvTable names the file that the table is written into.
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
	testkit.Main(m)
}

func build(to string) error {
	out, err := exec.Command("go", "build", "-o", to, "rankcache/cmd/rankcache").CombinedOutput()
	if err != nil {
		return fmt.Errorf("build the command: %w\n%s", err, out)
	}
	return nil
}
