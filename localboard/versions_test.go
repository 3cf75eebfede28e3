package localboard

import (
	"fmt"
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

// TestOldRankingIsImmutable: what a reader has got stays as it was, however many publications
// come after it.
func TestOldRankingIsImmutable(t *testing.T) {
	s := newMover(t)
	s.moveRows(10)
	v := s.view.Load()
	want := rowsOf(v)
	s.moveRows(1)
	over := *v.overwritten.Load()
	wantOver := slices.Clone(over)
	for i := range 20 {
		if s.moveRows(1); !slices.Equal(rowsOf(v), want) || !slices.Equal(over, wantOver) {
			t.Fatalf("a ranking, or the list of changes that overwrote it, was written by publication %d after it", i+2)
		}
	}
}

// TestPublicationCopiesWhatItChanges: versions share all other nodes.
func TestPublicationCopiesWhatItChanges(t *testing.T) {
	s := newMover(t)
	s.moveRows(10)
	before := map[*leaf]bool{}
	for l := range s.view.Load().leaves {
		before[l] = true
	}
	s.apply(1, func(int) int { return 7 })
	copied := 0
	for l := range s.view.Load().leaves {
		if !before[l] {
			copied++
		}
	}
	if copied == 0 || copied > 4 { // where a row was and where it is, and a half or a neighbour
		t.Errorf("%d of %d leaves are new after one change", copied, len(before))
	}
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

// TestRacingMoves reads in all ways while the writer moves rows. A row out of
// order, or a count that is wrong, is a ranking that was written while it was
// read.
func TestRacingMoves(t *testing.T) {
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
