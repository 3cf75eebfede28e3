package controller

import (
	"errors"
	"testing"
	"time"

	"rankcache/internal/testkit"
	"rankcache/wire"
)

// TestGrowth closes many boards, of which none can be; one is told. The steps of its run are counted at two
// sizes: see TestNothingGrowsAsASquare.
func TestGrowth(t *testing.T) {
	f := newFixture(t, testkit.Kfake(t).Addr(), nil, nil)
	for i := range testkit.Growth(t) {
		b := f.board(t, "gift", time.Now().Add(-24*time.Hour-time.Duration(i)*30*time.Minute), wire.LifeOpen)
		must(t, f.redis.Set(t.Context(), f.opts.Names.MetaKey(b), "no meta", time.Hour).Err())
	}
	err := f.closeBoards(t.Context())
	if !errors.Is(err, wire.ErrMeta) || len(err.Error()) > 1000 {
		t.Errorf("%.2000v", err)
	}
}
