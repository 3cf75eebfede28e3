package bench

import (
	"bytes"
	"encoding/json"
	"testing"

	"rankcache/internal/cli"
	"rankcache/internal/testkit"
)

// The heap of a board is the board's alone: kfake, in the same process, kept its answer to
// the last fetch, 1.1 MB, which counted as heap.
func TestHeapIsTheBoardsAlone(t *testing.T) {
	testkit.Redis(t) // skips or fails where there is no redis-server
	t.Setenv(envRunMain, "1")
	t.Setenv("RANKCACHE_TEST_KAFKA_LIBS", t.TempDir()) // no Kafka there: kfake
	var out, progress bytes.Buffer
	err := cli.Run(t.Context(), benchOnly(), []string{"bench", "replay", "-o", "json", "--members", "20000", "--updates", "60000",
		"--rounds", "1", "--live", "0"}, &out, &progress)
	if err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	var report replayReport
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	if report.Kafka != "kfake" || report.BytesPerMember < 40 || report.BytesPerMember > 120 {
		t.Fatalf("%+v", report)
	}
}
