package writer

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
)

const (
	gainTime     = time.Hour // the stretch of time in which gains are added up
	maxGainers   = 2000      // how many members are counted at the same time
	shownGainers = 20        // how many GET /v1/status lists
)

// gain is what one member of a board has gained by increments.
type gain struct {
	Board  rankcache.BoardID `json:"board"`
	Member string            `json:"member"`
	Gain   float64           `json:"gain"`

	over  float64 // what the gain may be too much
	index int     // in the heap
}

// certain is the least that the member has gained.
func (g *gain) certain() float64 { return g.Gain - g.over }

type gainKey struct {
	board  rankcache.BoardID
	member string
}

// gains counts which members of guarded boards gain most in the running hour, in bounded memory ("space saving"): one
// with more than 1/maxGainers of everything is always counted. It is safe for concurrent use.
type gains struct {
	highest prometheus.Gauge

	mu    sync.Mutex // nothing but the gauge is called under it
	since time.Time
	of    map[gainKey]*gain
	least gainHeap
	most  float64 // what highest shows
}

// note adds what an increment has added.
func (g *gains) note(b rankcache.BoardID, member string, delta float64, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.turn(now)
	one := g.find(b, member)
	one.Gain += delta
	heap.Fix(&g.least, one.index)
	if c := one.certain(); c > g.most {
		g.most = c
		g.highest.Set(c)
	}
}

// turn forgets the gains of an hour that is over.
func (g *gains) turn(now time.Time) {
	if since := now.UTC().Truncate(gainTime); !since.Equal(g.since) {
		g.since, g.of, g.least, g.most = since, make(map[gainKey]*gain), nil, 0
		g.highest.Set(0)
	}
}

func (g *gains) find(b rankcache.BoardID, member string) *gain {
	if one, ok := g.of[gainKey{b, member}]; ok {
		return one
	}
	var one *gain
	if len(g.least) < maxGainers {
		one = &gain{}
		heap.Push(&g.least, one)
	} else {
		one = g.least[0]
		delete(g.of, gainKey{one.Board, one.Member})
		one.over = one.Gain
	}
	one.Board, one.Member = rankcache.BoardID(strings.Clone(string(b))), strings.Clone(member) // a command's memory is large
	g.of[gainKey{one.Board, one.Member}] = one
	return one
}

// top returns when the hour began, and those who have certainly gained most in it.
func (g *gains) top(now time.Time) (since time.Time, top []gain) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.turn(now)
	top = make([]gain, 0, len(g.least))
	for _, one := range g.least {
		top = append(top, gain{Board: one.Board, Member: one.Member, Gain: one.certain()})
	}
	slices.SortFunc(top, func(a, b gain) int { return cmp.Compare(b.Gain, a.Gain) })
	return g.since, top[:min(len(top), shownGainers)]
}

type gainHeap []*gain // has the least gain first

func (h gainHeap) Len() int { return len(h) }

func (h gainHeap) Less(i, j int) bool { return h[i].Gain < h[j].Gain }

func (h gainHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i]; h[i].index, h[j].index = i, j }

func (h *gainHeap) Push(x any) { one := x.(*gain); one.index = len(*h); *h = append(*h, one) }

func (h *gainHeap) Pop() any { panic("gains are never taken out") }
