package measure

import "testing"

func TestMeasureCounters(t *testing.T) {
	cost := measureCounters(1000, 50_000)
	t.Logf("%+v", cost)
	if cost.CountNS <= 0 || cost.CountFloodNS <= 0 {
		t.Errorf("cost %+v: want a time", cost)
	}
	if cost.MemBytes <= 0 || cost.MemBytes >= 4<<20 {
		t.Errorf("counters take %d bytes, want less than 4 MiB", cost.MemBytes)
	}
}

// What "rankcache bench hot" prints.
func BenchmarkMeasureCounters(b *testing.B) {
	var cost CounterCost
	for b.Loop() {
		cost = Counters()
	}
	b.ReportMetric(cost.CountNS, "count_ns")
	b.ReportMetric(cost.CountFloodNS, "count_flood_ns")
	b.ReportMetric(float64(cost.MemBytes), "mem_bytes")
}
