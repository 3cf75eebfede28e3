package roomsync

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/rooms"
)

// TestGrowth has the bypasses of many boards begin and half of them end. The steps of its run are counted at two sizes: see
// TestNothingGrowsAsASquare.
func TestGrowth(t *testing.T) {
	f := New(Config{Log: slog.New(slog.DiscardHandler)}, nil)
	now := time.Now()
	n := testkit.Growth(t)
	f.dynamic.bypasses = make(map[string]rooms.Bypass)
	for i := range n {
		b := rooms.Bypass{Board: rankcache.BoardID(fmt.Sprint("b", i)), Until: now.Add(time.Duration(1+i%2) * time.Hour)}
		f.dynamic.bypasses[b.Field()] = b
	}
	f.putBypasses(now)
	if f.putBypasses(now.Add(90 * time.Minute)); len(f.bypasses) != n/2 {
		t.Errorf("%d bypasses are left of %d", len(f.bypasses), n)
	}
}
