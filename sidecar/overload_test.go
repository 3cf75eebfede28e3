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
)

// faultyOrigin panics once, when it is let go.
type faultyOrigin struct {
	*fakeOrigin
	once sync.Once
}

func (o *faultyOrigin) Page(ctx context.Context, id rankcache.BoardID, start, limit int, order rankcache.Direction) (rankcache.Page, error) {
	p, err := o.fakeOrigin.Page(ctx, id, start, limit, order)
	o.once.Do(func() { panic("no such index") })
	return p, err
}

// TestPanicOfTheOrigin: it is the error of all who share the flight, logged once
// with its stack, and not the end of the process.
func TestPanicOfTheOrigin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		w := newWorld()
		w.origin.hold = make(chan struct{})
		cfg := w.config()
		cfg.Origin, cfg.Log = &faultyOrigin{fakeOrigin: w.origin}, slog.New(slog.NewTextHandler(&log, nil))
		r := readerOf(t, cfg)
		var done sync.WaitGroup
		for range 100 {
			done.Go(func() {
				_, err := r.Top(t.Context(), Query{Board: "any"}, 10)
				if p := problemOf(err); p.code != CodeInternal || p.detail != "" {
					t.Errorf("%v is told as %+v", err, p)
				}
			})
		}
		synctest.Wait()
		close(w.origin.hold)
		done.Wait()
		if text := log.String(); strings.Count(text, "no such index") != 1 || !strings.Contains(text, "overload_test.go") {
			t.Errorf("logged: %s", text)
		}
		if _, err := r.Top(t.Context(), Query{Board: "any"}, 10); err != nil || r.flights.waiting.Load() != 0 {
			t.Errorf("the next read: %v, %d calls left over", err, r.flights.waiting.Load())
		}
	})
}
