package bench

import (
	"bytes"
	"encoding/json"
	"testing"

	"rankcache/internal/cli"
	"rankcache/internal/lab/load"
	"rankcache/internal/testkit"
)

// Commands of a writer's process come into the pages of a sidecar's.
func TestBenchVisible(t *testing.T) {
	testkit.Redis(t) // skips or fails where there is no redis-server
	testkit.Need(t, load.Installed("h2load"))
	t.Setenv(envRunMain, "1")
	t.Setenv("RANKCACHE_TEST_KAFKA_LIBS", t.TempDir()) // no Kafka there: kfake
	for _, opens := range []string{"--opens=false", "--opens"} {
		report := runVisible(t, opens)
		if report.Kafka != "kfake" || report.Posts < 1 || report.Commands <= 0 || report.P50 <= 0 || report.P99 < report.P50 || report.AnswerP50 <= 0 {
			t.Errorf("%s: %+v", opens, report)
		}
		if opened := report.OpenSeconds > 0 && report.OpenP50 > 0 && report.OpenP99 >= report.OpenP50; opened != (opens == "--opens") {
			t.Errorf("%s: %+v", opens, report)
		}
	}
}

func runVisible(t *testing.T, flag string) (report visibleReport) {
	t.Helper()
	var out, progress bytes.Buffer
	args := []string{"bench", "visible", "-o", "json", "--members", "3000", "--commands", "200", "--window", "300ms", flag}
	if err := cli.Run(t.Context(), benchOnly(), args, &out, &progress); err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	return report
}
