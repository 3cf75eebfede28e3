package health

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Needs are all services of a process, by name. As a collector it tells those that are used.
type Needs map[string]*Need

// Run asks them until ctx is done, or until there is nothing more to ask, and returns nil.
func (all Needs) Run(ctx context.Context) error {
	var asks sync.WaitGroup
	for _, n := range all {
		asks.Go(func() { n.run(ctx) })
	}
	asks.Wait()
	return nil
}

// Met reports whether each that the process waits for has answered once, and which have not and why.
func (all Needs) Met() (bool, string) {
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if why := all[name].Missing(); why != "" {
			missing = append(missing, name+": "+why)
		}
	}
	return len(missing) == 0, cmp.Or(strings.Join(missing, "; "), "all that it needs has answered")
}

var (
	dependencyLabels = []string{"dependency"}
	upDesc           = prometheus.NewDesc("rankcache_dependency_up",
		"1 while another service answers this process, 0 while it does not; absent while that is not known or it is not used.", dependencyLabels, nil)
	latencyDesc = prometheus.NewDesc("rankcache_dependency_latency_seconds",
		"Response time of another service: a moving average.", dependencyLabels, nil)
	successDesc = prometheus.NewDesc("rankcache_dependency_last_success_timestamp_seconds",
		"When another service last answered this process.", dependencyLabels, nil)
)

// Describe implements [prometheus.Collector].
func (Needs) Describe(out chan<- *prometheus.Desc) {
	out <- upDesc
	out <- latencyDesc
	out <- successDesc
}

// Collect implements [prometheus.Collector].
func (all Needs) Collect(out chan<- prometheus.Metric) {
	for name, n := range all {
		s := n.Status()
		gauge := func(desc *prometheus.Desc, value float64) {
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, name)
		}
		switch s.State {
		case Off:
			continue
		case OK:
			gauge(upDesc, 1)
		case Failing:
			gauge(upDesc, 0)
		}
		if s.LatencyMs != nil {
			gauge(latencyDesc, *s.LatencyMs/1000)
		}
		if s.LastOK != nil {
			gauge(successDesc, float64(s.LastOK.Unix()))
		}
	}
}

func (all Needs) Statuses() map[string]Status {
	now := make(map[string]Status, len(all))
	for name, n := range all {
		now[name] = n.Status()
	}
	return now
}
