package ledger

import (
	"errors"
	"testing"
	"time"

	"rankcache/wire"
)

type days = time.Duration

// at is a time at which what was changed before ms is older than a nanosecond.
func at(ms int64) time.Time { return time.UnixMilli(ms).Add(1) }

func TestOldRowsAreRemoved(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		h, none := newHistory("b", 5), newHistory("n", 5)
		var updates []*wire.LedgerUpdate
		for range MaxBatch + 10 {
			updates = append(updates, h.incr("a", 1))
		}
		last := h.incr("b", 1)
		forever := none.incr("a", 1)
		forever.Class, forever.Tag = "ever", ""
		next, _ := feed(t, s, 0, append(updates, last, forever)...)
		keep := Keep{Default: 1, Classes: map[string]time.Duration{"ever": 0}}
		if n, err := s.Retain(t.Context(), keep, at(last.At)); err != nil || n != len(updates) {
			t.Errorf("%d removed, %v, want %d", n, err, len(updates))
		}
		wantProved(t, s, []*history{h})
		feed(t, s, next, h.incr("b", 1))
		wantProved(t, s, []*history{h})
		if n, err := s.Retain(t.Context(), keep, at(last.At+2)); err != nil || n != 2 {
			t.Errorf("%d removed, %v, want the other 2", n, err)
		}
		if _, err := s.Prove(t.Context(), h.board); !errors.Is(err, ErrNoBoard) {
			t.Errorf("%v, want a board of a period to be gone with its last row", err)
		}
		if n := count(t, s, "rank_score"); n != 1 {
			t.Errorf("%d scores, want the one that is kept for ever", n)
		}
		wantProved(t, s, []*history{none})
	})
}
