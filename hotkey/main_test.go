package hotkey

import (
	"context"
	"log/slog"
	"testing"
	"time"
	"unsafe"

	"rankcache"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache/internal/testkit"
	"rankcache/rooms"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func unsafeString(b []byte) string { return unsafe.String(&b[0], len(b)) }

// newTestTracker returns a tracker without operator settings.
func newTestTracker(t testing.TB, cfg Config, origin rankcache.Reader) *Tracker {
	t.Helper()
	tracker, err := New(cfg, Deps{Origin: origin, Tiers: func() *rooms.Tiers { return nil }, Log: quiet(),
		Registry: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	return tracker
}

// top reads the first row of a board, and returns when its page was current.
func top(t *Tracker, board rankcache.BoardID) (rankcache.Answer, time.Time, bool) {
	a := rankcache.One(context.Background(), t, rankcache.Query{Board: board, Limit: 1})
	return a, a.CurrentAt, a.Err == nil
}
