package localboard

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"rankcache"
)

// set is an update with a seq.
func set(member string, score float64, seq uint64) rankcache.Update {
	return rankcache.Update{Member: member, Op: rankcache.OpSet, Score: score, Seq: seq}
}

func del(member string, seq uint64) rankcache.Update {
	return rankcache.Update{Member: member, Op: rankcache.OpDelete, Seq: seq}
}

// scene is a board with two publications to come, which between them change,
// remove, add and bring back members.
type scene struct {
	board *Board
	asked []string
	want  map[uint64][]rankcache.Standing // by seq
}

var sceneUpdates = [][]rankcache.Update{
	{set("a", 30, 1), set("b", 20, 2), set("c", 10, 3)},
	{set("a", 15, 4), del("b", 5), set("d", 40, 6)},
	{set("a", 5, 7), set("b", 20, 8), set("c", 50, 9)},
}

func newScene(t testing.TB) *scene {
	s := &scene{board: New("board"), asked: []string{"a", "b", "c", "d"}, want: map[uint64][]rankcache.Standing{}}
	m := newModel()
	for _, us := range sceneUpdates {
		m.apply(us)
		s.want[m.progress().Contiguous] = m.standings(s.asked)
	}
	s.board.Apply(sceneUpdates[0])
	s.board.Publish()
	return s
}

func (m *model) standings(ids []string) []rankcache.Standing {
	all := make([]rankcache.Standing, len(ids))
	for i, id := range ids {
		all[i].Member = id
		for rank, e := range m.rows() {
			if e.Member == id {
				all[i].Score, all[i].Rank = e.Score, rank+1
			}
		}
	}
	return all
}

// publish runs both publications, and at in each gap between two of their steps.
func (s *scene) publish(at func()) {
	s.board.pause = at
	for _, us := range sceneUpdates[1:] {
		s.board.Apply(us)
		at()
		s.board.Publish()
		at()
	}
	s.board.pause = nil
}

// TestReadersPassASuspendedWriter reads with the writer suspended at every step
// of a publication: the read neither waits for it nor mixes two moments.
func TestReadersPassASuspendedWriter(t *testing.T) {
	s, reads := newScene(t), 0
	s.publish(func() {
		reads++
		rows, stamp := s.board.Standings(nil, s.asked, rankcache.Desc)
		if diff := gocmp.Diff(s.want[stamp.Seq], rows); diff != "" {
			t.Errorf("pause %d, seq %d (-want +got):\n%s", reads, stamp.Seq, diff)
		}
		page, rank, ok := s.board.Around("a", 5, rankcache.Desc)
		if want := s.want[page.Seq][0]; !ok || rank != want.Rank || page.Entries[rank-1].Score != want.Score {
			t.Errorf("pause %d: around a: %+v, rank %d, want %+v", reads, page, rank, want)
		}
	})
	if reads != 10 {
		t.Errorf("%d reads, want one before, 3 in and one after each of two publications", reads)
	}
}

// TestReaderSteps forces the interleavings that Publish speaks of: it spreads the
// steps r1 to r5 of one read over the gaps between the steps of two
// publications, in every way. A read that finishes must be of one moment.
func TestReaderSteps(t *testing.T) {
	const gaps, steps = 10, 5
	finished, again := 0, 0
	for at := range spread(gaps, steps) {
		s := newScene(t)
		r, gap := slowReader{board: s.board, asked: s.asked}, 0
		s.publish(func() {
			for i, g := range at {
				if g == gap {
					r.step(i)
				}
			}
			gap++
		})
		if r.again {
			again++
			continue
		}
		finished++
		r.view.rank(r.rows, rankcache.Desc)
		if diff := gocmp.Diff(s.want[r.view.top.Seq], r.rows); diff != "" {
			t.Errorf("steps in gaps %v, seq %d (-want +got):\n%s", at, r.view.top.Seq, diff)
		}
	}
	if finished == 0 || again == 0 {
		t.Errorf("%d reads finished, %d began again: not all cases were met", finished, again)
	}
}

// slowReader is Board.standings, step by step.
type slowReader struct {
	board *Board
	asked []string
	view  *view
	rows  []rankcache.Standing
	over  *[]change
	again bool
}

func (r *slowReader) step(i int) {
	switch i {
	case 0: // r1
		r.view = r.board.view.Load()
	case 1: // r2
		for _, id := range r.asked {
			r.rows = append(r.rows, rankcache.Standing{Member: id})
		}
		r.view.lookup(r.rows)
	case 2: // r3
		r.over = r.view.overwritten.Load()
	case 3: // r4
		if r.over != nil {
			r.view.restore(r.rows, *r.over)
		}
	case 4: // r5
		r.again = r.over != nil && r.board.view.Load() != r.view
	}
}

// spread yields every way of putting steps, in order, into gaps.
func spread(gaps, steps int) func(yield func([]int) bool) {
	return func(yield func([]int) bool) {
		at := make([]int, steps)
		for {
			if !yield(at) {
				return
			}
			i := steps - 1
			for ; i >= 0 && at[i] == gaps-1; i-- {
			}
			if i < 0 {
				return
			}
			at[i]++
			for j := i + 1; j < steps; j++ {
				at[j] = at[i]
			}
		}
	}
}

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
	var us []rankcache.Update
	for i := range players {
		g.ids = append(g.ids, fmt.Sprint("player", i))
		us = append(us, g.give(i, points))
	}
	g.ids = append(g.ids, "seq")
	g.apply(us)
	return g
}

func (g *game) next() uint64 { g.seq++; return g.seq }

func (g *game) give(i int, n float64) rankcache.Update {
	g.scores[i] += n
	return set(g.ids[i], g.scores[i], g.next())
}

func (g *game) apply(us []rankcache.Update) {
	seq := g.next()
	g.board.Apply(append(us, set("seq", float64(seq), seq)))
}

// play moves some points and lets guests without points come or go.
func (g *game) play() {
	var us []rankcache.Update
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
		rows, stamp := g.board.Standings(nil, g.ids, rankcache.Desc)
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
		page := g.board.Page(0, 1<<20, rankcache.Asc)
		sum, seq := sums(page.Entries)
		g.fair(t, "page", sum, seq, page.Seq)
		if len(page.Entries) != page.Members {
			t.Errorf("page: %d of %d members", len(page.Entries), page.Members)
		}
	case 3:
		page, rank, ok := g.board.Around("seq", 1<<20, rankcache.Desc)
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

func TestPublishNothing(t *testing.T) {
	b := newBoard(t)
	if b.Top() != nil {
		t.Error("top before the first publication")
	}
	b.Publish()
	empty := b.Top()
	if empty == nil || empty.Members != 0 || len(empty.Entries) != 0 {
		t.Errorf("top of an empty board: %+v", empty)
	}
	b.Apply([]rankcache.Update{set("a", 1, 1)})
	if b.Top() != empty {
		t.Error("a new top without a publication")
	}
	b.Publish()
	top := b.Top()
	b.Apply([]rankcache.Update{set("a", 1, 1)})
	b.Publish()
	if b.Top() != top {
		t.Error("a new top, though nothing changed")
	}
	b.Apply([]rankcache.Update{set("a", 1, 2)})
	b.Publish()
	if b.Top() == top || b.Top().Seq != 2 {
		t.Error("seq alone is no change")
	}
}
