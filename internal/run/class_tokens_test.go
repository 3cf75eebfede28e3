package run

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
	"time"

	"github.com/spf13/pflag"

	"rankcache/internal/cli"
	"rankcache/writer"
)

// newWriteTokens returns tokens of flags, and their log.
func newWriteTokens(t *testing.T, args ...string) (*writeTokens, *bytes.Buffer) {
	t.Helper()
	flags := pflag.NewFlagSet("write", pflag.ContinueOnError)
	var log bytes.Buffer
	tokens := &writeTokens{all: cli.SecretVar(flags, "write-token", "", ""), byClass: cli.SecretVar(flags, "class-tokens", "", ""), log: slog.New(slog.NewTextHandler(&log, nil))}
	must(t, flags.Parse(args))
	return tokens, &log
}

// TestClassTokens: a token has the classes of its line, also after the file has changed; a bad file changes
// nothing, and no message tells a token.
func TestClassTokens(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	at := time.Now()
	write := func(content string) {
		must(t, os.WriteFile(file, []byte(content), 0o600))
		at = at.Add(time.Second)
		must(t, os.Chtimes(file, at, at))
	}
	write("hush-gift gift,gift-day\n\nhush-fans\tfans\n")
	tokens, log := newWriteTokens(t, "--write-token", "hush-all", "--class-tokens-file", file)
	must(t, tokens.check())
	handler := tokens.require(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if classes, limited := writer.AllowedClasses(r.Context()); limited {
			fmt.Fprint(w, classes)
		}
	}))
	path := "/v1/scores"
	ask := func(token string) string {
		req := httptest.NewRequest("POST", path, nil)
		req.Header.Set("Authorization", "Bearer "+token)
		rec := httptest.NewRecorder()
		handler.ServeHTTP(rec, req)
		return fmt.Sprint(rec.Code, " ", strings.TrimSpace(rec.Body.String()))
	}
	for token, want := range map[string]string{"hush-all": "200", "hush-gift": "200 [gift gift-day]", "hush-fans": "200 [fans]", "hush": "401", "": "401"} {
		if got := ask(token); !strings.HasPrefix(got, want) || strings.Contains(got, "hush") {
			t.Errorf("%s: %s, want %s", token, got, want)
		}
	}
	path = writer.ForgetPath // the right is that of class tokens alone
	if got := ask("hush-all") + " " + ask("hush-gift") + " " + ask("hush"); !strings.HasPrefix(got, "200 [] 200 [gift gift-day] 401") {
		t.Error(got)
	}
	path = "/v1/scores"
	for _, bad := range []string{"hush-new\n", "hush-new gift fans", "hush-new gift\nhush-new fans", " "} {
		write(bad)
		if got := ask("hush-gift"); got != "200 [gift gift-day]" {
			t.Errorf("%q: %s", bad, got)
		}
		if err := tokens.check(); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if !strings.Contains(log.String(), "line 1") || strings.Contains(log.String(), "hush") {
		t.Error("log:", log)
	}
	write("hush-new fans")
	if got := ask("hush-new") + ask("hush-gift"); !strings.HasPrefix(got, "200 [fans]401") {
		t.Error(got)
	}
}
