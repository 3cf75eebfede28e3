package testkit

import (
	"net"
	"path/filepath"
	"testing"
)

// Listen listens on a free port of loopback ("tcp") or on a socket in the test's folder ("unix"). The caller closes it.
func Listen(t testing.TB, network string) net.Listener {
	t.Helper()
	addr := "127.0.0.1:0"
	if network == "unix" {
		addr = filepath.Join(t.TempDir(), "s")
	}
	ln, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	return ln
}
