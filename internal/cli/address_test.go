package cli

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestAddresses: every way to write one leads to the same listener.
func TestAddresses(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	for _, listen := range []string{"127.0.0.1:0", ":0", "http://127.0.0.1:0", "http://127.0.0.1:0/", "0.0.0.0:0", "unix:" + socket, "unix://" + socket} {
		ls, err := OpenListeners(slog.New(slog.DiscardHandler), FlagAddr{Flag: "admin", Addr: listen})
		if err != nil {
			t.Errorf("%s: %v", listen, err)
			continue
		}
		server := &httptest.Server{Listener: ls[0], Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, "here "+r.URL.Path)
		})}}
		server.Start()
		asked := []string{listen}
		if addr, ok := ls[0].Addr().(*net.TCPAddr); ok {
			asked = []string{fmt.Sprintf(":%d", addr.Port), fmt.Sprintf("localhost:%d", addr.Port), fmt.Sprintf("0.0.0.0:%d", addr.Port), fmt.Sprintf("http://127.0.0.1:%d/", addr.Port)}
		}
		for _, text := range asked {
			a, err := ParseAddress("admin", text)
			must(t, err)
			base, client := a.Client()
			resp, err := client.Get(base + "/x")
			must(t, err)
			if body, _ := io.ReadAll(resp.Body); string(body) != "here /x" {
				t.Errorf("%s, asked at %s: %q", listen, text, body)
			}
			resp.Body.Close()
		}
		server.Close()
	}
}

// TestBadAddresses: they are mistakes of the caller, named with what would be right.
func TestBadAddresses(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { taken.Close() })
	plain := filepath.Join(t.TempDir(), "plain")
	must(t, os.WriteFile(plain, nil, 0o600))
	for addr, want := range map[string]struct {
		code int
		text string
	}{
		"127.0.0.1:99999":     {ExitUsage, "host:port"},
		"127.0.0.1":           {ExitUsage, "host:port"},
		"ftp://127.0.0.1:1":   {ExitUsage, "host:port"},
		"unix:":               {ExitUsage, "host:port"},
		"https://127.0.0.1:1": {ExitUsage, "https"},
		"192.0.2.1:0":         {ExitUsage, "no network interface"},
		"unix:/nowhere/rc/s":  {ExitUsage, "make the folder /nowhere/rc"},
		"unix:" + plain:       {ExitFailed, "no socket"},
		taken.Addr().String(): {ExitFailed, "is another rankcache running?"},
		"unix:/tmp/" + strings.Repeat("long", 40): {ExitUsage, "shorter"},
	} {
		_, err := OpenListeners(slog.New(slog.DiscardHandler), FlagAddr{Flag: "admin", Addr: addr})
		if ExitCode(err) != want.code || !strings.Contains(err.Error(), want.text) || !strings.Contains(err.Error(), "--admin") {
			t.Errorf("%s: got %v (exit code %d), want %q (%d)", addr, err, ExitCode(err), want.text, want.code)
		}
		if another := strings.Contains(fmt.Sprint(err), "another rankcache"); another != (addr == taken.Addr().String()) {
			t.Errorf("%s: got %v", addr, err)
		}
	}
	denied := FlagAddr{Flag: "data", Addr: "127.0.0.1:80"}.explain(&net.OpError{Op: "listen", Err: os.NewSyscallError("bind", syscall.EACCES)})
	if ExitCode(denied) != ExitUsage || !strings.Contains(denied.Error(), "below 1024") {
		t.Errorf("permission denied: %v", denied)
	}
}
