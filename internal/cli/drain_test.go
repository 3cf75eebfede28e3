package cli

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"rankcache/sidecar/adminapi"
)

// TestDrainEarly: when a drain of 5 s ends, on a clock that only waiting moves.
func TestDrainEarly(t *testing.T) {
	const drain = 5 * time.Second
	start := time.Time{}
	appUntil := func(end time.Duration, open int) Connections { // new connections all the time, of which some stay
		return func() (int, uint64) {
			if now := time.Since(start); now < end {
				return open, uint64(now)
			}
			return 0, uint64(end)
		}
	}
	for name, c := range map[string]struct {
		conns    Connections
		min, max time.Duration
	}{
		"without a count":         {nil, drain, drain},
		"no app":                  {appUntil(0, 0), unusedFor, unusedFor},
		"an app that ends":        {appUntil(time.Second, 1), time.Second + unusedFor - 50*time.Millisecond, time.Second + unusedFor},
		"an app that goes on":     {appUntil(time.Hour, 1), drain, drain},
		"only short connections":  {appUntil(time.Second, 0), time.Second + unusedFor - 50*time.Millisecond, time.Second + unusedFor},
		"short connections go on": {appUntil(time.Hour, 0), drain, drain},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start = time.Now()
				stopped, stop := context.WithCancel(t.Context())
				stop()
				Drained(stopped, t.Context(), adminapi.NewReadiness(nil, nil), drain, c.conns, slog.New(slog.DiscardHandler))
				if took := time.Since(start); took < c.min || took > c.max {
					t.Errorf("the drain took %v, want %v to %v", took, c.min, c.max)
				}
			})
		})
	}
}
