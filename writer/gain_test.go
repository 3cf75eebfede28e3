package writer

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"rankcache/rooms"
	"rankcache/wire"
)

// Those who gain most are found among many more members than are counted, with at most
// what they have gained; the next hour begins anew.
func TestGains(t *testing.T) {
	t.Parallel()
	g := &gains{highest: prometheus.NewGauge(prometheus.GaugeOpts{Name: "g"})}
	now := time.Date(2026, 11, 22, 12, 30, 0, 0, time.UTC)
	want := make(map[string]float64)
	for i := range 200_000 {
		member, delta := fmt.Sprint("m", rand.IntN(50_000)), 1.0
		if i%10 == 0 {
			member, delta = fmt.Sprint("rich", i/10%5), 20
		}
		want[member] += delta
		g.note("b", member, delta, now)
	}
	since, top := g.top(now.Add(29 * time.Minute))
	equal(t, "since", since, now.Add(-30*time.Minute))
	equal(t, "counted, shown", []int{len(g.of), len(g.least), len(top)}, []int{maxGainers, maxGainers, shownGainers})
	for i, one := range top {
		if i < 5 && (one.Member[0] != 'r' || one.Gain < want[one.Member]/2) || one.Gain > want[one.Member] {
			t.Errorf("place %d: %+v, which has gained %v", i, one, want[one.Member])
		}
	}
	equal(t, "highest", testutil.ToFloat64(g.highest), top[0].Gain)
	if _, top = g.top(now.Add(30 * time.Minute)); len(top) != 0 || testutil.ToFloat64(g.highest) != 0 {
		t.Errorf("in the next hour: %+v", top)
	}
}

// Increments of boards with a guard are counted once.
func TestGainsOfGuards(t *testing.T) {
	h := quiet(t, nil)
	r := rules{guard: rooms.Guard{Members: 10}}
	incr := Command{Member: "a", Op: wire.OpIncr, Number: 5, OrderID: "o1"}
	h.applyOne(t, r, incr)
	h.applyOne(t, r, incr) // a repeat
	incr.OrderID, incr.Member = "o2", "b"
	h.applyOne(t, r, incr)
	incr.OrderID, incr.Number = "o3", 2
	h.applyOne(t, r, incr)
	incr.OrderID, incr.Number = "o4", -100
	h.applyOne(t, r, incr)
	incr.OrderID, incr.Number, incr.Member = "o5", 9, "c"
	h.applyOne(t, rules{}, incr) // without a guard
	since, top := h.metrics.gains.top(h.applier.now())
	if len(top) != 2 || top[0].Member != "b" || top[0].Gain != 7 || top[1].Gain != 5 || top[1].Board != h.board || time.Since(since) > time.Hour+time.Minute {
		t.Errorf("since %v: %+v", since, top)
	}
}

// TestGainOfAnotherTime: a class whose gain is limited for a longer time than before begins anew with that.
func TestGainOfAnotherTime(t *testing.T) {
	h := quiet(t, func(o *Options) { o.BoardLife = 1000 * time.Hour })
	now := time.UnixMilli(h.at)
	h.applier.now = func() time.Time { return now }
	order := 0
	incr := func(per time.Duration) string {
		order++
		j := h.applyOne(t, rules{guard: rooms.Guard{Changes: 1000, Per: time.Minute, Members: 10, Gain: 10, GainPer: per, Refuse: true}},
			Command{Member: "a", Op: wire.OpIncr, Number: 8, OrderID: fmt.Sprint("o", order), At: now.UnixMilli()})
		if j.Refusal == nil {
			return ""
		}
		return j.Refusal.Reason
	}
	equal(t, "a minute", []string{incr(time.Minute), incr(time.Minute)}, []string{"", "guard"})
	now = now.Add(time.Hour)
	equal(t, "an hour", []string{incr(time.Hour), incr(time.Hour)}, []string{"", "guard"})
	now = now.Add(time.Hour)
	equal(t, "the next hour", incr(time.Hour), "")
}
