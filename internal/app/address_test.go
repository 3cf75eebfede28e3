package app

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/pflag"

	"rankcache/internal/httpserve"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

// TestAddresses: every way to write one leads to the same listener.
func TestAddresses(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	for _, listen := range []string{"127.0.0.1:0", ":0", "http://127.0.0.1:0", "http://127.0.0.1:0/", "0.0.0.0:0", "unix:" + socket, "unix://" + socket} {
		ls, err := openListeners(flagAddr{"admin", listen})
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
			a, err := parseAddress("admin", text)
			must(t, err)
			base, client := a.client()
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
		_, err := openListeners(flagAddr{"admin", addr})
		if ExitCode(err) != want.code || !strings.Contains(err.Error(), want.text) || !strings.Contains(err.Error(), "--admin") {
			t.Errorf("%s: got %v (exit code %d), want %q (%d)", addr, err, ExitCode(err), want.text, want.code)
		}
		if another := strings.Contains(fmt.Sprint(err), "another rankcache"); another != (addr == taken.Addr().String()) {
			t.Errorf("%s: got %v", addr, err)
		}
	}
	denied := flagAddr{"data", "127.0.0.1:80"}.explain(&net.OpError{Op: "listen", Err: os.NewSyscallError("bind", syscall.EACCES)})
	if ExitCode(denied) != ExitUsage || !strings.Contains(denied.Error(), "below 1024") {
		t.Errorf("permission denied: %v", denied)
	}
}

// TestClientsTakeTheirSettings from the environment and the file, as the help
// promises, and addresses in every form.
func TestClientsTakeTheirSettings(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "admin.sock")
	ln, err := httpserve.Listen("unix:" + socket)
	must(t, err)
	server := &httptest.Server{Listener: ln, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Header.Get("Authorization") != "Bearer t0ken" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		fmt.Fprint(w, `{"state":"ready","reason":"test"}`)
	})}}
	server.Start()
	t.Cleanup(server.Close)
	token := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(token, []byte("t0ken\n"), 0o600))
	config := filepath.Join(t.TempDir(), "rankcache.yaml")
	must(t, os.WriteFile(config, []byte("admin-token-file: "+token+"\nhealth: unix:"+socket+"\nmembers: [57000]\npods: 0\n"), 0o600))
	t.Setenv("RANKCACHE_ADMIN", "unix:"+socket)
	t.Setenv("RANKCACHE_CONFIG", config)
	run := func(args ...string) error {
		var out bytes.Buffer
		return Run(t.Context(), NewCommand(), args, &out, &out)
	}
	for _, args := range [][]string{{"hot"}, {"wait", "--max", "0s"}, {"rooms", "list"}, {"rooms", "set", "88", "--mode", "hot"}, {"rooms", "delete", "88"}} {
		if err := run(args...); err != nil {
			t.Errorf("%v: %v", args, err)
		}
	}
	if err := run("plan"); ExitCode(err) != ExitUsage || !strings.Contains(err.Error(), "--pods") {
		t.Errorf("plan does not take the file's pods: %v", err)
	}
	for _, args := range [][]string{{"hot"}, {"wait", "--board", "b"}, {"rooms", "list"}} {
		if err := run(append(args, "--admin", "127.0.0.1:x")...); ExitCode(err) != ExitUsage || !strings.Contains(err.Error(), "--admin") {
			t.Errorf("%v: got %v, want a usage error", args, err)
		}
	}
}

// TestUnknownCommands end with the exit code of a mistake, however deep they are.
func TestUnknownCommands(t *testing.T) {
	for _, line := range []string{"nosuch", "rooms lst", "rooms --config x lst", "config wrote", "completion bsh", "help nosuch", "help rooms lst", "docs all"} {
		var out bytes.Buffer
		if err := Run(t.Context(), NewCommand(), strings.Fields(line), &out, &out); ExitCode(err) != ExitUsage {
			t.Errorf("%s: got %v (exit code %d), want a usage error", line, err, ExitCode(err))
		}
	}
	for _, line := range []string{"help", "help rooms", "rooms --help", "completion --help", "rooms"} {
		var out bytes.Buffer
		if err := Run(t.Context(), NewCommand(), strings.Fields(line), &out, &out); err != nil || out.Len() == 0 {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// TestTLSToAPlainRedis: the library only reports that a first record is none.
func TestTLSToAPlainRedis(t *testing.T) {
	t.Parallel()
	addr := testkit.StartRedis(t, servers.RedisOptions{}).Addr()
	for _, mode := range []string{"single", "cluster"} {
		o, flags := &redisOptions{}, pflag.NewFlagSet("any", pflag.ContinueOnError)
		o.registerRedis(flags)
		must(t, flags.Parse([]string{"--redis", "rediss://" + addr, "--redis-mode", mode, "--redis-timeout", "1s"}))
		client, err := o.dialRedis()
		must(t, err)
		if err := client.Ping(t.Context()).Err(); err == nil || !strings.Contains(err.Error(), "use redis:// instead of rediss://") {
			t.Errorf("%s: got %v", mode, err)
		}
		client.Close()
	}
}
