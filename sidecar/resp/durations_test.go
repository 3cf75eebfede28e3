package resp

import (
	"testing"

	"rankcache/sidecar/internal/latency"
)

// TestReadsOfConnectionsAreMeasured: one read in 16 counts for all, and none with a blocking command.
func TestReadsOfConnectionsAreMeasured(t *testing.T) {
	d, w := newDurations(), stopwatch{sampler: latency.NewSampler(3)}
	counted := func(h *latency.Histogram) bool {
		_, counted := h.Metric(d.desc, "x")
		return counted
	}
	read := func(during func()) {
		for range latency.Every {
			w.begin()
			during()
			w.end(d)
		}
	}
	read(func() { w.pass(true) })
	if counted(&d.here) || counted(&d.passed) {
		t.Error("the wait of a blocking command is measured")
	}
	read(func() { w.pass(false) })
	if counted(&d.here) || !counted(&d.passed) {
		t.Error("a command that is passed on is not measured as one")
	}
	read(func() {})
	if !counted(&d.here) {
		t.Error("a command that is answered here is not measured")
	}
}
