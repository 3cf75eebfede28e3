package operate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rankcache"
	"rankcache/internal/cli"
	"rankcache/sidecar/adminapi"
)

// waitFor runs rankcache wait and returns its exit code, report and progress.
func waitFor(t *testing.T, args ...string) (int, WaitReport, string) {
	t.Helper()
	var out, progress bytes.Buffer
	code := cli.ExitCode(cli.Run(t.Context(), NewCommand(), append([]string{"wait", "-o", "json", "--every", "1ms"}, args...), &out, &progress))
	var report WaitReport
	if code != cli.ExitUsage {
		if err := json.Unmarshal(out.Bytes(), &report); err != nil {
			t.Fatalf("%v in %q", err, out.String())
		}
	}
	return code, report, progress.String()
}

func TestWaitUntilReady(t *testing.T) {
	var asked atomic.Int32
	ready := adminapi.NewReadiness(func() (bool, string) { return asked.Add(1) > 3, "1 of 2 boards" },
		func() []rankcache.BoardStatus {
			return []rankcache.BoardStatus{{Board: "1_2_3", State: rankcache.StateReplaying, Have: 45, Want: 100, Reason: "reading the log"}}
		})
	probes := httptest.NewServer(adminapi.Health(ready, nil))
	defer probes.Close()
	code, report, progress := waitFor(t, "--health", probes.URL+"/", "--max", "30s")
	if code != cli.ExitOK || !report.Ready || !strings.Contains(string(report.Last), `"ready"`) {
		t.Errorf("exit code %d, report %+v", code, report)
	}
	if want := "0 of 1 boards open; 1_2_3 is replaying, 40 % there: reading the log"; strings.Count(progress, want) != 1 {
		t.Errorf("progress %q, want %q in it once", progress, want)
	}
}

// Progress and reasons have no ends that say nothing.
func TestWaitWords(t *testing.T) {
	ready := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"state":"ready"}`) }))
	defer ready.Close()
	if _, report, progress := waitFor(t, "--health", ready.URL); report.Reason != "ready" || progress != "ready\n" {
		t.Errorf("%+v, %q", report, progress)
	}
	for have, want := range map[uint64]string{4: "a is replaying, 0 % there", 45: "a is replaying, 40 % there", 100: "a is replaying, 100 % there"} {
		of := uint64(100)
		if got := (&boardProgress{Board: "a", State: rankcache.StateReplaying, Have: have, Want: &of}).String(); got != want {
			t.Errorf("%d: %s, want %s", have, got, want)
		}
	}
}

func TestWaitGivesUp(t *testing.T) {
	t.Parallel()
	starting := httptest.NewServer(adminapi.Health(adminapi.NewReadiness(func() (bool, string) { return false, "a reason" }, nil), nil))
	defer starting.Close()
	stranger := httptest.NewServer(http.NotFoundHandler())
	defer stranger.Close()
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer silent.Close()
	guarded := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"state":"a secret"}`)
	}))
	defer guarded.Close()
	for url, want := range map[string]string{
		starting.URL:         "a reason",
		stranger.URL:         "is it the right port",
		silent.URL:           "no answer",
		"http://127.0.0.1:1": "refused",
		guarded.URL:          "a secret",
	} {
		exit := cli.ExitUnasked
		if url == starting.URL {
			exit = cli.ExitFailed
		}
		begin := time.Now()
		code, report, _ := waitFor(t, "--health", url, "--max", "5ms")
		if code != exit || report.Ready || report.Answered != (exit == cli.ExitFailed) || !strings.Contains(report.Reason, want) {
			t.Errorf("%s: exit code %d, report %+v, want %q in it", url, code, report, want)
		}
		if took := time.Since(begin); took > time.Minute {
			t.Errorf("%s: it took %v", url, took)
		}
	}
}

func TestWaitForABoard(t *testing.T) {
	answers := map[string]string{
		"/status/open":  `{"mode":"super-hot","replay":{"board":"open","state":"open"}}`,
		"/status/small": `{"mode":"none"}`,
		"/status/late":  `{"mode":"super-hot","replay":{"board":"late","state":"waiting","reason":"its topic does not exist yet"}}`,
	}
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, answers[r.URL.Path]) }))
	defer admin.Close()
	address := strings.TrimPrefix(admin.URL, "http://")
	for board, want := range map[string]struct {
		code   int
		reason string
	}{
		"open":  {cli.ExitOK, "open is open"},
		"small": {cli.ExitFailed, "not super-hot"},
		"late":  {cli.ExitFailed, "its topic does not exist yet"},
		"a b":   {cli.ExitUsage, ""},
	} {
		code, report, _ := waitFor(t, "--admin", address, "--board", board, "--max", "0")
		if code != want.code || !strings.Contains(report.Reason, want.reason) {
			t.Errorf("board %q: exit code %d, report %+v, want %+v", board, code, report, want)
		}
	}
}

func TestWaitForANode(t *testing.T) {
	var asked atomic.Int32
	port := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v1/classes" || r.URL.Path == "/v1/boards/1_2_3/top":
			if asked.Add(1)%3 != 0 {
				w.WriteHeader(http.StatusServiceUnavailable)
				fmt.Fprint(w, `{"code":"unavailable","detail":"Redis does not answer"}`)
				return
			}
			fmt.Fprint(w, `{"classes":[]}`)
		default:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"code":"unknown_path"}`)
		}
	}))
	defer port.Close()
	for _, args := range [][]string{{"--url", port.URL}, {"--url", port.URL + "/", "--board", "1_2_3"}} {
		code, report, progress := waitFor(t, append(args, "--max", "30s")...)
		if code != cli.ExitOK || !report.Ready || !strings.Contains(progress, "503 unavailable Redis does not answer") {
			t.Errorf("%q: exit code %d, %+v, %q", args, code, report, progress)
		}
	}
	if code, report, _ := waitFor(t, "--url", port.URL, "--board", "other", "--max", "0"); code != cli.ExitFailed || !strings.Contains(report.Reason, "404 unknown_path") {
		t.Errorf("exit code %d, %+v", code, report)
	}
	if code, _, _ := waitFor(t, "--url", "ftp://node", "--max", "0"); code != cli.ExitUsage {
		t.Errorf("exit code %d of a URL that is none", code)
	}
}
