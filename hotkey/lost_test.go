package hotkey

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"rankcache"
)

// TestLostPages: a page whose board is gone with the history of Redis stays as it was; one that was deleted, or has begun again, does not.
func TestLostPages(t *testing.T) {
	history := "one"
	r := &refresher{cfg: Config{}.withDefaults(), log: quiet(), metrics: newTestTracker(t, Config{}, nil).metrics,
		histories: func(_ context.Context, boards []rankcache.BoardID, _ bool) (names []string, err error) {
			for range boards {
				names = append(names, history)
			}
			if history == "" {
				err = errors.New("away")
			}
			return names, err
		}}
	p := &page{board: "a"}
	read := func(members, want int) {
		t.Helper()
		batch := []*page{p}
		before, begin := r.historiesBefore(t.Context(), []rankcache.BoardID{"a"}), time.Now()
		tops := []*rankcache.Top{{Board: "a", Members: members}}
		r.keepLost(t.Context(), batch, tops, before)
		r.complete(batch, tops, make([]time.Time, 1), begin)
		if got := p.cached.Load().top.Members; got != want {
			t.Errorf("%d members, want %d", got, want)
		}
	}
	lost := func(want float64) {
		t.Helper()
		if got := testutil.ToFloat64(r.metrics.lost); got != want {
			t.Errorf("%v lost, want %v", got, want)
		}
	}
	read(10, 10)
	read(0, 0) // deleted
	read(10, 10)
	history = "" // does not tell
	read(0, 10)
	lost(0)
	history = "two"
	read(0, 10)
	read(0, 10)
	lost(1)
	read(3, 3) // begun again
	lost(1)
	read(0, 0)
	read(10, 10)
	history = "three"
	read(2, 2) // begun again before anybody looked
	lost(2)
	history = "four"
	read(9, 9) // a failover
	read(0, 0) // and a board that was deleted
	lost(2)
}
