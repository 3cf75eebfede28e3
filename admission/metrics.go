package admission

import "github.com/prometheus/client_golang/prometheus"

var (
	budgetDesc   = prometheus.NewDesc("rankcache_memory_budget_bytes", "Memory budget of all local boards; 0 for none.", nil, nil)
	boardsDesc   = prometheus.NewDesc("rankcache_memory_boards_bytes", "Memory that the admitted boards are reckoned at.", nil, nil)
	admittedDesc = prometheus.NewDesc("rankcache_memory_admitted_boards", "Super-hot boards that are kept in memory.", nil, nil)
	refusedDesc  = prometheus.NewDesc("rankcache_memory_refused_boards", "Super-hot boards that are not kept in memory, by reason: over budget, or of unknown size.", []string{"reason"}, nil)
)

// collector tells of the moment.
type collector struct{ a *Admission }

func (collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{budgetDesc, boardsDesc, admittedDesc, refusedDesc} {
		out <- d
	}
}

func (c collector) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	c.a.mu.Lock()
	defer c.a.mu.Unlock()
	var count [kindAdmitted + 1]float64
	for _, v := range c.a.verdict {
		count[v.kind]++
	}
	gauge(budgetDesc, float64(c.a.cfg.Budget))
	gauge(boardsDesc, float64(c.a.used))
	gauge(admittedDesc, count[kindAdmitted])
	gauge(refusedDesc, count[kindRefused], "over_budget")
	gauge(refusedDesc, count[kindUnknown], "unknown_size")
}
