package localboard

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// TestRacingReaders reads everything while a writer moves points between members
// and publishes. Points are never lost, and the member "seq" has the seq as its
// score, so that a mix of rows, scores and seq of two moments is detected.
// Others are added and removed by the thousand, so that the storage is compacted.
func TestRacingReaders(t *testing.T) {
	b := newBoard(t)
	tr := newTransfers(b)
	b.Publish()
	var stop atomic.Bool
	var readers sync.WaitGroup
	for i := range 5 {
		readers.Go(func() {
			for !stop.Load() && !t.Failed() {
				tr.read(t, i)
			}
		})
	}
	compactions := 0
	for range testkit.Sized(50, 150) {
		tr.step()
		if b.freshStorage {
			compactions++
		}
		b.Publish()
	}
	stop.Store(true)
	readers.Wait()
	if compactions < 2 {
		t.Errorf("storage was compacted %d times, want more: the test does not cover it", compactions)
	}
}

const (
	players = 50
	points  = 1000 // of each, at first
)

type transfers struct {
	*rand.Rand
	board  *Board
	scores [players]float64
	ids    []string // the players, and "seq" as the last
	seq    uint64
	guests int
}

func newTransfers(b *Board) *transfers {
	tr := &transfers{Rand: rand.New(rand.NewPCG(7, 8)), board: b}
	var us []wire.Update
	for i := range players {
		tr.ids = append(tr.ids, fmt.Sprint("player", i))
		us = append(us, tr.give(i, points))
	}
	tr.ids = append(tr.ids, "seq")
	tr.apply(us)
	return tr
}

func (tr *transfers) next() uint64 { tr.seq++; return tr.seq }

func (tr *transfers) give(i int, n float64) wire.Update {
	tr.scores[i] += n
	return set(tr.ids[i], tr.scores[i], tr.next())
}

func (tr *transfers) apply(us []wire.Update) {
	seq := tr.next()
	tr.board.Apply(append(us, set("seq", float64(seq), seq)))
}

// step moves some points and adds or removes guests without points.
func (tr *transfers) step() {
	var us []wire.Update
	for range 20 {
		n := float64(tr.IntN(10))
		us = append(us, tr.give(tr.IntN(players), n), tr.give(tr.IntN(players), -n))
	}
	for i := range 500 {
		if guest := fmt.Sprint("guest", tr.guests+i); tr.guests%1000 == 0 {
			us = append(us, set(guest, 0, tr.next()))
		} else {
			us = append(us, del(fmt.Sprint("guest", tr.guests-500+i), tr.next()))
		}
	}
	tr.guests += 500
	tr.apply(us)
}

func (tr *transfers) read(t *testing.T, how int) {
	switch how {
	case 0:
		rows, head := standings(tr.board, tr.ids, rankcache.Descending)
		sum := 0.0
		for _, r := range rows[:players] {
			sum += r.Score
		}
		tr.checkSums(t, "standings", sum, rows[players].Score, head.Seq)
	case 1:
		top := topOf(tr.board)
		sum, seq := sums(top.Entries)
		tr.checkSums(t, "top", sum, seq, top.Seq)
	case 2:
		page := page(tr.board, 0, 1<<20, rankcache.Ascending)
		sum, seq := sums(page.Entries)
		tr.checkSums(t, "page", sum, seq, page.Seq)
		if len(page.Entries) != page.Members {
			t.Errorf("page: %d of %d members", len(page.Entries), page.Members)
		}
	case 3:
		page, rank, ok := around(tr.board, "seq", 1<<20, rankcache.Descending)
		sum, seq := sums(page.Entries)
		tr.checkSums(t, "around", sum, seq, page.Seq)
		if !ok || page.Entries[rank-1].Member != "seq" {
			t.Errorf("around: rank %d is %+v", rank, page.Entries[rank-1])
		}
	case 4:
		w := ask(tr.board, rankcache.Query{Limit: 1 << 20, Members: []string{"seq"}, Around: 1<<21 + 1, Gap: true})
		me := &w.Own[0]
		sum, seq := sums(me.Neighbours)
		tr.checkSums(t, "whole page", sum, seq, w.Seq)
		own := me.Rank - 1
		if !slices.Equal(w.Entries, me.Neighbours) || w.Entries[own].Member != "seq" || me.Stamp != w.Stamp ||
			me.HasBetter && me.Better <= me.Score {
			t.Errorf("whole page: rank %d, better %v of %v, %d rows and %d neighbours", own+1, me.Better, me.Score, len(w.Entries), len(me.Neighbours))
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

func (tr *transfers) checkSums(t *testing.T, what string, sum, clock float64, seq uint64) {
	if sum != players*points || clock != float64(seq) {
		t.Errorf("%s of seq %d: %v points, want %v; the member seq has %v", what, seq, sum, players*points, clock)
	}
}
