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

// stirred is a board whose rows are moved about, few enough at a time that the
// order is changed row by row.
type stirred struct {
	*Board
	rng *rand.Rand
	seq uint64
}

const stirredRows = 4000

func newStirred(t testing.TB) *stirred {
	s := &stirred{Board: newBoard(t), rng: rand.New(rand.NewPCG(21, 22))}
	s.apply(stirredRows, func(i int) int { return i })
	return s
}

func (s *stirred) apply(n int, who func(i int) int) {
	us := make([]wire.Update, n)
	for i := range us {
		s.seq++
		us[i] = set(fmt.Sprint("user:", who(i)), float64(s.rng.IntN(1000)), s.seq)
	}
	s.Apply(us)
	s.Publish()
}

func (s *stirred) stir(publications int) {
	for range publications {
		s.apply(stirredRows/mergeShare/2, func(int) int { return s.rng.IntN(stirredRows) })
	}
}

func rowsOf(v *view) []row { return slices.Collect(v.ranking.all) }

// TestHeldRankingStays holds rankings for different numbers of publications,
// shorter and longer than the writer keeps count of.
func TestHeldRankingStays(t *testing.T) {
	s := newStirred(t)
	s.stir(10)
	for _, publications := range []int{1, 2, mostLots, mostLots + 1, 3 * mostLots} {
		v, held := s.hold()
		want := rowsOf(v)
		var over, wantOver []change
		for i := range publications {
			if s.stir(1); i == 0 {
				over = *v.overwritten.Load()
				wantOver = slices.Clone(over)
			}
			if !slices.Equal(rowsOf(v), want) || !slices.Equal(over, wantOver) {
				t.Fatalf("a ranking held for %d publications, or the list of what overwrote it, was written in", publications)
			}
		}
		held.release()
		s.stir(5)
		check(t, s.Board)
	}
}

// TestNobodyHoldsAnOldView: a reader that was suspended between two of its steps
// goes away again, and is not counted.
func TestNobodyHoldsAnOldView(t *testing.T) {
	s := newStirred(t)
	old := s.view.Load()
	s.stir(1)
	if _, ok := s.holdThis(old); ok || !old.holds.idle() {
		t.Errorf("an old view is held (%v) or its reader still counted (%v)", ok, !old.holds.idle())
	}
	now, held := s.hold()
	if now == old || now.holds.idle() {
		t.Error("the current view is not held")
	}
	if held.release(); !now.holds.idle() {
		t.Error("a reader that has gone is counted")
	}
}

// TestSparesAreUsed: in the long run nothing is made anew, also after somebody
// has held a ranking for long, or was given one for good.
func TestSparesAreUsed(t *testing.T) {
	for name, disturb := range map[string]func(*stirred){
		"undisturbed": func(*stirred) {},
		"held for long": func(s *stirred) {
			_, held := s.hold()
			s.stir(2 * mostLots)
			held.release()
		},
		"held for good": func(s *stirred) { s.Image() },
		"begun anew after that": func(s *stirred) {
			s.stir(500)
			s.Image()
			s.Reset()
			s.apply(stirredRows, func(i int) int { return i })
		},
		"written anew": func(s *stirred) {
			s.apply(stirredRows, func(i int) int { return i })
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStirred(t)
			s.stir(100)
			disturb(s)
			s.stir(400)
			before, rooms := s.nodes(), s.rooms()
			s.stir(50)
			if !maps.Equal(s.rooms(), rooms) {
				t.Error("rankings are written in new memory")
			}
			anew := 0
			for n := range s.nodes() {
				if !before[n] {
					anew++
				}
			}
			if anew > len(before)/20 { // where a chunk is split, its second half is new
				t.Errorf("%d of %d chunks and shelves are new", anew, len(before))
			}
		})
	}
}

// rooms returns what the rankings that the board knows of are written in, and the
// lists of changes.
func (s *stirred) rooms() map[any]bool {
	all, spare := map[any]bool{&s.view.Load().starts[0]: true}, s.order.spares
	for _, r := range spare.rooms {
		all[&r.starts[0]] = true
	}
	for _, l := range spare.lots {
		all[&l.room.starts[0]] = true
		all[&l.changes[:1][0]] = true
	}
	for _, l := range append(spare.lists, s.changes) {
		all[&l[:1][0]] = true
	}
	return all
}

// nodes returns every chunk and shelf that the board knows of.
func (s *stirred) nodes() map[any]bool {
	all, spare := map[any]bool{}, s.order.spares
	for _, l := range append(spare.lots, lot{chunks: spare.chunks, shelves: spare.shelves}) {
		for _, c := range l.chunks {
			all[c] = true
		}
		for _, f := range l.shelves {
			all[f] = true
		}
	}
	for _, f := range s.order.shelves {
		all[f] = true
	}
	for c := range s.order.chunks {
		all[c] = true
	}
	return all
}

// TestImageStaysWhileRowsMove reads an image while the order is changed row by
// row beneath it.
func TestImageStaysWhileRowsMove(t *testing.T) {
	s := newStirred(t)
	for range 3 {
		s.stir(20)
		want := s.Page(0, stirredRows, rankcache.Descending)
		at, pieces := s.Image()
		var got []rankcache.Entry
		for piece := range pieces {
			got = append(got, piece...)
			s.stir(1)
		}
		if at != want.Stamp || !slices.Equal(got, want.Entries) {
			t.Fatalf("the image of %+v is not the page of %+v", at, want.Stamp)
		}
	}
}

// TestRacingHolders reads in all ways while the writer moves rows. A row out of
// order, or a count that is wrong, is a ranking that was written in while it was
// read.
func TestRacingHolders(t *testing.T) {
	s := newStirred(t)
	everybody := make([]string, stirredRows)
	for i := range everybody {
		everybody[i] = fmt.Sprint("user:", i)
	}
	var stop atomic.Bool
	var readers sync.WaitGroup
	for _, read := range []func() []rankcache.Entry{
		func() []rankcache.Entry { return s.Page(0, stirredRows, rankcache.Descending).Entries },
		func() []rankcache.Entry {
			page, _, _ := s.Around("user:1", stirredRows, rankcache.Descending)
			return page.Entries
		},
		func() []rankcache.Entry {
			rows, _ := s.Standings(nil, everybody, rankcache.Descending)
			return inOrder(rows)
		},
		func() []rankcache.Entry {
			_, pieces := s.Image()
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
	s.stir(600)
	stop.Store(true)
	readers.Wait()
}

// inOrder puts the rows where they say that they stand.
func inOrder(rows []rankcache.Standing) []rankcache.Entry {
	es := make([]rankcache.Entry, len(rows))
	for _, r := range rows {
		es[r.Rank-1] = rankcache.Entry{Member: r.Member, Score: r.Score}
	}
	return es
}

func checkSorted(t *testing.T, es []rankcache.Entry) {
	if len(es) != stirredRows {
		t.Errorf("%d rows, want %d", len(es), stirredRows)
	}
	for i := 1; i < len(es); i++ {
		if a, b := es[i-1], es[i]; a.Score < b.Score || a.Score == b.Score && a.Member <= b.Member {
			t.Errorf("row %d, %v, stands before %v", i-1, a, b)
			return
		}
	}
}
