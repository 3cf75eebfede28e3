package testkit

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"rankcache/internal/lab/servers"
)

// PythonClient returns the path of a Python that has the modules openapi_python_client and what a client that it generates imports. It skips where
// scripts/setup.sh has not made it, and prints that.
func PythonClient(t testing.TB) string {
	t.Helper()
	root, err := servers.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	python := filepath.Join(root, ".cache", "python-client", "bin", "python")
	if _, err := os.Stat(python); err != nil {
		orSkip(t, fmt.Errorf("the generator of Python clients: %w: run scripts/setup.sh python-client (%v)", servers.ErrNotInstalled, err))
	}
	return python
}
