package cli

import (
	"regexp"
	"runtime"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"rankcache/internal/metric"
	"rankcache/sidecar/adminapi"
)

// Registry holds a process's metrics, and remembers those without series yet, which docs/METRICS.md lists.
type Registry struct {
	*prometheus.Registry

	mu   sync.Mutex
	ours []prometheus.Collector // in the order of registration, without Go's and the process's
}

// collectorCPU shows whether Go's garbage collector is short of memory: then it runs all the time.
var collectorCPU = collectors.GoRuntimeMetricsRule{Matcher: regexp.MustCompile("^/cpu/classes/(gc/total|gc/mark/idle|idle|total):cpu-seconds$")}

// NewRegistry returns a registry with the metrics of Go and of the process.
func NewRegistry() *Registry {
	r := &Registry{Registry: prometheus.NewRegistry()}
	r.Registry.MustRegister(collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectorCPU)), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// Register is prometheus.Registry's, remembering c.
func (r *Registry) Register(c prometheus.Collector) error {
	err := r.Registry.Register(c)
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ours = append(r.ours, c)
	}
	return err
}

// MustRegister is prometheus.Registry's, remembering all.
func (r *Registry) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		if err := r.Register(c); err != nil {
			panic(err)
		}
	}
}

// Registered returns what was registered so far.
func (r *Registry) Registered() []prometheus.Collector {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ours)
}

// RegisterProcess registers the metrics of every long-running command: version, readiness, lost lines of the log.
func (o *Options) RegisterProcess(reg prometheus.Registerer, r *adminapi.Readiness) {
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "rankcache_build_info", Help: "1, with the version as label.",
		ConstLabels: prometheus.Labels{"version": Version, "goversion": runtime.Version()}})
	build.Set(1)
	set := metric.New(reg, "")
	set.Add(build)
	set.Add(&o.watched)
	set.GaugeFunc("ready", "1 while the readiness probe is answered with 200.", func() float64 {
		if r.Now().State == adminapi.StateReady {
			return 1
		}
		return 0
	})
	set.CounterFunc("log_lines_dropped_total", "Lines of the log that the reader of standard error did not take in time.", func() float64 {
		if o.process == nil {
			return 0
		}
		return float64(o.process.droppedLines())
	})
	set.Must()
}
