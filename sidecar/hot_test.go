package sidecar

import (
	"context"
	"log/slog"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
	"rankcache/hotkey"
	"rankcache/internal/testkit/fixture"
)

// busyOrigin is a Redis whose board changes with each read. A read takes longer for more rows: 3 ms for
// 10 of them, 30 ms for the 100 of a tracker's page.
type busyOrigin struct{ seq atomic.Uint64 }

func (o *busyOrigin) Read(_ context.Context, qs []rankcache.Query, as []rankcache.Answer) {
	for i := range qs {
		q := &qs[i]
		at, seq := time.Now(), o.seq.Add(1)
		time.Sleep(time.Duration(q.Limit) * 300 * time.Microsecond)
		as[i].Begin(q, rankcache.SourceRedis, rankcache.Stamp{State: rankcache.State{Run: 1, Seq: seq}, Members: 1000, At: at}, at)
		for row := range q.Limit {
			as[i].Entries = append(as[i].Entries, rankcache.Entry{Member: strconv.Itoa(q.Start + row), Score: float64(seq)})
		}
	}
}

// TestHotBoardDoesNotStepBack: a page that was asked for before Redis answered a reader with something
// newer does not take the place of that: neither when the board becomes hot, nor when its page was dropped
// because nobody read it.
func TestHotBoardDoesNotStepBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tiers, origin := fixture.Tiers("boards: [{match: busy, mode: hot}]"), &busyOrigin{}
		tracker, err := hotkey.New(hotkey.Config{}, hotkey.Deps{Origin: origin, Tiers: tiers, Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry()})
		if err != nil {
			t.Fatal(err)
		}
		r := readerOf(t, Config{Tiers: tiers, Origin: origin, Hot: tracker})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- tracker.Run(ctx) }()
		var seen rankcache.Answer
		for range 3 {
			var sources [rankcache.Sources]int
			for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
				a := top(ctx, r, rankcache.Query{Board: "busy"}, 10)
				if a.Err != nil || len(a.Entries) != 10 {
					t.Fatalf("%d rows, %v", len(a.Entries), a.Err)
				}
				if a.Seq < seen.Seq {
					t.Errorf("%v answers seq %d, %v seq %d before", a.Source, a.Seq, seen.Source, seen.Seq)
				}
				sources[a.Source]++
				seen = a
			}
			if sources[rankcache.SourceRedis] == 0 || sources[rankcache.SourceHot] < 1000 {
				t.Errorf("answers by source: %v", sources)
			}
			if whole := top(ctx, r, rankcache.Query{Board: "busy"}, 100); whole.Source != rankcache.SourceHot {
				t.Errorf("the whole page is of %v", whole.Source)
			}
			time.Sleep(hotkey.Idle + time.Second) // the page is dropped
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
