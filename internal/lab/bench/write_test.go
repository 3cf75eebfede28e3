package bench

import (
	"bytes"
	"encoding/json"
	"testing"

	"rankcache/internal/cli"
	"rankcache/internal/testkit"
)

// The bench on small boards: every row has all figures, and no command is refused.
func TestBenchWrite(t *testing.T) {
	testkit.Redis(t) // skips or fails where there is no redis-server
	t.Setenv(envRunMain, "1")
	var out, progress bytes.Buffer
	err := cli.Run(t.Context(), benchOnly(), []string{"bench", "write", "-o", "json", "--members", "300", "--commands", "300", "--rounds", "2"}, &out, &progress)
	if err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	var report writeReport
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Rows) != len(writeKinds) {
		t.Fatalf("%+v", report)
	}
	for _, row := range report.Rows {
		if row.Name == "" || row.RedisCPU <= 0 || row.WriterCPU <= 0 || row.Commands <= 0 || row.Ratio <= 0 || row.OwnRatio <= 0 || row.Of == "" {
			t.Errorf("%+v", row)
		}
	}
}
