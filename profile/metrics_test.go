package profile

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newFake(t, func(ctx context.Context, member string) ([]byte, error) {
			switch member {
			case "gone":
				return nil, nil
			case "down":
				return nil, bad(KindShape, "no field")
			}
			return nick(ctx, member)
		})
		reg := prometheus.NewRegistry()
		c, err := New(Options{TTL: time.Minute, NegativeTTL: time.Hour}, source, slog.New(slog.DiscardHandler), reg)
		if err != nil {
			t.Fatal(err)
		}
		run(t, c)
		get(t, c, "a")
		get(t, c, "gone")
		get(t, c, "down")
		get(t, c, "a")
		get(t, c, "gone")
		time.Sleep(time.Minute)
		get(t, c, "a")
		synctest.Wait()
		const want = `
# HELP rankcache_profile_loads_total Calls of the profile service: ok, timeout, unavailable, refused (by the circuit breaker), or the kind of a bad answer.
# TYPE rankcache_profile_loads_total counter
rankcache_profile_loads_total{result="ok"} 3
rankcache_profile_loads_total{result="refused"} 0
rankcache_profile_loads_total{result="shape"} 1
# HELP rankcache_profile_lookups_total Rows looked up in the cache: hit, stale (served and refreshed), negative (known to have no profile), miss.
# TYPE rankcache_profile_lookups_total counter
rankcache_profile_lookups_total{result="hit"} 1
rankcache_profile_lookups_total{result="miss"} 3
rankcache_profile_lookups_total{result="negative"} 1
rankcache_profile_lookups_total{result="stale"} 1
# HELP rankcache_profile_missing_total Rows answered without a profile because it was not loaded in time.
# TYPE rankcache_profile_missing_total counter
rankcache_profile_missing_total 1
`
		if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "rankcache_profile_loads_total",
			"rankcache_profile_lookups_total", "rankcache_profile_missing_total"); err != nil {
			t.Error(err)
		}
		if used := gauge(t, reg, "rankcache_profile_bytes"); used < 2*slotCost || used > 3*slotCost {
			t.Errorf("bytes %v for two entries", used)
		}
	})
}

func gauge(t *testing.T, reg *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

func TestOptions(t *testing.T) {
	for _, opts := range []Options{{Budget: 1000}, {TTL: -1}, {Deadline: -time.Second}, {Batch: 501}, {Calls: -1}, {Pending: 10}} {
		if _, err := New(opts, newFake(t, nick), slog.New(slog.DiscardHandler), nil); err == nil {
			t.Errorf("%+v accepted", opts)
		}
	}
	if _, err := New(Options{}, nil, slog.New(slog.DiscardHandler), nil); err == nil {
		t.Error("no source accepted")
	}
}

func TestInvalidIDsAreNotLoaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { checkInvalidIDs(t) })
}

func checkInvalidIDs(t *testing.T) {
	source := newFake(t, nick)
	c := start(t, Options{}, source)
	for _, member := range []string{"", "a\x00b", "\xff", strings.Repeat("x", 129), strings.Repeat("x", 300)} {
		if json, missing := get(t, c, member); json != "" || missing != 0 {
			t.Errorf("%.20q: %q, missing %d, want none and not missing", member, json, missing)
		}
		c.Warm([]string{member})
		synctest.Wait()
	}
	if calls, _ := source.counts(""); calls != 0 {
		t.Errorf("%d calls", calls)
	}
}

func TestStats(t *testing.T) {
	source := newFake(t, nick)
	c := start(t, Options{TTL: time.Hour}, source)
	page := members("m", 20)
	dst := make([][]byte, len(page))
	c.Get(t.Context(), page, dst)
	c.Get(t.Context(), page, dst)
	s := c.Stats()
	if s.Misses != 20 || s.Hits != 20 || s.Loads == 0 || s.Failed != 0 || s.Bytes <= 0 || s.Budget != c.opts.Budget || s.Breaker != "closed" {
		t.Errorf("after a page of 20 was loaded and read again: %+v", s)
	}
}
