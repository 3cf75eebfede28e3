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
	c := newCounters(1)
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
	c := newCounters(8)
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
	if n := c.named.Load(); n > maxNamed {
		t.Errorf("%d names kept, want at most %d", n, maxNamed)
	}
}

// floodNames returns n names without boards.
func floodNames(n int) []rankcache.BoardID { return boardNames("made-up", n) }

// A bucket with as many boards as slots gives up none that is requested, and
// gives the slots of silent boards to new ones.
func TestCountersGiveSilentSlotsAway(t *testing.T) {
	c := newCounters(1)
	same := bucketMates(c, 2*bucketSlots)
	old, fresh := same[:bucketSlots], same[bucketSlots:]
	for _, b := range old {
		c.count(b)
	}
	for range 2 { // one second to be counted, one to be silent
		c.roll(1, nil)
	}
	for range 3 {
		for _, b := range fresh {
			c.count(b)
		}
		c.roll(1, nil)
	}
	for _, b := range fresh {
		if n := c.lastSecond(b); n != 1 {
			t.Errorf("board %s: %d requests in the last second, want 1", b, n)
		}
	}
	if n := c.named.Load(); n != bucketSlots {
		t.Errorf("%d names kept, want %d", n, bucketSlots)
	}
}

// The id may be a view of a request buffer that is used again.
func TestCountersKeepNoCallerMemory(t *testing.T) {
	c := newCounters(1)
	buf := []byte("1_2_3")
	c.count(rankcache.BoardID(unsafeString(buf)))
	copy(buf, "9_9_9")
	if got := c.roll(1, nil); len(got) != 1 || got[0].Board != "1_2_3" {
		t.Errorf("counted %v, want board 1_2_3", got)
	}
}

func TestCountAllocatesNothing(t *testing.T) {
	c := newCounters(4)
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
	c, boards := newCounters(1), boardNames("m", 300)
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

// bucketMates returns n boards that share a bucket of c.
func bucketMates(c *counters, n int) (mates []rankcache.BoardID) {
	for i := 0; len(mates) < n; i++ {
		b := rankcache.BoardID(fmt.Sprintf("b%d", i))
		if k, _ := c.bucket(b); k == &c.buckets[7] {
			mates = append(mates, b)
		}
	}
	return mates
}

// Right after a roll no board has requests in the new second yet; strangers must
// not take the slots of boards that were busy in the last one.
func TestCountersStrangersDoNotTakeBusySlots(t *testing.T) {
	c := newCounters(1)
	mates := bucketMates(c, bucketSlots+30)
	busy, strangers := mates[:bucketSlots], mates[bucketSlots:]
	for _, b := range busy {
		for range 50 {
			c.count(b)
		}
	}
	c.roll(1, nil)
	for _, b := range strangers {
		c.count(b)
	}
	for _, b := range busy {
		if n := c.lastSecond(b); n != 50 {
			t.Errorf("board %s: %d requests in the last second, want 50", b, n)
		}
	}
}

// Below crowded nothing is given up, which is what keeps the counts exact: a
// slot freed under a request would lose it.
func TestCountersGiveNothingUpWhileThereIsRoom(t *testing.T) {
	c := newCounters(1)
	for _, b := range bucketMates(c, crowded-1) {
		c.count(b)
	}
	for range 5 {
		c.roll(1, nil)
	}
	if n := c.buckets[7].used(); n != crowded-1 {
		t.Errorf("%d slots used after silent seconds, want %d", n, crowded-1)
	}
}

// The race that names is about: a request for a has found its slot, the slot is
// taken by b, and then the request gives it a's name. b's requests must not be
// called a's, and b gets its own name a second later.
func TestCountersNameOfASlotThatWasTaken(t *testing.T) {
	c := newCounters(2)
	mates := bucketMates(c, 2)
	a, b := mates[0], mates[1]
	c.count(a)
	bucket, _ := c.bucket(a)
	_, hashB := c.bucket(b)
	c.free(bucket, 0, hashB) // taken
	c.setName(bucket, 0, a)  // and named by the late request
	for range 2 {
		c.count(b)
		c.count(b)
		got := c.roll(1, nil)
		if len(got) == 1 && got[0].Board == b {
			return
		}
		if len(got) != 0 {
			t.Fatalf("counted %v, want %s or nothing yet", got, b)
		}
	}
	t.Errorf("%s never got its name", b)
}

// The worst that callers can do: names as long as allowed, each requested often
// enough to be kept.
// Over weeks more boards are busy for a second than there is room for names: those of before are forgotten.
func TestCountersNameTheBusyAfterManyOthers(t *testing.T) {
	c := newCounters(2)
	for i, b := range boardNames("1", 2*maxNamed) {
		c.count(b)
		c.count(b)
		if i%128 == 127 {
			c.roll(2, nil)
			c.roll(2, nil)
		}
	}
	const want = 2000
	for _, b := range boardNames("busy", want) {
		c.count(b)
		c.count(b)
	}
	if got := c.roll(2, nil); len(got) < want*9/10 { // a bucket may be full
		t.Errorf("%d busy boards were found, want %d", len(got), want)
	}
}

func TestCountersMemoryIsBounded(t *testing.T) {
	long := boardNames(strings.Repeat("x", rankcache.MaxBoardLen-8), 20_000)
	before := liveHeap()
	c := newCounters(8)
	for _, b := range long {
		for range 8 {
			c.count(b)
		}
	}
	size := liveHeap() - before
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

func liveHeap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
