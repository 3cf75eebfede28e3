package hotkey

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"rankcache"
)

// boardNames returns n board ids that differ in their middle, as real ones do.
func boardNames(prefix string, n int) []rankcache.BoardID {
	names := make([]rankcache.BoardID, n)
	for i := range names {
		names[i] = rankcache.BoardID(fmt.Sprintf("%s_%d_1", prefix, i))
	}
	return names
}

// Four readers count 5,000 boards while the seconds roll; every request must be
// in exactly one second of its board.
func TestCountersAreExactWhileBoardsFit(t *testing.T) {
	const readers, rounds = 4, 8
	boards := boardNames("1", 5000)
	c := newCounters()
	got := make(map[rankcache.BoardID]uint64)
	rollInto := func() {
		c.roll(1, nil)
		for _, b := range boards {
			got[b] += uint64(c.lastSecond(b))
		}
	}
	var counting sync.WaitGroup
	for r := range readers {
		counting.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(r)))
			for range rounds {
				for _, i := range rnd.Perm(len(boards)) {
					c.count(boards[i])
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { counting.Wait(); close(done) }()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
			rollInto()
		}
	}
	rollInto()
	for _, b := range boards {
		if got[b] != readers*rounds {
			t.Fatalf("board %s: %d requests counted, want %d", b, got[b], readers*rounds)
		}
	}
}

// Made-up names, each requested twice, must not hide the boards that are really requested,
// neither those known before the flood nor those that get hot in it.
func TestCountersFindBusyBoardsInAFlood(t *testing.T) {
	c := newCounters()
	known, late := boardNames("known", 25), boardNames("late", 25)
	flood, turn := floodNames(200_000), 0
	second := func(busy []rankcache.BoardID) []BoardCount {
		for i := range 100_000 {
			c.count(flood[turn%len(flood)])
			turn++
			if i%2_000 == 0 { // 50 requests a second each
				for _, b := range busy {
					c.count(b)
				}
			}
		}
		return c.roll(25, nil)
	}
	second(known)
	second(known)
	both := append(slices.Clone(known), late...)
	second(both)
	found := make(map[rankcache.BoardID]uint32)
	for _, b := range second(both) {
		found[b.Board] = uint32(b.Count)
	}
	for _, b := range both {
		if found[b] < 25 || found[b] > 60 {
			t.Errorf("board %s: %d of 50 requests found", b, found[b])
		}
	}
	if len(found) > len(both)+5 {
		t.Errorf("%d boards called busy, want about %d", len(found), len(both))
	}
	if n := c.size(); n > maxCounted {
		t.Errorf("%d boards kept, want at most %d", n, maxCounted)
	}
}

// floodNames returns n names without boards.
func floodNames(n int) []rankcache.BoardID { return boardNames("made-up", n) }

// The id may be a view of a request buffer that is used again.
func TestCountersKeepNoCallerMemory(t *testing.T) {
	c := newCounters()
	buf := []byte("1_2_3")
	c.count(rankcache.BoardID(unsafeString(buf)))
	copy(buf, "9_9_9")
	if got := c.roll(1, nil); len(got) != 1 || got[0].Board != "1_2_3" {
		t.Errorf("counted %v, want board 1_2_3", got)
	}
}

func TestCountAllocatesNothing(t *testing.T) {
	c := newCounters()
	boards := boardNames("1", 100)
	for range 8 {
		for _, b := range boards {
			c.count(b)
		}
	}
	if n := testing.AllocsPerRun(100, func() {
		for _, b := range boards {
			c.count(b)
		}
	}); n != 0 {
		t.Errorf("%v allocations for 100 requests, want 0", n)
	}
}

// Random counting against a plain map, with seconds of different lengths.
func TestCountersMatchAMap(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	c, boards := newCounters(), boardNames("m", 300)
	for range 50 {
		want := make(map[rankcache.BoardID]uint32)
		for range rnd.IntN(2000) {
			b := boards[min(rnd.IntN(300), rnd.IntN(300))]
			c.count(b)
			want[b]++
		}
		got := make(map[rankcache.BoardID]uint32)
		for _, b := range c.roll(1, nil) {
			got[b.Board] = uint32(b.Count)
		}
		if !maps.Equal(got, want) {
			t.Fatalf("rolled %d boards, want %d, or their counts differ", len(got), len(want))
		}
	}
}

// size returns how many boards are counted.
func (c *counters) size() int { return len(*c.boards.Load()) + len(c.more) }

// The coldest boards make room for others at the end of a second, and never within it.
func TestCountersGiveColdBoardsUp(t *testing.T) {
	c := newCounters()
	busy, strangers := boardNames("busy", 1000), boardNames("x", 4*maxCounted)
	for range 3 {
		for _, b := range busy {
			c.count(b)
			c.count(b)
		}
		for _, b := range strangers { // more than there is room for
			c.count(b)
		}
		if n := c.size(); n != maxCounted {
			t.Errorf("%d boards in a crowd, want %d", n, maxCounted)
		}
		if got := c.roll(2, nil); len(got) != len(busy) {
			t.Errorf("%d busy boards, want %d", len(got), len(busy))
		}
		if n := c.size(); n != crowded {
			t.Errorf("%d boards after the second, want %d", n, crowded)
		}
		for _, b := range busy {
			if n := c.lastSecond(b); n != 2 {
				t.Fatalf("board %s: %d requests in the last second, want 2", b, n)
			}
		}
	}
}

// Over weeks more boards are busy for a second than there is room for: those of before are forgotten.
func TestCountersFindTheBusyAfterManyOthers(t *testing.T) {
	c := newCounters()
	for i, b := range boardNames("1", 2*maxCounted) {
		c.count(b)
		c.count(b)
		if i%128 == 127 {
			c.roll(2, nil)
		}
	}
	const want = 2000
	for _, b := range boardNames("busy", want) {
		c.count(b)
		c.count(b)
	}
	if got := c.roll(2, nil); len(got) != want {
		t.Errorf("%d busy boards were found, want %d", len(got), want)
	}
}

// The worst that callers can do: names as long as allowed.
func TestCountersMemoryIsBounded(t *testing.T) {
	long := boardNames(strings.Repeat("x", rankcache.MaxBoardLen-8), 20_000)
	before := liveHeap()
	c := newCounters()
	for _, b := range long {
		c.count(b)
	}
	size := liveHeap() - before
	t.Logf("%d bytes with %d names", size, c.size())
	if c.size() != maxCounted {
		t.Errorf("%d names kept, want %d", c.size(), maxCounted)
	}
	if size >= 4<<20 {
		t.Errorf("counters hold %d bytes, want less than 4 MiB", size)
	}
	runtime.KeepAlive(long)
	runtime.KeepAlive(c)
}

func liveHeap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
