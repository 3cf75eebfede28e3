package httpserve

import (
	"net"
	"strings"
	"testing"
)

// FuzzHost: no name is taken for a loopback one that a resolver would not.
func FuzzHost(f *testing.F) {
	for _, h := range []string{"localhost:1", "[::1]", "127.0.0.1.evil", "localhost:evil", "[::1]evil", "127.1"} {
		f.Add(h)
	}
	f.Fuzz(func(t *testing.T, host string) {
		if !HostAllowed(host, nil) {
			return
		}
		if name := withoutPort(host); !strings.EqualFold(name, "localhost") && !net.ParseIP(name).IsLoopback() {
			t.Fatalf("%q is allowed as %q", host, name)
		}
	})
}
