package localboard

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"rankcache"
	"rankcache/wire"
)

// set is an update with a seq.
func set(member string, score float64, seq uint64) wire.Update {
	return wire.Update{Member: member, Op: wire.OpSet, Score: score, Seq: seq}
}

func del(member string, seq uint64) wire.Update {
	return wire.Update{Member: member, Op: wire.OpDelete, Seq: seq}
}

// fixture is a board before two publications, which change, remove, add and restore
// members.
type fixture struct {
	board   *Board
	members []string
	want    map[uint64][]rankcache.Standing // by seq
	grows   bool                            // the table grows before each publication
}

var fixtureUpdates = [][]wire.Update{
	{set("a", 30, 1), set("b", 20, 2), set("c", 10, 3)},
	{set("a", 15, 4), del("b", 5), set("d", 40, 6)},
	{set("a", 5, 7), set("b", 20, 8), set("c", 50, 9)},
}

func newFixture(t testing.TB) *fixture {
	s := &fixture{board: New("board"), members: []string{"a", "b", "c", "d"}, want: map[uint64][]rankcache.Standing{}}
	m := newModel()
	for _, us := range fixtureUpdates {
		m.apply(us)
		s.want[m.progress().Contiguous] = m.standings(s.members)
	}
	s.board.Apply(fixtureUpdates[0])
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

// publish runs both publications, and calls at between any two of their steps.
func (s *fixture) publish(at func()) {
	s.board.pause = at
	for _, us := range fixtureUpdates[1:] {
		s.board.Apply(us)
		if s.grows {
			s.board.members.grow()
		}
		at()
		s.board.Publish()
		at()
	}
	s.board.pause = nil
}

// TestReadsDuringSuspendedPublication reads with the writer suspended at every step of
// a publication: the read neither waits nor mixes two moments.
func TestReadsDuringSuspendedPublication(t *testing.T) {
	s, reads := newFixture(t), 0
	s.publish(func() {
		reads++
		rows, head := standings(s.board, s.members, rankcache.Descending)
		if diff := gocmp.Diff(s.want[head.Seq], rows); diff != "" {
			t.Errorf("pause %d, seq %d (-want +got):\n%s", reads, head.Seq, diff)
		}
		page, rank, ok := around(s.board, "a", 5, rankcache.Descending)
		if want := s.want[page.Seq][0]; !ok || rank != want.Rank || page.Entries[rank-1].Score != want.Score {
			t.Errorf("pause %d: around a: %+v, rank %d, want %+v", reads, page, rank, want)
		}
	})
	if reads != 10 {
		t.Errorf("%d reads, want one before, 3 in and one after each of two publications", reads)
	}
}

// TestReadInterleavings runs all interleavings of the steps r1 to r5 of one read with
// the steps of two publications (see Publish). A read that finishes is of one moment.
func TestReadInterleavings(t *testing.T) {
	t.Run("one table", func(t *testing.T) { spreadReader(t, false) })
	t.Run("tables grow", func(t *testing.T) { spreadReader(t, true) })
}

func spreadReader(t *testing.T, grows bool) {
	const gaps, steps = 10, 5
	finished, again := 0, 0
	for at := range spread(gaps, steps) {
		s := newFixture(t)
		s.grows = grows
		r, gap := stepReader{board: s.board, members: s.members}, 0
		s.publish(func() {
			for i, g := range at {
				if g == gap {
					r.step(i)
				}
			}
			gap++
		})
		if r.retry {
			again++
			continue
		}
		finished++
		if !r.view.rank(r.rows, rankcache.Descending) {
			t.Error("a tag led to another member")
		}
		if diff := gocmp.Diff(s.want[r.view.state.Seq], standingsOf(r.rows)); diff != "" {
			t.Errorf("steps in gaps %v, seq %d (-want +got):\n%s", at, r.view.state.Seq, diff)
		}
	}
	if finished == 0 || again == 0 {
		t.Errorf("%d reads finished, %d were retried: not all cases occurred", finished, again)
	}
}

// stepReader is Board.standings, step by step.
type stepReader struct {
	board       *Board
	members     []string
	view        *view
	rows        []rankcache.Own
	overwritten *[]change
	retry       bool
}

func (r *stepReader) step(i int) {
	switch i {
	case 0: // r1
		r.view = r.board.view.Load()
	case 1: // r2
		for _, id := range r.members {
			r.rows = append(r.rows, rankcache.Own{Standing: rankcache.Standing{Member: id}})
		}
		r.view.lookup(r.rows, false)
	case 2: // r3
		r.overwritten = r.view.overwritten.Load()
	case 3: // r4
		if r.overwritten != nil {
			r.view.restore(r.rows, *r.overwritten)
		}
	case 4: // r5
		r.retry = r.overwritten != nil && r.board.view.Load() != r.view
	}
}

// spread yields every way of distributing steps, in order, over gaps.
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

func TestPublishNothing(t *testing.T) {
	b := newBoard(t)
	if topOf(b) != nil {
		t.Error("top before the first publication")
	}
	b.Publish()
	empty := topOf(b)
	if empty == nil || empty.Members != 0 || len(empty.Entries) != 0 {
		t.Errorf("top of an empty board: %+v", empty)
	}
	b.Apply([]wire.Update{set("a", 1, 1)})
	if topOf(b).Kept != empty.Kept {
		t.Error("a new top without a publication")
	}
	b.Publish()
	top := topOf(b)
	b.Apply([]wire.Update{set("a", 1, 1)})
	b.Publish()
	if topOf(b).Kept != top.Kept {
		t.Error("a new top, though nothing changed")
	}
	b.Apply([]wire.Update{set("a", 1, 2)})
	b.Publish()
	if topOf(b).Kept == top.Kept || topOf(b).Seq != 2 {
		t.Error("a new seq alone was not published")
	}
}
