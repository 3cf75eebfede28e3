package hotkey

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"rankcache"
	"rankcache/wire"
)

const (
	maxCounted = 8192               // boards in one second, which bounds the memory: ids have 200 bytes at most
	crowded    = maxCounted / 4 * 3 // how many of them stay at its end
)

// counters counts requests per board and second. It is exact while no more than crowded boards are requested. A board for
// which there is no room is not counted in this second; at its end the coldest boards go. So in a flood of invented names,
// busy boards keep or get their places. count and lastSecond may be called by any goroutine; roll by one.
type counters struct {
	boards atomic.Pointer[map[rankcache.BoardID]*requests] // never changed, but replaced
	full   atomic.Bool                                     // until the second ends

	mu   sync.Mutex
	more map[rankcache.BoardID]*requests // since the last roll
}

// requests are those of one board, in this second and in the one before.
type requests struct{ now, last atomic.Uint32 }

func newCounters() *counters {
	c := &counters{more: make(map[rankcache.BoardID]*requests)}
	c.boards.Store(&map[rankcache.BoardID]*requests{})
	return c
}

// count takes no lock but for a board that was not counted when the second began.
func (c *counters) count(board rankcache.BoardID) {
	n := (*c.boards.Load())[board]
	if n == nil && !c.full.Load() {
		n = c.another(board)
	}
	if n != nil {
		n.now.Add(1)
	}
}

// another returns the requests of one more board, nil if there is no room.
func (c *counters) another(board rankcache.BoardID) *requests {
	c.mu.Lock()
	defer c.mu.Unlock()
	boards := *c.boards.Load() // it may be among them by now
	n := cmp.Or(boards[board], c.more[board])
	if c.full.Store(len(boards)+len(c.more) == maxCounted); n == nil && !c.full.Load() {
		n = &requests{}
		c.more[rankcache.BoardID(strings.Clone(string(board)))] = n // its memory may be the caller's request buffer
	}
	return n
}

func (c *counters) lastSecond(board rankcache.BoardID) uint32 {
	if n := (*c.boards.Load())[board]; n != nil {
		return n.last.Load()
	}
	return 0
}

// roll ends the second and appends the boards with at least minCount requests in it.
func (c *counters) roll(minCount uint32, into []BoardCount) []BoardCount {
	c.mu.Lock()
	defer c.mu.Unlock()
	boards := maps.Clone(*c.boards.Load())
	maps.Copy(boards, c.more)
	clear(c.more)
	for board, n := range boards {
		count := n.now.Swap(0)
		if n.last.Store(count); count >= minCount {
			into = append(into, BoardCount{board, int64(count)})
		}
	}
	dropColdest(boards)
	c.boards.Store(&boards)
	c.full.Store(false)
	return into
}

// dropColdest drops the boards with the fewest requests until crowded are left, so that there is room for new ones.
func dropColdest(boards map[rankcache.BoardID]*requests) {
	over := len(boards) - crowded
	if over <= 0 {
		return
	}
	counts := make([]uint32, 0, len(boards))
	for _, n := range boards {
		counts = append(counts, n.last.Load())
	}
	slices.Sort(counts)
	for board, n := range boards {
		if n.last.Load() <= counts[over-1] && len(boards) > crowded {
			delete(boards, board)
		}
	}
}

// OwnRates are the request rates of this sidecar. Count may be called by any goroutine; the other methods by one.
type OwnRates struct {
	counters *counters
	promote  float64 // requests/s from which a board is busy
	elapsed  time.Duration
	least    uint32       // requests in one second of the boards that are told
	read     []BoardCount // which had as many in the last second
	busy     []BoardCount
}

// NewOwnRates returns rates of which Roll returns those of promoteRate requests/s or more.
func NewOwnRates(promoteRate float64) *OwnRates {
	least := uint32(min(promoteRate, 2)) // what is read more than once a second is reported
	return &OwnRates{counters: newCounters(), promote: promoteRate, elapsed: second, least: max(least, 1)}
}

// Count adds one request for the board. It keeps no reference to the id's memory.
func (r *OwnRates) Count(board rankcache.BoardID) { r.counters.count(board) }

// Rate returns the board's requests/s in the last second.
func (r *OwnRates) Rate(board rankcache.BoardID) float64 {
	return float64(r.counters.lastSecond(board)) / r.elapsed.Seconds()
}

// Roll ends a second that took elapsed and returns its busy boards. The slice is valid until the next call.
func (r *OwnRates) Roll(elapsed time.Duration) []BoardCount {
	r.elapsed = elapsed
	r.read, r.busy = r.counters.roll(r.least, r.read[:0]), r.busy[:0]
	for _, b := range r.read {
		if float64(b.Count) >= r.promote*elapsed.Seconds() {
			r.busy = append(r.busy, b)
		}
	}
	return r.busy
}

// Report returns what was read more than once in the last second, but for boards that keep returns false of.
func (r *OwnRates) Report(keep func(rankcache.BoardID) bool) (boards []wire.BoardReads) {
	for _, b := range r.read {
		if rate := float64(b.Count) / r.elapsed.Seconds(); rate > 1 && keep(b.Board) {
			boards = append(boards, wire.BoardReads{Board: b.Board, Rate: uint64(math.Round(rate))})
		}
	}
	return boards
}
