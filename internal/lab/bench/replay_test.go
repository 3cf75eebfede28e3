package bench

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"

	"rankcache/internal/cli"
	"rankcache/internal/testkit"
)

// The heap of a board does not depend on how many partitions its log has. In the
// full size (1,000,000 updates) it seemed to, in most runs: kfake ran in the same
// process, and its answer to the last fetch, 1.1 MB a partition, counted as heap.
func TestHeapIsTheBoardsAlone(t *testing.T) {
	testkit.Redis(t) // skips or fails where there is no redis-server
	t.Setenv(envRunMain, "1")
	t.Setenv("RANKCACHE_TEST_KAFKA_LIBS", t.TempDir()) // no Kafka there: kfake
	var out, progress bytes.Buffer
	err := cli.Run(t.Context(), benchOnly(), []string{"bench", "replay", "-o", "json", "--members", "20000", "--updates", "60000",
		"--rounds", "1", "--live", "0", "--partitions", "1,4"}, &out, &progress)
	if err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	var report replayReport
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	if report.Kafka != "kfake" || len(report.Rows) != 2 {
		t.Fatalf("%+v", report)
	}
	one, four := report.Rows[0].BytesPerMember, report.Rows[1].BytesPerMember
	if math.Abs(one-four) > 20 {
		t.Errorf("%.1f B a member with 1 partition, %.1f with 4", one, four)
	}
}
