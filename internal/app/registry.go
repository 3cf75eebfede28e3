package app

import (
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// registry holds the metrics of one process. It remembers what was registered:
// a metric that has no series yet shows up in no answer, but docs/METRICS.md
// lists it.
type registry struct {
	*prometheus.Registry

	mu   sync.Mutex
	ours []prometheus.Collector // in the order of registration, without Go's and the process's
}

// newRegistry returns a registry with the metrics of Go and of the process.
func newRegistry() *registry {
	r := &registry{Registry: prometheus.NewRegistry()}
	r.Registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
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
