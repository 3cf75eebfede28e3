package httpapi

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"rankcache/internal/testkit/fixture"
	"rankcache/sidecar/internal/latency"
)

// TestRequestsAreMeasured: each one that is parsed, and one in 16 of those that are not, for all of them.
func TestRequestsAreMeasured(t *testing.T) {
	env := newEnv()
	reg := prometheus.NewPedanticRegistry()
	s, err := New(env.reader(), Config{}, fixture.FailOnWarn(t), reg)
	if err != nil {
		t.Fatal(err)
	}
	r := &running{Server: s, tcp: serveOn(t, s, "127.0.0.1:0"), http: &http.Client{Transport: new(http.Transport)}}
	t.Cleanup(r.http.CloseIdleConnections)
	const n = 10 * latency.Every
	for range n {
		r.get(t, "/v1/boards/local/top?limit=1")
	}
	for _, path := range []string{"/v1/boards/any/top", "/v1/boards/shut/top", "/v1/boards/any/members/nobody", "/v1/boards/local/top?limit=0"} {
		r.get(t, path)
	}
	counted := map[string]uint64{}
	for _, m := range histogramOf(t, reg, "rankcache_request_duration_seconds") {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		counted[fmt.Sprint(labels["route"], " ", labels["source"], " ", labels["status"])] = m.GetHistogram().GetSampleCount()
	}
	for of, want := range map[string]uint64{"top redis 200": 1, "top  403": 1, "member  404": 1, "top  400": 1} {
		if counted[of] != want {
			t.Errorf("%s: %d, want %d; all: %v", of, counted[of], want, counted)
		}
	}
	if local := counted["top local 200"]; local < n-latency.Every || local > n+latency.Every {
		t.Errorf("%d local pages are measured, want about %d", local, n)
	}
	if total := s.counters.sum(routeTop, 0); total != n {
		t.Errorf("%d local pages are counted, want %d", total, n)
	}
}

func histogramOf(t *testing.T, reg *prometheus.Registry, name string) []*dto.Metric {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()
		}
	}
	t.Fatalf("no %s", name)
	return nil
}
