package bench

import (
	"bytes"
	"encoding/json"
	"testing"

	"rankcache/internal/app"
	"rankcache/internal/testkit"
)

// The bench with a small board: windows before and during the opening are measured, and
// no read fails.
func TestBenchOpenMeasuresUntilOpen(t *testing.T) {
	testkit.Redis(t) // skips or fails where there is no redis-server
	t.Setenv(envRunMain, "1")
	t.Setenv("RANKCACHE_TEST_KAFKA_LIBS", t.TempDir()) // no Kafka there: kfake
	var out, progress bytes.Buffer
	err := app.Run(t.Context(), benchOnly(), []string{"bench", "open", "-o", "json", "--members", "3000", "--rate", "100", "--window", "100ms"}, &out, &progress)
	if err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	var report openReport
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	rows := report.Rows
	if report.Kafka != "kfake" || len(rows) <= quietWindows || rows[0].Opening || !rows[len(rows)-1].Opening || rows[0].Reads == 0 {
		t.Errorf("%+v", report)
	}
}
