package bench

import (
	"bytes"
	"encoding/json"
	"slices"
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

// TestWriteKinds: with the rows that are wanted come those that ratios are to, and those that the ratios of these are to.
func TestWriteKinds(t *testing.T) {
	for only, want := range map[string][]string{"^data$": {"zincrby", "plain", "data"}, "feeds": {"topic", "feeds3"}} {
		kinds, err := (&writeBench{only: only}).kinds()
		var names []string
		for _, k := range kinds {
			names = append(names, k.name)
		}
		if err != nil || !slices.Equal(names, want) {
			t.Errorf("--only %s: %v, %v; want %v", only, names, err, want)
		}
	}
}
