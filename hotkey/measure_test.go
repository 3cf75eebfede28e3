package hotkey

import "testing"

func TestMeasureCounters(t *testing.T) {
	cost := measureCounters(1000, 50_000)
	t.Logf("%+v", cost)
	if cost.CountNS <= 0 || cost.CountFloodNS <= 0 {
		t.Errorf("cost %+v: want a time", cost)
	}
	if cost.MemBytes <= 0 || cost.MemBytes >= 4<<20 {
		t.Errorf("counters hold %d bytes, want less than 4 MiB", cost.MemBytes)
	}
}
