package localboard

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"rankcache"
	"rankcache/wire"
)

// mover is a board whose rows change places, few enough at a time that the index is
// updated row by row.
type mover struct {
	*Board
	rng *rand.Rand
	seq uint64
}

const moverRows = 4000

func newMover(t testing.TB) *mover {
	s := &mover{Board: newBoard(t), rng: rand.New(rand.NewPCG(21, 22))}
	s.apply(moverRows, func(i int) int { return i })
	return s
}

func (s *mover) apply(n int, member func(i int) int) {
	us := make([]wire.Update, n)
	for i := range us {
		s.seq++
		us[i] = set(fmt.Sprint("user:", member(i)), float64(s.rng.IntN(1000)), s.seq)
	}
	s.Apply(us)
	s.Publish()
}

func (s *mover) moveRows(publications int) {
	for range publications {
		s.apply(moverRows/mergeShare/2, func(int) int { return s.rng.IntN(moverRows) })
	}
}

func rowsOf(v *view) []row { return slices.Collect(v.ranking.all) }

// TestPinnedRankingIsImmutable pins rankings for different numbers of publications,
// up to and beyond maxRetired.
func TestPinnedRankingIsImmutable(t *testing.T) {
	s := newMover(t)
	s.moveRows(10)
	for _, publications := range []int{1, 2, maxRetired, maxRetired + 1, 3 * maxRetired} {
		v, pinned := s.view.pin()
		want := rowsOf(v)
		var over, wantOver []change
		for i := range publications {
			if s.moveRows(1); i == 0 {
				over = *v.overwritten.Load()
				wantOver = slices.Clone(over)
			}
			if !slices.Equal(rowsOf(v), want) || !slices.Equal(over, wantOver) {
				t.Fatalf("a ranking pinned for %d publications, or the list of changes that overwrote it, was written", publications)
			}
		}
		pinned.release()
		s.moveRows(5)
		check(t, s.Board)
	}
}

// TestOldViewCannotBePinned: a reader that was suspended between two of its steps
// gets no pin, and is not counted.
func TestOldViewCannotBePinned(t *testing.T) {
	s := newMover(t)
	old := s.view.Load()
	s.moveRows(1)
	if _, ok := s.view.tryPin(old); ok || !old.pins.idle() {
		t.Errorf("an old view is pinned (%v) or its reader still counted (%v)", ok, !old.pins.idle())
	}
	now, pinned := s.view.pin()
	if now == old || now.pins.idle() {
		t.Error("the current view is not pinned")
	}
	if pinned.release(); !now.pins.idle() {
		t.Error("a reader that has finished is counted")
	}
}

// TestFreeListIsUsed: in the long run nothing is allocated, also after a ranking was
// pinned for long, or is read for good.
func TestFreeListIsUsed(t *testing.T) {
	for name, disturb := range map[string]func(*mover){
		"undisturbed": func(*mover) {},
		"pinned for long": func(s *mover) {
			_, pinned := s.view.pin()
			s.moveRows(2 * maxRetired)
			pinned.release()
		},
		"pinned for good": func(s *mover) { s.Snapshot() },
		"reset after that": func(s *mover) {
			s.moveRows(500)
			s.Snapshot()
			s.Reset()
			s.apply(moverRows, func(i int) int { return i })
		},
		"rebuilt": func(s *mover) {
			s.apply(moverRows, func(i int) int { return i })
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newMover(t)
			s.moveRows(100)
			disturb(s)
			s.moveRows(400)
			before, roots := s.nodes(), s.buffers()
			s.moveRows(50)
			if !maps.Equal(s.buffers(), roots) {
				t.Error("rankings are written to new memory")
			}
			allocated := 0
			for n := range s.nodes() {
				if !before[n] {
					allocated++
				}
			}
			if allocated > len(before)/20 { // where a leaf is split, its second half is new
				t.Errorf("%d of %d nodes are new", allocated, len(before))
			}
		})
	}
}

// buffers returns the root buffers and lists of changes that the board refers to.
func (s *mover) buffers() map[any]bool {
	all, free := map[any]bool{&s.view.Load().starts[0]: true}, s.index.free
	for _, r := range free.roots {
		all[&r.starts[0]] = true
	}
	for _, l := range free.retired {
		all[&l.root.starts[0]] = true
		all[&l.changes[:1][0]] = true
	}
	for _, l := range append(free.changeLists, s.changes) {
		all[&l[:1][0]] = true
	}
	return all
}

// nodes returns every node that the board refers to.
func (s *mover) nodes() map[any]bool {
	all, free := map[any]bool{}, s.index.free
	for _, l := range append(free.retired, retired{leaves: free.leaves, inners: free.inners}) {
		for _, c := range l.leaves {
			all[c] = true
		}
		for _, f := range l.inners {
			all[f] = true
		}
	}
	for _, f := range s.index.children {
		all[f] = true
	}
	for c := range s.index.leaves {
		all[c] = true
	}
	return all
}

// TestSnapshotStaysWhileRowsMove reads a snapshot while the index is updated row by
// row beneath it.
func TestSnapshotStaysWhileRowsMove(t *testing.T) {
	s := newMover(t)
	for range 3 {
		s.moveRows(20)
		want := page(s, 0, moverRows, rankcache.Descending)
		at, pieces := s.Snapshot()
		var got []rankcache.Entry
		for piece := range pieces {
			got = append(got, piece...)
			s.moveRows(1)
		}
		if at != want.Stamp || !slices.Equal(got, want.Entries) {
			t.Fatalf("the snapshot of %+v is not the page of %+v", at, want.Stamp)
		}
	}
}

// TestRacingPins reads in all ways while the writer moves rows. A row out of
// order, or a count that is wrong, is a ranking that was written while it was
// read.
func TestRacingPins(t *testing.T) {
	s := newMover(t)
	all := make([]string, moverRows)
	for i := range all {
		all[i] = fmt.Sprint("user:", i)
	}
	var stop atomic.Bool
	var readers sync.WaitGroup
	for _, read := range []func() []rankcache.Entry{
		func() []rankcache.Entry { return page(s, 0, moverRows, rankcache.Descending).Entries },
		func() []rankcache.Entry {
			page, _, _ := around(s, "user:1", moverRows, rankcache.Descending)
			return page.Entries
		},
		func() []rankcache.Entry {
			rows, _ := standings(s, all, rankcache.Descending)
			return byRank(rows)
		},
		func() []rankcache.Entry {
			_, pieces := s.Snapshot()
			var all []rankcache.Entry
			for piece := range pieces {
				all = append(all, piece...)
			}
			return all
		},
	} {
		readers.Go(func() {
			for !stop.Load() && !t.Failed() {
				checkSorted(t, read())
			}
		})
	}
	s.moveRows(600)
	stop.Store(true)
	readers.Wait()
}

// byRank sorts the rows by their ranks.
func byRank(rows []rankcache.Standing) []rankcache.Entry {
	es := make([]rankcache.Entry, len(rows))
	for _, r := range rows {
		es[r.Rank-1] = rankcache.Entry{Member: r.Member, Score: r.Score}
	}
	return es
}

func checkSorted(t *testing.T, es []rankcache.Entry) {
	if len(es) != moverRows {
		t.Errorf("%d rows, want %d", len(es), moverRows)
	}
	for i := 1; i < len(es); i++ {
		if a, b := es[i-1], es[i]; a.Score < b.Score || a.Score == b.Score && a.Member <= b.Member {
			t.Errorf("row %d, %v, stands before %v", i-1, a, b)
			return
		}
	}
}
