package bench

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"rankcache/internal/cli"
	"rankcache/internal/lab/load"
	"rankcache/internal/testkit"
)

// The bench with small boards: windows of each kind are measured, and no read fails.
func TestBenchOpenMeasuresUntilOpen(t *testing.T) {
	testkit.Redis(t) // skips or fails where there is no redis-server
	testkit.Need(t, load.Installed("h2load"))
	t.Setenv(envRunMain, "1")
	t.Setenv("RANKCACHE_TEST_KAFKA_LIBS", t.TempDir()) // no Kafka there: kfake
	var out, progress bytes.Buffer
	err := cli.Run(t.Context(), benchOnly(), []string{"bench", "open", "-o", "json", "--members", "3000", "--boards", "3", "--rate", "100", "--window", "100ms"}, &out, &progress)
	if err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	var report openReport
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	rows := report.Rows
	if report.Kafka != "kfake" || len(rows) <= quietWindows+2 || rows[0].Sidecar != atRest || !slices.ContainsFunc(rows, func(r openRow) bool { return r.Reads > 0 }) {
		t.Errorf("%+v", report)
	}
	for _, what := range []string{control, refilling, opening} {
		if !slices.ContainsFunc(rows, func(r openRow) bool { return r.Sidecar == what }) {
			t.Errorf("no window while the sidecar does %s: %+v", what, rows)
		}
	}
}
