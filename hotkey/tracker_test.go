package hotkey

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"rankcache"
	"rankcache/rooms"
	"rankcache/wire"
)

// runTracker runs a whole tracker in virtual time.
func runTracker(t *testing.T, parts Deps, play func(*Tracker)) {
	synctest.Test(t, func(t *testing.T) {
		parts.Log, parts.Registry = quiet(), prometheus.NewPedanticRegistry()
		if parts.Origin == nil {
			parts.Origin = &slowOrigin{takes: time.Millisecond}
		}
		if parts.Tiers == nil {
			parts.Tiers = func() *rooms.Tiers { return nil }
		}
		tracker, err := New(Config{}, parts)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- tracker.Run(ctx) }()
		play(tracker)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
}

// load asks for the board at a steady rate and returns when ok first became
// what is wanted, -1 if it never did.
func load(tr *Tracker, b rankcache.BoardID, perSecond int, d time.Duration, want bool) (after time.Duration) {
	begin := time.Now()
	after = -1
	for time.Since(begin) < d {
		if perSecond == 0 {
			time.Sleep(second)
		} else {
			time.Sleep(second / time.Duration(perSecond))
			tr.Count(b)
		}
		if _, _, ok := top(tr, b); ok == want && after < 0 {
			after = time.Since(begin)
		}
	}
	return after
}

func TestStepOfLoadFlipsOnce(t *testing.T) {
	t.Parallel()
	runTracker(t, Deps{}, func(tr *Tracker) {
		time.Sleep(10*time.Second + 300*time.Millisecond) // not in step with the ticks
		if after := load(tr, "1_2_3", 500, 30*time.Second, true); after < 0 || after > 3*time.Second {
			t.Errorf("promoted after %v, want at most 3s", after)
		}
		rows := tr.Hot()
		if len(rows) != 1 || rows[0].State != StateHot || rows[0].Cause != CauseOwn || rows[0].Rate < 450 || rows[0].Hits == 0 ||
			rows[0].PageAge < 0 || rows[0].PageAge > 1300 {
			t.Errorf("rows %+v", rows)
		}
		time.Sleep(100 * time.Second)
		if _, _, ok := top(tr, "1_2_3"); ok || len(*tr.pages.Load()) != 0 {
			t.Error("still hot 100 s after the load ended")
		}
		m := tr.metrics
		if p, d, f := testutil.ToFloat64(m.promotions), testutil.ToFloat64(m.demotions), testutil.ToFloat64(m.flips); p != 1 || d != 1 || f != 0 {
			t.Errorf("%v promotions, %v demotions, %v flips; want 1, 1, 0", p, d, f)
		}
		if hits := testutil.ToFloat64(m.hits); hits < 13_000 {
			t.Errorf("%v hits counted, want about 14,000", hits)
		}
	})
}

func TestOperatorDecides(t *testing.T) {
	file := &rooms.File{Rules: []rooms.Rule{
		{Match: "pinned", Mode: rooms.ModeHot}, {Match: "bad*", Mode: rooms.ModeBlocked},
		{Match: "filling", Mode: rooms.ModeSuperHot}, {Match: "open", Mode: rooms.ModeSuperHot},
	}}
	var filled atomic.Bool
	parts := Deps{
		Tiers: func() *rooms.Tiers { return file.Resolve(nil) },
		Open:  func(b rankcache.BoardID) bool { return b == "open" || b == "filling" && filled.Load() },
	}
	runTracker(t, parts, func(tr *Tracker) {
		ask := func(seconds int) {
			for range seconds {
				for _, b := range []rankcache.BoardID{"bad1", "filling", "open"} {
					for range 100 {
						tr.Count(b)
					}
				}
				time.Sleep(second)
			}
		}
		state := func() map[rankcache.BoardID]State {
			states := make(map[rankcache.BoardID]State)
			for _, row := range tr.Hot() {
				states[row.Board] = row.State
			}
			return states
		}
		ask(5)
		if s := state(); s["pinned"] != StateHot || s["bad1"] != StateBarred || s["filling"] != StateHot || s["open"] != StateBarred {
			t.Errorf("states %v", s)
		}
		filled.Store(true)
		ask(2)
		if s := state(); s["filling"] != StateBarred {
			t.Errorf("filling board is %s after it opened, want barred", s["filling"])
		}
	})
}

func TestVerdictCountsForALimitedTime(t *testing.T) {
	runTracker(t, Deps{}, func(tr *Tracker) {
		v := Verdict{At: 1, Source: "test", Boards: []BoardCount{{"1", 5000}}}
		for range 40 { // the same verdict again and again, as a poller that has died leaves it
			tr.Observe(v)
			time.Sleep(second)
		}
		load(tr, "1", 5, 30*time.Second, true)
		if len(*tr.pages.Load()) != 0 {
			t.Error("an old verdict promoted a board")
		}
		v.At = 2
		tr.Observe(v)
		if after := load(tr, "1", 5, 10*time.Second, true); after < 0 || after > 8*time.Second {
			t.Errorf("promoted %v after the verdict, want some seconds", after)
		}
		if rows := tr.Hot(); len(rows) != 1 || rows[0].Cause != CauseVerdict || rows[0].APICount != 5000 {
			t.Errorf("rows %+v", rows)
		}
		if age := tr.verdictAge(); age < 9 || age > 11 {
			t.Errorf("verdict is %v s old, want 10", age)
		}
	})
}

func TestOwnRates(t *testing.T) {
	own := NewOwnRates(50)
	for range 120 {
		own.Count("busy")
	}
	own.Count("rare")
	if got := own.Roll(2 * time.Second); len(got) != 1 || got[0] != (BoardCount{"busy", 120}) {
		t.Errorf("busy: %v, want one board of 120 requests", got)
	}
	if rate := own.Rate("busy"); rate != 60 {
		t.Errorf("rate %v, want 60", rate)
	}
}

func TestTopAllocatesNothing(t *testing.T) {
	tr := newTestTracker(t, Config{}, nil)
	tr.apply(time.Now(), []transition{{board: "1", cause: CauseOwn}})
	(*tr.pages.Load())["1"].publish(&rankcache.Top{}, time.Now(), time.Now())
	qs, as := []rankcache.Query{{Board: "1", Limit: 1}, {Board: "2", Limit: 1}}, make([]rankcache.Answer, 2)
	if n := testing.AllocsPerRun(100, func() { tr.Read(context.Background(), qs, as) }); n != 0 || as[0].Err != nil || as[1].Err == nil {
		t.Errorf("%v allocations, want 0", n)
	}
}

func TestMembersOfHotBoards(t *testing.T) {
	tr := newTestTracker(t, Config{}, nil)
	tr.apply(time.Now(), []transition{{board: "1", cause: CauseOwn}, {board: "not read yet", cause: CauseOwn}})
	(*tr.pages.Load())["1"].publish(&rankcache.Top{Members: 1_000_000}, time.Now(), time.Now())
	if got := tr.Members(); len(got) != 1 || got["1"] != 1_000_000 {
		t.Errorf("members %v", got)
	}
}

func TestTrackerMetricsAreWellFormed(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	tiers := func() *rooms.Tiers { return nil }
	if _, err := New(Config{}, Deps{Tiers: tiers, Log: quiet(), Registry: reg}); err != nil {
		t.Fatal(err)
	}
	newPollerMetrics(reg)
	NewVerdictReader(nil, wire.DefaultNames(), "", "", nil, quiet(), reg)
	NewFleet(nil, wire.DefaultNames(), "", quiet(), reg)
	problems, err := testutil.GatherAndLint(reg)
	if err != nil || len(problems) != 0 {
		t.Errorf("%v, %v", problems, err)
	}
}
