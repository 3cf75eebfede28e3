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

// newYieldingBoard returns a board whose publications, but for the first one, call yield.
func newYieldingBoard(rows int, yield func(*Board)) *Board {
	var b *Board
	published := false
	b = NewBoards(WithYield(func() {
		if published {
			yield(b)
		}
	})).Create("b")
	publishScores(b, 0, rows)
	published = true
	return b
}

// TestPassesYield: a pass over the whole board yields, too.
func TestPassesYield(t *testing.T) {
	const rows, pass = 3 * passSteps, 3 * rowSteps // yields of a pass over all rows
	times := 0
	b := NewBoards(WithYield(func() { times++ })).Create("b")
	first, second := scores(0, rows), scores(rows, rows)
	load := func(es []rankcache.Entry) {
		if err := b.Load(2*rows, es); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []struct {
		what string
		pass func()
		want int // at least
	}{
		{"the growing table", func() { b.Apply(first) }, pass},
		{"the first publication", b.Publish, 2 * pass},
		{"many changes", func() { b.Apply(second); b.Publish() }, pass},
		{"the sum", func() { b.Sum() }, rows/sumPiece - 1},
		{"a load", func() { load(whole(b, rankcache.Descending)) }, 2*pass + 2},
		{"a load that removes all", func() { load(nil) }, pass},
		{"a compaction", func() { compact(&b.writerState) }, pass},
	} {
		times = 0
		c.pass()
		if times < c.want {
			t.Errorf("%s of %d rows yielded %d times, want %d", c.what, rows, times, c.want)
		}
		if b.index != nil {
			b.Publish()
			check(t, b)
		}
	}
}

// scores returns updates of n members to the scores from and above.
func scores(from, n int) []wire.Update {
	us := make([]wire.Update, n)
	for i := range us {
		us[i] = set(fmt.Sprint("user:", i), float64(from+i), uint64(from+i+1))
	}
	return us
}

func publishScores(b *Board, from, n int) {
	b.Apply(scores(from, n))
	b.Publish()
}

// TestPublicationYields: readers that run within a publication find the state before it.
func TestPublicationYields(t *testing.T) { synctest.Test(t, publicationYields) }

func publicationYields(t *testing.T) {
	const rows = mergeShare * minPiece * 10
	times := 0
	var want rankcache.Answer
	b := newYieldingBoard(rows, func(b *Board) {
		times++
		page := page(b, 0, rows, rankcache.Descending)
		if page.Stamp != want.Stamp || !slices.Equal(page.Entries, want.Entries) {
			t.Errorf("time %d: the page of %+v, want that of %+v", times, page.Stamp, want.Stamp)
		}
		if got, at := standings(b, []string{"user:0"}, rankcache.Ascending); got[0].Rank != 1 || at.State != want.State {
			t.Errorf("time %d: %+v at %+v, want the last row", times, got, at)
		}
	})
	want = page(b, 0, rows, rankcache.Descending)
	publishScores(b, rows, 4*minPiece)
	if times != 3 {
		t.Errorf("the writer yielded %d times between 4 pieces", times)
	}
	check(t, b)
	if got, _ := standings(b, []string{"user:0"}, rankcache.Ascending); got[0].Score != rows {
		t.Errorf("after the publication user:0 has %+v", got)
	}
}

// TestYieldBudget: however many changes there are, and however long the readers take,
// a publication yields only so often.
func TestYieldBudget(t *testing.T) {
	const changes = 3 * maxPieces * minPiece
	for took, limit := range map[time.Duration]int{
		0:                   maxPieces,
		yieldBudget / 2:     2,
		yieldBudget * 3 / 4: 2,
		time.Hour:           1,
	} {
		synctest.Test(t, func(t *testing.T) {
			times := 0
			b := newYieldingBoard(mergeShare*changes, func(*Board) {
				times++
				time.Sleep(took)
			})
			publishScores(b, mergeShare*changes, changes)
			if times == 0 || times > limit {
				t.Errorf("with readers that take %v the writer yielded %d times, want 1 to %d", took, times, limit)
			}
		})
	}
}
