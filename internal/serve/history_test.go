package serve

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

func TestHistoryHasThePointsOfTheLastQuarterOfAnHour(t *testing.T) {
	reg := prometheus.NewRegistry()
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "rankcache_requests_total"}, []string{"route", "result", "source"})
	age := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "rankcache_board_age_seconds"}, []string{"board"})
	durations := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "rankcache_request_duration_seconds", Buckets: []float64{0.001, 0.01, 0.1}})
	reg.MustRegister(requests, age, durations)
	h, at := &metricHistory{from: reg}, time.Unix(1000, 0)
	next := func() { h.take(at); at = at.Add(historyEvery) }

	requests.WithLabelValues("top", "ok", "local").Add(100)
	durations.Observe(0.05) // before the first point
	next()
	requests.WithLabelValues("top", "ok", "local").Add(50)
	requests.WithLabelValues("top", "origin_unavailable", "").Add(5)
	age.WithLabelValues("a").Set(0.5)
	age.WithLabelValues("b").Set(2)
	for range 99 {
		durations.Observe(0.0005)
	}
	durations.Observe(0.005)
	next()
	next()

	show := func(p historyPoint) string {
		text, err := json.Marshal([]*float64{p.Local, p.Hot, p.Failed, p.AgeS, p.Behind, p.P99Ms, p.RedisP99Ms})
		must(t, err)
		return string(text)
	}
	var got []string
	for _, p := range h.points {
		got = append(got, show(p))
	}
	// local reads/s, hot, failed/s, oldest, behind, p99, Redis's p99
	want := []string{"[10,null,1,2,null,1,null]", "[0,null,0,2,null,null,null]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	for range 400 {
		next()
	}
	w := httptest.NewRecorder()
	h.serve(w, nil)
	var body struct {
		EveryS int            `json:"every_s"`
		Points []historyPoint `json:"points"`
	}
	must(t, json.Unmarshal(w.Body.Bytes(), &body))
	if n := len(body.Points); body.EveryS != 5 || n != 180 || body.Points[n-1].At.Sub(body.Points[0].At) != 179*historyEvery {
		t.Error(fmt.Sprint(body.EveryS, " s, ", n, " points"))
	}
}

// TestHistoryIsOverAllProtocols: reads by HTTP, RESP and gRPC, and the calls to Redis that are left; writes are neither.
func TestHistoryIsOverAllProtocols(t *testing.T) {
	reg := prometheus.NewRegistry()
	vec := func(name string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "rankcache_" + name}, labels)
		reg.MustRegister(v)
		return v
	}
	histogram := func(name string, labels ...string) *prometheus.HistogramVec {
		v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "rankcache_" + name, Buckets: []float64{0.001, 0.01, 0.1}}, labels)
		reg.MustRegister(v)
		return v
	}
	http, resp, grpc := vec("requests_total", "route", "result", "source"), vec("resp_commands_total", "command", "source"), vec("rpc_reads_total", "source")
	trips, durations, calls := histogram("redis_seconds", "op"), histogram("resp_answer_duration_seconds", "source"), histogram("rpc_duration_seconds", "method", "code")
	h := &metricHistory{from: reg}
	http.WithLabelValues("top", "ok", "local")
	h.take(time.Unix(1000, 0))
	http.WithLabelValues("top", "ok", "local").Add(50)
	resp.WithLabelValues("zrevrange", "local").Add(100)
	resp.WithLabelValues("zscore", "redis").Add(20)
	resp.WithLabelValues("other", "redis").Add(1000) // writes
	grpc.WithLabelValues("hot").Add(30)
	grpc.WithLabelValues("redis").Add(5)
	for range 15 {
		trips.WithLabelValues("top").Observe(0.001)
	}
	durations.WithLabelValues("here").Observe(0.05)
	calls.WithLabelValues("GetTop", "unavailable").Observe(0.0001)
	calls.WithLabelValues("GetTop", "not_found").Observe(0.0001)
	h.take(time.Unix(1005, 0))
	p := h.points[0]
	got, err := json.Marshal([]*float64{p.Local, p.Hot, p.Redis, p.RedisCalls, p.Failed, p.P99Ms})
	must(t, err)
	if want := "[30,6,5,7,0.2,100]"; string(got) != want { // of Redis: 15 round trips and 20 commands passed on
		t.Errorf("local, hot, redis, calls of Redis, failed, p99: %s, want %s", got, want)
	}
}
