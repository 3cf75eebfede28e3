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
	var out, progress bytes.Buffer
	err := cli.Run(t.Context(), benchOnly(), []string{"bench", "visible", "-o", "json", "--members", "300", "--commands", "200", "--window", "300ms"}, &out, &progress)
	if err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	var report visibleReport
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	if report.Kafka != "kfake" || report.Posts < 1 || report.Commands <= 0 || report.P50 <= 0 || report.P99 < report.P50 || report.AnswerP50 <= 0 {
		t.Errorf("%+v", report)
	}
}
