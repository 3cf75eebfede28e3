package bench

import (
	"bytes"
	"encoding/json"
	"testing"

	"rankcache/internal/cli"
	"rankcache/internal/lab/load"
	"rankcache/internal/testkit"
)

// Each server that is installed is measured beside the sidecar, which meanwhile applies updates and opens a board.
func TestBenchTail(t *testing.T) {
	testkit.Redis(t) // skips or fails where there is no redis-server
	testkit.Need(t, load.Installed("h2load"))
	t.Setenv(envRunMain, "1")
	t.Setenv("RANKCACHE_TEST_KAFKA_LIBS", t.TempDir()) // no Kafka there: kfake
	var out, progress bytes.Buffer
	err := cli.Run(t.Context(), benchOnly(), []string{"bench", "tail", "-o", "json", "--boards", "2", "--board-members", "100", "--updates", "400", "--profiles", "600", "--members", "1200",
		"--procs", "1", "--rate", "100", "--connections", "4", "--window", "300ms"}, &out, &progress)
	if err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	var report tailReport
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	rivals := 2 - len(report.Missing)
	if report.Kafka != "kfake" || len(report.Rows) != 1+rivals || report.Pages != 100 {
		t.Fatalf("%+v\n%s", report, &progress)
	}
	for _, row := range report.Rows {
		if row.Procs != 1 || row.Pages < 1 || row.P50 <= 0 || row.P999 < row.P99 || row.Visible == 0 || row.Updates <= 0 || row.Open <= 0 || row.Busy <= 0 {
			t.Errorf("%+v", row)
		}
	}
}
