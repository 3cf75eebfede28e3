package measure

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"rankcache"
	"rankcache/hotkey"
)

// CounterCost is the result of [Counters].
type CounterCost struct {
	CountNS      float64 `json:"count_ns"`       // per request, 5,000 boards
	CountFloodNS float64 `json:"count_flood_ns"` // per request, 1,000,000 invented names
	MemBytes     int     `json:"mem_bytes"`      // of the counters, after the flood
}

const (
	countReaders = 2
	countRounds  = 25
	countBoards  = 5_000
	floodBoards  = 1_000_000
	countEach    = 200_000 // requests of each reader in one round
)

// Counters measures hotkey.OwnRates.Count, what each request costs, with two readers in
// parallel. A figure is the median over 25 rounds of the time that one reader spends
// on one request: wall-clock time of the round over the requests of one reader, so
// other load of the machine shows, and on one core it is doubled. The names are made
// beforehand and read in order, round after round, each reader from a place of its
// own; the counters roll after each round. It takes some seconds and allocates about
// 50 MB.
func Counters() CounterCost { return measureCounters(countEach, floodBoards) }

func measureCounters(each, flood int) CounterCost {
	boards, invented := boardNames("1_2_%d", countBoards), boardNames("made-up_%d", flood)
	before := liveHeap()
	own := hotkey.NewOwnRates(hotkey.DefaultPromoteRate)
	cost := CounterCost{CountNS: medianCount(own, boards, each), CountFloodNS: medianCount(own, invented, each)}
	cost.MemBytes = int(liveHeap() - before)
	runtime.KeepAlive(own)
	runtime.KeepAlive(boards)
	runtime.KeepAlive(invented)
	return cost
}

// medianCount returns the median cost, in ns, of counting the names.
func medianCount(own *hotkey.OwnRates, names []rankcache.BoardID, each int) float64 {
	var rounds []float64
	var readers sync.WaitGroup
	for round := range countRounds {
		begin := time.Now()
		for r := range countReaders {
			from := (round*each + r*len(names)/countReaders) % len(names)
			readers.Go(func() { countAll(own, names, from, each) })
		}
		readers.Wait()
		rounds = append(rounds, float64(time.Since(begin).Nanoseconds())/float64(each))
		own.Roll(time.Hour) // so long that no board is busy, which would take memory
	}
	slices.Sort(rounds)
	return rounds[len(rounds)/2]
}

func countAll(own *hotkey.OwnRates, names []rankcache.BoardID, from, each int) {
	for range each {
		if from == len(names) {
			from = 0
		}
		own.Count(names[from])
		from++
	}
}

func boardNames(format string, n int) []rankcache.BoardID {
	names := make([]rankcache.BoardID, n)
	for i := range names {
		names[i] = rankcache.BoardID(fmt.Sprintf(format, i))
	}
	return names
}
