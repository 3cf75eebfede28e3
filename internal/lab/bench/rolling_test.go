package bench

import (
	"bytes"
	"encoding/json"
	"testing"

	"rankcache/internal/cli"
	"rankcache/internal/testkit"
)

// The bench on small boards: all figures are there. What priming takes may be less than how much the reads beside it vary.
func TestBenchRolling(t *testing.T) {
	testkit.Redis(t) // skips or fails where there is no redis-server
	t.Setenv(envRunMain, "1")
	var out, progress bytes.Buffer
	err := cli.Run(t.Context(), benchOnly(), []string{"bench", "rolling", "-o", "json", "--members", "3000", "--days", "3", "--prime-rate", "100000", "--window", "100ms"}, &out, &progress)
	if err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	var r rollingReport
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if r.Days != 3 || r.Members != 3000 || r.PrimeSeconds <= 0 || r.PrimeRedis == 0 || r.PageP99 <= 0 || r.PageP99Bare <= 0 || r.UnionStall <= 0 || r.HeapMiB <= 0 {
		t.Errorf("%+v", r)
	}
}
