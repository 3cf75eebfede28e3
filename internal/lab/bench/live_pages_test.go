package bench

import (
	"bytes"
	"encoding/json"
	"testing"

	"rankcache/internal/cli"
	"rankcache/internal/lab/load"
	"rankcache/internal/testkit"
)

// TestBenchLive is bench live with few boards, for too short to mean anything.
func TestBenchLive(t *testing.T) {
	testkit.Redis(t) // skips or fails where there is no redis-server
	testkit.Need(t, load.Installed("h2load"))
	t.Setenv(envRunMain, "1")
	t.Setenv("RANKCACHE_TEST_KAFKA_LIBS", t.TempDir()) // no Kafka there: kfake
	var out, progress bytes.Buffer
	err := cli.Run(t.Context(), benchOnly(), []string{"bench", "live", "-o", "json", "--boards", "2", "--quiet", "1", "--streams", "2", "--rounds", "1", "--window", "500ms"}, &out, &progress)
	if err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	var report liveReport
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	if report.Boards != 2 || report.Watchers != 6 || report.EventsPerS <= 0 || report.BusyP99 <= 0 || report.Busy <= 0 {
		t.Errorf("%+v", report)
	}
}
