package localboard

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"rankcache"
	"rankcache/wire"
)

// polite is a board whose publications call way.
func polite(rows int, way func(*Board)) *Board {
	var b *Board
	b = NewBoards(GivingWay(func() { way(b) })).Create("b")
	publishScores(b, 0, rows)
	return b
}

// publishScores sets the scores of n members to from and above.
func publishScores(b *Board, from, n int) {
	us := make([]wire.Update, n)
	for i := range us {
		us[i] = set(fmt.Sprint("user:", i), float64(from+i), uint64(from+i+1))
	}
	b.Apply(us)
	b.Publish()
}

// TestWriterGivesWay: readers who get their turn within a publication find what
// was there before it.
func TestWriterGivesWay(t *testing.T) { synctest.Test(t, writerGivesWay) }

func writerGivesWay(t *testing.T) {
	const rows = mergeShare * fewestInPiece * 10
	times := 0
	var want rankcache.Page
	b := polite(rows, func(b *Board) {
		times++
		page := b.Page(0, rows, rankcache.Descending)
		if page.Stamp != want.Stamp || !slices.Equal(page.Entries, want.Entries) {
			t.Errorf("time %d: the page of %+v, want that of %+v", times, page.Stamp, want.Stamp)
		}
		if got, at := b.Standings(nil, []string{"user:0"}, rankcache.Ascending); got[0].Rank != 1 || at != want.Stamp {
			t.Errorf("time %d: %+v at %+v, want the last row", times, got, at)
		}
	})
	want = b.Page(0, rows, rankcache.Descending)
	publishScores(b, rows, 4*fewestInPiece)
	if times != 3 {
		t.Errorf("the writer gave way %d times between 4 pieces", times)
	}
	check(t, b)
	if got, _ := b.Standings(nil, []string{"user:0"}, rankcache.Ascending); got[0].Score != rows {
		t.Errorf("after the publication user:0 has %+v", got)
	}
}

// TestGivingWayEnds: however many changes there are, and however long the readers
// take, a publication ends soon.
func TestGivingWayEnds(t *testing.T) {
	const changes = 3 * mostPieces * fewestInPiece
	for took, most := range map[time.Duration]int{
		0:                   mostPieces,
		mostWaiting / 2:     2,
		mostWaiting * 3 / 4: 2,
		time.Hour:           1,
	} {
		synctest.Test(t, func(t *testing.T) {
			times := 0
			b := polite(mergeShare*changes, func(*Board) {
				times++
				time.Sleep(took)
			})
			publishScores(b, mergeShare*changes, changes)
			if times == 0 || times > most {
				t.Errorf("readers who took %v had %d turns, want 1 to %d", took, times, most)
			}
		})
	}
}
