package sidecar

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"rankcache"
	"rankcache/internal/testkit/fixture"
)

// largeOrigin is a board of so many members, in which "m" has the rank 5000. It is asked for ladders, too.
type largeOrigin struct {
	members int
	run     uint64
	made    int // ladders
	fails   error
	asked   rankcache.Query
}

func (o *largeOrigin) Read(_ context.Context, qs []rankcache.Query, as []rankcache.Answer) {
	for i := range qs {
		q, a := &qs[i], &as[i]
		a.Begin(q, rankcache.SourceRedis, rankcache.Stamp{State: rankcache.State{Run: o.run, Seq: 9}, Members: o.members, At: time.Now()}, time.Now())
		for m := range a.Own {
			own := &a.Own[m]
			if own.Score, own.Rank = 5000, 5000; q.Ladder != nil && q.Ladder.Run == o.run {
				own.Approximate(q)
			} else if q.Around > 0 {
				own.First, own.Neighbours = 4999, []rankcache.Entry{{Member: "m", Score: 5000}}
			}
		}
		o.asked = *q
	}
}

func (o *largeOrigin) Ladder(context.Context, rankcache.BoardID) (*rankcache.Ladder, error) {
	if o.made++; o.fails != nil {
		return nil, o.fails
	}
	return &rankcache.Ladder{Run: o.run, Seq: 8, Members: o.members, At: time.Now(), Rungs: []rankcache.Rung{
		{Entry: rankcache.Entry{Member: "a", Score: 10_000}, Rank: 1}, {Entry: rankcache.Entry{Member: "z", Score: 0}, Rank: o.members}}}, nil
}

// about reads the member approximately, and returns whether the rank is from a ladder.
func (o *largeOrigin) about(t *testing.T, r *Reader, q rankcache.Query) bool {
	t.Helper()
	q.Board, q.Mode, q.Members = "large", rankcache.Approx, []string{"m"}
	a := rankcache.One(t.Context(), r, q)
	if a.Err != nil || a.Own[0].Err != nil {
		t.Fatal(a.Err, a.Own)
	}
	synctest.Wait() // a ladder that was asked for is here
	own := &a.Own[0]
	if own.Ladder == nil && (own.Rank != 5000 || own.Within != 0) || own.Ladder != nil && own.Within == 0 {
		t.Errorf("rank %d within %d, from a ladder: %v", own.Rank, own.Within, own.Ladder != nil)
	}
	return own.Ladder != nil
}

func ladderReader(t *testing.T, members int) (*Reader, *largeOrigin) {
	o := &largeOrigin{members: members, run: 1}
	return readerOf(t, Config{Tiers: fixture.Tiers(fixture.Rooms), Origin: o, Ladders: o}), o
}

// TestLadderIsAskedForBehindReads: the first read is exact, and each that a ladder can't answer.
func TestLadderIsAskedForBehindReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, o := ladderReader(t, rankcache.MinLadder)
		if o.about(t, r, rankcache.Query{}) || o.made != 1 {
			t.Errorf("the first read; %d were made", o.made)
		}
		time.Sleep(4 * time.Second)
		for what, c := range map[string]struct {
			q    rankcache.Query
			want bool
		}{
			"a standing": {rankcache.Query{}, true}, "a page with a standing": {rankcache.Query{Limit: 5}, true}, "a percentile": {rankcache.Query{Percentile: true}, true},
			"a page with percentiles": {rankcache.Query{Limit: 5, Percentile: true}, false}, "neighbours": {rankcache.Query{Around: 1}, false}, "a gap": {rankcache.Query{Gap: true}, false},
			"within the age": {rankcache.Query{MaxAge: 5 * time.Second}, true}, "beyond the age": {rankcache.Query{MaxAge: 3 * time.Second}, false},
			"a write": {rankcache.Query{MinSeq: 9}, true},
		} {
			if got := o.about(t, r, c.q); got != c.want {
				t.Errorf("%s: from a ladder: %v", what, got)
			}
		}
		qs, as := []rankcache.Query{{Board: "large", Mode: rankcache.Approx, Members: []string{"m"}}, {Board: "other", Limit: 1}}, make([]rankcache.Answer, 2)
		if r.Read(t.Context(), qs, as); as[0].Own[0].Ladder != nil {
			t.Error("several boards: from a ladder")
		}
		if rankcache.One(t.Context(), r, rankcache.Query{Board: "large", Members: []string{"m"}}).Own[0].Ladder != nil {
			t.Error("an exact read: from a ladder")
		}
	})
}

// TestLadderAges: it is renewed after 10 s behind a read, which has the old one, and not used after 30 s.
func TestLadderAges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, o := ladderReader(t, rankcache.MinLadder)
		o.about(t, r, rankcache.Query{})
		time.Sleep(ladderEvery + time.Millisecond)
		if !o.about(t, r, rankcache.Query{}) || o.made != 2 {
			t.Errorf("after 10 s; %d were made", o.made)
		}
		o.fails = errors.New("Redis refuses")
		time.Sleep(ladderLives - time.Millisecond)
		first, second := o.about(t, r, rankcache.Query{}), o.about(t, r, rankcache.Query{})
		if !first || !second || o.made != 3 {
			t.Errorf("after 30 s, twice within a second; %d were asked for", o.made)
		}
		time.Sleep(ladderRetry)
		if o.about(t, r, rankcache.Query{}) || o.made != 4 {
			t.Errorf("after more than 30 s; %d were asked for", o.made)
		}
		o.fails = nil
		time.Sleep(ladderRetry)
		if o.about(t, r, rankcache.Query{}) || !o.about(t, r, rankcache.Query{}) {
			t.Error("after it could be made again")
		}
	})
}

// TestLadderOfAnEndedRun is dropped.
func TestLadderOfAnEndedRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, o := ladderReader(t, rankcache.MinLadder)
		o.about(t, r, rankcache.Query{})
		if o.run = 2; o.about(t, r, rankcache.Query{}) || o.asked.Ladder == nil {
			t.Error("the first read of another run")
		}
		if o.about(t, r, rankcache.Query{}) || o.asked.Ladder != nil {
			t.Error("the ladder was kept")
		}
		time.Sleep(ladderRetry)
		if o.about(t, r, rankcache.Query{}) || !o.about(t, r, rankcache.Query{}) {
			t.Error("there is no ladder of the new run")
		}
	})
}

// TestNoLadderOfSmallBoards, and of no more boards than there is room for.
func TestNoLadderOfSmallBoards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, o := ladderReader(t, rankcache.MinLadder-1)
		if o.about(t, r, rankcache.Query{}); o.about(t, r, rankcache.Query{}) || o.made != 0 {
			t.Errorf("%d were made", o.made)
		}
		o.members++
		for i := range 2 * maxLadders {
			q := rankcache.Query{Board: rankcache.BoardID("large" + string(rune('a'+i%26)) + string(rune('a'+i/26))), Mode: rankcache.Approx, Members: []string{"m"}}
			rankcache.One(t.Context(), r, q)
			synctest.Wait()
		}
		if n := len(r.ladders.boards); n != maxLadders || o.made != 2*maxLadders {
			t.Errorf("%d kept, %d made", n, o.made)
		}
	})
}
