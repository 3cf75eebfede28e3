package retry

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v5"
)

func TestDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away, over := errors.New("connection refused"), errors.New("over")
		failed := 0
		p := Policy{First: time.Second, Most: 4 * time.Second, Failed: func() { failed++ }, Log: slog.New(slog.DiscardHandler), Every: time.Second}
		attempts := 0
		attempt := func() error {
			if attempts++; attempts < 4 {
				return away
			}
			return nil
		}
		if err := Do(t.Context(), "redis", p, attempt); err != nil || attempts != 4 || failed != 3 {
			t.Errorf("%v after %d attempts, %d failed", err, attempts, failed)
		}
		if err := Do(t.Context(), "redis", p, func() error { return backoff.Permanent(over) }); !errors.Is(err, over) {
			t.Errorf("a permanent error: %v", err)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, over)
		defer cancel()
		err := Do(ctx, "redis", p, func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return away
		})
		if !errors.Is(err, away) || !errors.Is(err, over) {
			t.Errorf("after the end: %v, want why there was another attempt, too", err)
		}
	})
}
