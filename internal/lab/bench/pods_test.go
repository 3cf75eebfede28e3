package bench

import (
	"bytes"
	"encoding/json"
	"testing"

	"rankcache/internal/cli"
	"rankcache/internal/testkit"
)

// Changes of a writer's process come by the log in Redis into the pages of sidecars' processes.
func TestBenchPods(t *testing.T) {
	testkit.Redis(t) // skips or fails where there is no redis-server
	t.Setenv(envRunMain, "1")
	var out, progress bytes.Buffer
	args := []string{"bench", "pods", "-o", "json", "--pods", "2", "--boards", "5", "--changes", "100", "--window", "1s"}
	if err := cli.Run(t.Context(), benchOnly(), args, &out, &progress); err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	var r podsReport
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if r.Changes <= 0 || r.Redis <= 0 || r.RedisNone <= 0 || r.Pod <= 0 || r.Posts < 1 || r.P50 <= 0 || r.P99 < r.P50 {
		t.Errorf("%+v", r)
	}
}
