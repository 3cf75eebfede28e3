package sidecar

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"rankcache"
	"rankcache/sidecar/internal/fixture"
)

// faultyOrigin panics once, when it is let go.
type faultyOrigin struct {
	*fixture.Origin
	once sync.Once
}

func (o *faultyOrigin) Page(ctx context.Context, id rankcache.BoardID, start, limit int, order rankcache.Order) (rankcache.Page, error) {
	p, err := o.Origin.Page(ctx, id, start, limit, order)
	o.once.Do(func() { panic("no such index") })
	return p, err
}

// TestPanicOfTheOrigin: it is the error of all who share the flight, logged once
// with its stack, and not the end of the process.
func TestPanicOfTheOrigin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		env := newEnv()
		env.Origin.Hold = make(chan struct{})
		cfg := env.config()
		cfg.Origin, cfg.Log = &faultyOrigin{Origin: env.Origin}, slog.New(slog.NewTextHandler(&log, nil))
		r := readerOf(t, cfg)
		var done sync.WaitGroup
		for range 100 {
			done.Go(func() {
				_, err := r.Top(t.Context(), Query{Board: "any"}, 10)
				if err != ErrFault { // with no details
					t.Errorf("%v, want %v", err, ErrFault)
				}
			})
		}
		synctest.Wait()
		close(env.Origin.Hold)
		done.Wait()
		if text := log.String(); strings.Count(text, "no such index") != 1 || !strings.Contains(text, "overload_test.go") {
			t.Errorf("logged: %s", text)
		}
		if _, err := r.Top(t.Context(), Query{Board: "any"}, 10); err != nil || r.flights.waiting.Load() != 0 {
			t.Errorf("the next read: %v, %d calls left over", err, r.flights.waiting.Load())
		}
	})
}
