package localboard

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"rankcache"
	"rankcache/wire"
)

// TestRacingReaders reads everything while a writer moves points between members
// and publishes. Points are never lost, and the member "seq" has the seq as its
// score, so that rows, scores and seq that do not belong together are noticed.
// Others come and go by the thousand, so that the storage moves too.
func TestRacingReaders(t *testing.T) {
	b := newBoard(t)
	g := newGame(b)
	b.Publish()
	var stop atomic.Bool
	var readers sync.WaitGroup
	for i := range 4 {
		readers.Go(func() {
			for !stop.Load() && !t.Failed() {
				g.read(t, i)
			}
		})
	}
	moves := 0
	for range 150 {
		g.play()
		if b.moved {
			moves++
		}
		b.Publish()
	}
	stop.Store(true)
	readers.Wait()
	if moves < 2 {
		t.Errorf("storage moved %d times, want more: the test does not see it", moves)
	}
}

const (
	players = 50
	points  = 1000 // of each, at first
)

type game struct {
	*rand.Rand
	board  *Board
	scores [players]float64
	ids    []string // the players, and "seq" as the last
	seq    uint64
	guests int
}

func newGame(b *Board) *game {
	g := &game{Rand: rand.New(rand.NewPCG(7, 8)), board: b}
	var us []wire.Update
	for i := range players {
		g.ids = append(g.ids, fmt.Sprint("player", i))
		us = append(us, g.give(i, points))
	}
	g.ids = append(g.ids, "seq")
	g.apply(us)
	return g
}

func (g *game) next() uint64 { g.seq++; return g.seq }

func (g *game) give(i int, n float64) wire.Update {
	g.scores[i] += n
	return set(g.ids[i], g.scores[i], g.next())
}

func (g *game) apply(us []wire.Update) {
	seq := g.next()
	g.board.Apply(append(us, set("seq", float64(seq), seq)))
}

// play moves some points and lets guests without points come or go.
func (g *game) play() {
	var us []wire.Update
	for range 20 {
		n := float64(g.IntN(10))
		us = append(us, g.give(g.IntN(players), n), g.give(g.IntN(players), -n))
	}
	for i := range 500 {
		if guest := fmt.Sprint("guest", g.guests+i); g.guests%1000 == 0 {
			us = append(us, set(guest, 0, g.next()))
		} else {
			us = append(us, del(fmt.Sprint("guest", g.guests-500+i), g.next()))
		}
	}
	g.guests += 500
	g.apply(us)
}

func (g *game) read(t *testing.T, how int) {
	switch how {
	case 0:
		rows, stamp := g.board.Standings(nil, g.ids, rankcache.Descending)
		sum := 0.0
		for _, r := range rows[:players] {
			sum += r.Score
		}
		g.fair(t, "standings", sum, rows[players].Score, stamp.Seq)
	case 1:
		top := g.board.Top()
		sum, seq := sums(top.Entries)
		g.fair(t, "top", sum, seq, top.Seq)
	case 2:
		page := g.board.Page(0, 1<<20, rankcache.Ascending)
		sum, seq := sums(page.Entries)
		g.fair(t, "page", sum, seq, page.Seq)
		if len(page.Entries) != page.Members {
			t.Errorf("page: %d of %d members", len(page.Entries), page.Members)
		}
	case 3:
		page, rank, ok := g.board.Around("seq", 1<<20, rankcache.Descending)
		sum, seq := sums(page.Entries)
		g.fair(t, "around", sum, seq, page.Seq)
		if !ok || page.Entries[rank-1].Member != "seq" {
			t.Errorf("around: rank %d is %+v", rank, page.Entries[rank-1])
		}
	}
}

func sums(es []rankcache.Entry) (sum, seq float64) {
	for _, e := range es {
		if e.Member == "seq" {
			seq = e.Score
		} else {
			sum += e.Score
		}
	}
	return sum, seq
}

func (g *game) fair(t *testing.T, what string, sum, clock float64, seq uint64) {
	if sum != players*points || clock != float64(seq) {
		t.Errorf("%s of seq %d: %v points, want %v; the member seq has %v", what, seq, sum, players*points, clock)
	}
}
