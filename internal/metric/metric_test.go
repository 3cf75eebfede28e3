package metric

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestSet: all kinds are registered under their names; a name that is taken is an error that tells it,
// and the others are there.
func TestSet(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	first := New(reg, "part_")
	first.Counter("counter_total", "A counter.").Inc()
	first.Counters("counters_total", "Counters.", "a", "b").WithLabelValues("1", "2").Inc()
	first.CounterFunc("func_total", "A counter.", func() float64 { return 1 })
	first.Gauge("gauge", "A gauge.").Set(1)
	first.Gauges("gauges", "Gauges.", "a").WithLabelValues("1").Set(1)
	first.GaugeFunc("func", "A gauge.", func() float64 { return 1 })
	first.Histogram("histogram", "A histogram.", []float64{1}).Observe(1)
	first.Histograms("histograms", "Histograms.", []float64{1}, "a").WithLabelValues("1").Observe(1)
	if err := first.Err(); err != nil {
		t.Fatal(err)
	}
	second := New(reg, "part_")
	second.Gauge("gauge", "A gauge.")
	second.Gauge("other", "Another one.")
	if err := second.Err(); err == nil || !strings.Contains(err.Error(), "rankcache_part_gauge") {
		t.Errorf("a name that is taken: %v", err)
	}
	if n, err := testutil.GatherAndCount(reg); n != 9 || err != nil {
		t.Errorf("%d series, %v", n, err)
	}
	New(nil, "part_").Gauge("gauge", "A gauge, registered nowhere.").Set(1)
	defer func() {
		if recover() == nil {
			t.Error("Must has not panicked")
		}
	}()
	second.Must()
}
