package bench

import (
	"bytes"
	"encoding/json"
	"testing"

	"rankcache/internal/cli"
	"rankcache/internal/lab/load"
	"rankcache/internal/testkit"
)

// The bench on small boards: all figures are there.
func TestBenchSplit(t *testing.T) {
	testkit.Redis(t) // skips or fails where there is no redis-server
	testkit.Need(t, load.Installed("h2load"))
	var out, progress bytes.Buffer
	err := cli.Run(t.Context(), benchOnly(), []string{"bench", "split", "-o", "json", "--members", "3000", "--shards", "4", "--rounds", "1", "--window", "30ms"}, &out, &progress)
	if err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	var r splitReport
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	for i, f := range []splitFigure{r.Page, r.Top, r.Standing, r.RedisTop, r.RedisStanding, r.RedisTied, r.RedisIncr} {
		if f.One <= 0 || f.Split <= 0 || f.Ratio <= 0 {
			t.Errorf("figure %d is %+v", i, f)
		}
	}
	if w := r.Writes; w.Masters != 3 || w.One <= 0 || w.Split <= 0 || w.Busiest <= 0 || w.Capacity <= 0 || w.CapacityEven <= 0 {
		t.Errorf("writes: %+v", w)
	}
	if r.Members != 3000 || r.Shards != 4 || r.Union <= 0 {
		t.Errorf("%+v", r)
	}
}
