package hotkey

import "github.com/prometheus/client_golang/prometheus"

type pollerMetrics struct {
	calls     *prometheus.CounterVec
	identical prometheus.Gauge
	ignored   prometheus.Counter
	leading   prometheus.Gauge
	stopped   prometheus.Gauge
}

func newPollerMetrics(reg prometheus.Registerer) *pollerMetrics {
	m := &pollerMetrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts(opts("source_calls_total",
			"Calls of the server-side hot-key source by this poller, by result code.")), []string{"source", "code"}),
		identical: gauge("source_identical_answers", "Answers in a row that were the same as the one before."),
		ignored:   counter("source_ignored_keys_total", "Hot keys named by the source that are no board's."),
		leading:   gauge("poller_leading", "1 while this poller holds the fleet's lease."),
		stopped:   gauge("source_stopped", "1 while this poller waits for an operator to mend the source's settings or rights."),
	}
	reg.MustRegister(m.calls, m.identical, m.ignored, m.leading, m.stopped)
	return m
}
