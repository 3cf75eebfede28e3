package testkit

import (
	"fmt"
	"os/exec"
	"testing"

	"rankcache/internal/lab/servers"
)

// Chromium returns the path of the browser. It skips where none is installed, which it says.
func Chromium(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	orSkip(t, fmt.Errorf("chromium: %w: install it (Debian's package chromium) or put it in PATH", servers.ErrNotInstalled))
	return ""
}
