package app

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rankcache/internal/cli"
	"rankcache/internal/httpserve"
)

// TestClientsTakeTheirSettings from the environment and the file, as the help
// promises, and addresses in every form.
func TestClientsTakeTheirSettings(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "admin.sock")
	ln, err := httpserve.Listen("unix:"+socket, slog.New(slog.DiscardHandler))
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
		return cli.Run(t.Context(), NewCommand(), args, &out, &out)
	}
	for _, args := range [][]string{{"hot"}, {"wait", "--max", "0s"}, {"rooms", "list"}, {"rooms", "set", "88", "--mode", "hot"}, {"rooms", "delete", "88"}} {
		if err := run(args...); err != nil {
			t.Errorf("%v: %v", args, err)
		}
	}
	if err := run("plan"); cli.ExitCode(err) != cli.ExitUsage || !strings.Contains(err.Error(), "--pods") {
		t.Errorf("plan does not take the file's pods: %v", err)
	}
	for _, args := range [][]string{{"hot"}, {"wait", "--board", "b"}, {"rooms", "list"}} {
		if err := run(append(args, "--admin", "127.0.0.1:x")...); cli.ExitCode(err) != cli.ExitUsage || !strings.Contains(err.Error(), "--admin") {
			t.Errorf("%v: got %v, want a usage error", args, err)
		}
	}
}

// TestUnknownCommands end with the exit code of a mistake, however deep they are.
func TestUnknownCommands(t *testing.T) {
	for _, line := range []string{"nosuch", "rooms lst", "rooms --config x lst", "config wrote", "completion bsh", "help nosuch", "help rooms lst", "docs all"} {
		var out bytes.Buffer
		if err := cli.Run(t.Context(), NewCommand(), strings.Fields(line), &out, &out); cli.ExitCode(err) != cli.ExitUsage {
			t.Errorf("%s: got %v (exit code %d), want a usage error", line, err, cli.ExitCode(err))
		}
	}
	for _, line := range []string{"help", "help rooms", "rooms --help", "completion --help", "rooms"} {
		var out bytes.Buffer
		if err := cli.Run(t.Context(), NewCommand(), strings.Fields(line), &out, &out); err != nil || out.Len() == 0 {
			t.Errorf("%s: %v", line, err)
		}
	}
}
