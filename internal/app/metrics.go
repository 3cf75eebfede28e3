package app

import (
	"regexp"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"rankcache"
	"rankcache/localboard"
	"rankcache/sidecar/adminapi"
)

// registry holds the metrics of one process. It remembers what was registered:
// a metric that has no series yet shows up in no answer, but docs/METRICS.md
// lists it.
type registry struct {
	*prometheus.Registry

	mu   sync.Mutex
	ours []prometheus.Collector // in the order of registration, without Go's and the process's
}

// collectorCPU shows whether Go's garbage collector is short of memory: then it
// runs all the time.
var collectorCPU = collectors.GoRuntimeMetricsRule{Matcher: regexp.MustCompile("^/cpu/classes/(gc/total|gc/mark/idle|idle|total):cpu-seconds$")}

// newRegistry returns a registry with the metrics of Go and of the process.
func newRegistry() *registry {
	r := &registry{Registry: prometheus.NewRegistry()}
	r.Registry.MustRegister(collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectorCPU)), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// Register is prometheus.Registry's, remembering c.
func (r *registry) Register(c prometheus.Collector) error {
	err := r.Registry.Register(c)
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ours = append(r.ours, c)
	}
	return err
}

// MustRegister is prometheus.Registry's, remembering all.
func (r *registry) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		if err := r.Register(c); err != nil {
			panic(err)
		}
	}
}

// registered returns what was registered so far.
func (r *registry) registered() []prometheus.Collector {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ours)
}

// registerProcess registers the metrics of every long-running command:
// which version it is and what its readiness probe answers.
func registerProcess(reg prometheus.Registerer, r *adminapi.Readiness) {
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "rankcache_build_info", Help: "1, with the version as label.",
		ConstLabels: prometheus.Labels{"version": Version, "goversion": runtime.Version()}})
	build.Set(1)
	ready := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "rankcache_ready", Help: "1 while the readiness probe is answered with 200.",
	}, func() float64 {
		if r.Now().State == adminapi.StateReady {
			return 1
		}
		return 0
	})
	reg.MustRegister(build, ready)
}

// boardAges collects the ages of the boards that are answered from local memory,
// at each scrape, so that a board that is dropped leaves no series behind.
type boardAges struct {
	boards *localboard.Boards
	status func() []rankcache.BoardStatus
	label  func(rankcache.BoardID) string // those of boards with the same one are combined
}

var boardAgeDesc = prometheus.NewDesc("rankcache_board_age_seconds",
	"Time since a whole board that is answered from local memory was last known to equal Redis. Of combined boards: the most.", []string{"board"}, nil)

// Describe implements [prometheus.Collector].
func (boardAges) Describe(out chan<- *prometheus.Desc) { out <- boardAgeDesc }

// Collect implements [prometheus.Collector].
func (a boardAges) Collect(out chan<- prometheus.Metric) {
	oldest := make(map[string]time.Duration)
	for _, s := range a.status() {
		board, open := a.boards.Get(s.Board)
		if !open {
			continue
		}
		if at := board.CurrentAt(); !at.IsZero() {
			label := a.label(s.Board)
			oldest[label] = max(oldest[label], time.Since(at))
		}
	}
	for label, age := range oldest {
		out <- prometheus.MustNewConstMetric(boardAgeDesc, prometheus.GaugeValue, age.Seconds(), label)
	}
}
