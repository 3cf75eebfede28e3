package hotkey

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"rankcache"
)

// CounterCost is what counting requests costs.
type CounterCost struct {
	CountNS      float64 `json:"count_ns"`       // per request, 5,000 boards
	CountFloodNS float64 `json:"count_flood_ns"` // per request, 1,000,000 made-up names
	MemBytes     int     `json:"mem_bytes"`      // of the counters, after the flood
}

const (
	measureReaders = 2
	measureRounds  = 25
	measureBoards  = 5_000
	measureFlood   = 1_000_000
	measureEach    = 200_000 // requests of each reader in one round
)

// MeasureCounters measures Tracker.Count with two readers in parallel. A figure
// is the median over 25 rounds of the time that one reader spends on one request:
// wall-clock time of the round over the requests of one reader, so whatever else
// runs on the machine shows, and on one core it is twice what it should be. The
// names are made beforehand and walked in order, round after round, each reader
// from a place of its own; the counters roll after each round. It takes some
// seconds and allocates about 50 MB.
func MeasureCounters() CounterCost { return measureCounters(measureEach, measureFlood) }

func measureCounters(each, made int) CounterCost {
	boards, flood := measureNames("1_2_%d", measureBoards), measureNames("made-up_%d", made)
	before := heapInUse()
	c := newCounters(uint32(min(DefaultPromoteRate/2, 8)))
	cost := CounterCost{CountNS: c.measure(boards, each), CountFloodNS: c.measure(flood, each)}
	cost.MemBytes = heapInUse() - before
	runtime.KeepAlive(c)
	runtime.KeepAlive(boards)
	runtime.KeepAlive(flood)
	return cost
}

// measure returns the median cost, in ns, of counting the names.
func (c *counters) measure(names []rankcache.BoardID, each int) float64 {
	var rounds []float64
	var readers sync.WaitGroup
	for round := range measureRounds {
		begin := time.Now()
		for r := range measureReaders {
			from := (round*each + r*len(names)/measureReaders) % len(names)
			readers.Go(func() { c.countAll(names, from, each) })
		}
		readers.Wait()
		rounds = append(rounds, float64(time.Since(begin).Nanoseconds())/float64(each))
		c.roll(1, nil)
	}
	slices.Sort(rounds)
	return rounds[len(rounds)/2]
}

func (c *counters) countAll(names []rankcache.BoardID, from, each int) {
	for range each {
		if from == len(names) {
			from = 0
		}
		c.count(names[from])
		from++
	}
}

func measureNames(format string, n int) []rankcache.BoardID {
	names := make([]rankcache.BoardID, n)
	for i := range names {
		names[i] = rankcache.BoardID(fmt.Sprintf(format, i))
	}
	return names
}

func heapInUse() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
