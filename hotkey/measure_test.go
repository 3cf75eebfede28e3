package hotkey

import (
	"runtime"
	"strings"
	"testing"

	"rankcache"
)

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

// The worst that callers can do: names as long as allowed, each asked for often
// enough to be kept.
func TestCountersMemoryIsBounded(t *testing.T) {
	long := boardNames(strings.Repeat("x", rankcache.MaxBoardLen-8), 20_000)
	before := heapInUse()
	c := newCounters(8)
	for _, b := range long {
		for range 8 {
			c.count(b)
		}
	}
	size := heapInUse() - before
	t.Logf("%d bytes with %d names", size, c.named.Load())
	if c.named.Load() != maxNamed {
		t.Errorf("%d names kept, want %d", c.named.Load(), maxNamed)
	}
	if size >= 4<<20 {
		t.Errorf("counters hold %d bytes, want less than 4 MiB", size)
	}
	runtime.KeepAlive(long)
	runtime.KeepAlive(c)
}
