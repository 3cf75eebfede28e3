package app

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// TestMetricsAreNamedWell holds what real processes tell against Prometheus's
// rules for names, units and help.
func TestMetricsAreNamedWell(t *testing.T) {
	t.Parallel()
	children := startAll(t)
	ask(t, children["serve"], 1)
	for command, c := range children {
		_, text := c.Get(probedPort(command), "/metrics")
		problems, err := promlint.New(strings.NewReader(text)).Lint()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			t.Errorf("%s: %s: %s", command, p.Metric, p.Text)
		}
		if !strings.Contains(text, "rankcache_ready 1\n") || !strings.Contains(text, "rankcache_build_info{") {
			t.Errorf("%s does not tell its version and that it is ready", command)
		}
		if command != "serve" {
			continue
		}
		// A counter that is born with its first event has not risen by it, and no alert fires.
		for _, want := range []string{"rankcache_board_age_seconds{", `rankcache_replay_skipped_records_total{reason="json"} 0`,
			`rankcache_audit_differences_total{kind="score"} 0`} {
			if !strings.Contains(text, want) {
				t.Errorf("serve does not tell %s", want)
			}
		}
	}
}

// TestMetricsOfAlertsAndDashboardExist finds the names that were misspelt or that
// the code has forgotten.
func TestMetricsOfAlertsAndDashboardExist(t *testing.T) {
	known := knownMetrics(t)
	seen := map[string]bool{}
	for path, text := range manifestTexts(t) {
		if !strings.Contains(path, "/alerts/") && !strings.Contains(path, "/dashboard/") {
			continue
		}
		for _, name := range regexp.MustCompile(`\brankcache_[a-z0-9_]+`).FindAllString(text, -1) {
			seen[name] = true
			if !known[name] && !known[strings.TrimSuffix(name, "_bucket")] {
				t.Errorf("%s: no process has %s", path, name)
			}
		}
	}
	if len(seen) < 15 {
		t.Errorf("only %v found", sorted(seen))
	}
}

// knownMetrics returns the names of all metrics, also of those that have no
// value before something happens: a test holds the page to the code.
func knownMetrics(t *testing.T) map[string]bool {
	t.Helper()
	page, err := os.ReadFile("../../docs/METRICS.md")
	must(t, err)
	known := map[string]bool{}
	for _, name := range regexp.MustCompile("(?m)^\\| `(rankcache_[a-z0-9_]+)`").FindAllSubmatch(page, -1) {
		known[string(name[1])] = true
	}
	return known
}

// One line per change of state and none per request: a log that grows with the
// traffic fills disks on the very evenings that matter.
func TestRequestsLeaveTheLogAsItIs(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.give(t, h.star, 3)
	c := h.serve(t, "--hot=false") // a board that gets hot is a change of state
	c.WaitReady(time.Minute)
	ask(t, c, 1)
	before := c.Log()
	ask(t, c, 100)
	if more := strings.TrimPrefix(c.Log(), before); more != "" {
		t.Errorf("100 requests of each kind are logged:\n%s", more)
	}
	for line := range bytes.Lines([]byte(c.Log())) {
		var entry struct{ Time, Level, Msg string }
		if err := json.Unmarshal(line, &entry); err != nil || entry.Time == "" || entry.Level == "" || entry.Msg == "" {
			t.Errorf("not a structured line: %s", line)
		}
	}
}

// ask sends n requests of every kind: good ones, wrong ones, probes.
func ask(t *testing.T, c *child, n int) {
	t.Helper()
	for range n {
		for _, path := range []string{"/v1/boards/1_2_3/top", "/v1/boards/1_2_3/top?limit=0", "/v1/boards/1_2_3/members/nobody", "/v1/boards/%20/top", "/nowhere"} {
			c.Get("data", path)
		}
		for _, path := range []string{"/livez", "/readyz", "/startupz", "/metrics", "/nowhere"} {
			c.Get("health", path)
		}
		for _, path := range []string{"/status", "/rooms", "/hotkeys", "/nowhere"} {
			c.Get("admin", path)
		}
		req, err := http.NewRequest(http.MethodDelete, c.URL("admin", "/profiles/m1"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := http.DefaultClient.Do(req); err == nil { // without a token
			resp.Body.Close()
		}
	}
}
