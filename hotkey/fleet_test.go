package hotkey

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"rankcache"
)

// simFleet is many sidecars' policies and an API that counts what reaches
// Redis: a promoted board's readers no longer do, so the API stops listing it.
type simFleet struct {
	rnd      *rand.Rand
	sidecars []*policy
	total    map[rankcache.BoardID]float64 // requests/s over the whole fleet
	skew     []float64                     // each sidecar's share, 1 on average

	reports    bool                          // the verdict is what the sidecars report
	counted    []map[rankcache.BoardID]int64 // reads reaching Redis, per past second
	reported   []map[rankcache.BoardID]int64 // sums of their reports, per past second
	promotions map[rankcache.BoardID]int
	flips      map[rankcache.BoardID]int
}

// second lets one second pass: reads, then decisions on a verdict as old as the
// API's.
func (f *simFleet) second(now time.Time, sec int) {
	listed := f.verdict(sec)
	redis, reported := make(map[rankcache.BoardID]int64), make(map[rankcache.BoardID]int64)
	for i, p := range f.sidecars {
		rates := make(map[rankcache.BoardID]float64)
		o := observation{listed: listed, rate: func(b rankcache.BoardID) float64 { return rates[b] },
			barred: func(rankcache.BoardID) bool { return false }}
		for b, total := range f.total {
			n := f.poisson(total * f.skew[i] / float64(len(f.sidecars)))
			if rates[b] = float64(n); n > 1 {
				reported[b] += int64(n)
			}
			if c := p.boards[b]; c != nil && c.hot {
				n = min(n, 1) // the refresh
			}
			redis[b] += int64(n)
			if rates[b] >= p.cfg.PromoteRate {
				o.busy = append(o.busy, BoardCount{Board: b})
			}
		}
		for _, c := range p.step(now, o) {
			if c.cause != "" {
				f.promotions[c.board]++
			}
			if c.flip {
				f.flips[c.board]++
			}
		}
	}
	f.counted, f.reported = append(f.counted, redis), append(f.reported, reported)
}

// verdict is the API's answer: sums of whole 5 s, 20 s late, from 500 requests; or the sum of the reports of 2 s before.
func (f *simFleet) verdict(sec int) map[rankcache.BoardID]int64 {
	end := (sec - 20) / 5 * 5
	listed := make(map[rankcache.BoardID]int64)
	if f.reports {
		if sec >= 2 {
			listed = maps.Clone(f.reported[sec-2])
		}
		maps.DeleteFunc(listed, func(_ rankcache.BoardID, n int64) bool { return n < fleetRate })
		return listed
	}
	for s := max(end-5, 0); s < end; s++ {
		for b, n := range f.counted[s] {
			listed[b] += n
		}
	}
	for b, n := range listed {
		if n < DefaultTencentMinCount {
			delete(listed, b)
		}
	}
	return listed
}

func (f *simFleet) poisson(mean float64) (n int) {
	if mean > 30 {
		return max(int(math.Round(mean+math.Sqrt(mean)*f.rnd.NormFloat64())), 0)
	}
	for p, limit := f.rnd.Float64(), math.Exp(-mean); p > limit; n++ {
		p *= f.rnd.Float64()
	}
	return n
}

const fleetSize = 40

// runFleet lets ten virtual minutes of steady load pass, from a cold board to
// very hot ones.
func runFleet(reports bool, set func(*policy)) *simFleet {
	f := &simFleet{reports: reports, rnd: rand.New(rand.NewPCG(4, 4)), promotions: map[rankcache.BoardID]int{}, flips: map[rankcache.BoardID]int{},
		total: map[rankcache.BoardID]float64{
			"cold": 20, "cool": 60, "border": 80, "listed": 150, "warm": 400, "hot": 1_500, "edge": 2_000, "very-hot": 20_000,
		}}
	for range fleetSize {
		p := newPolicy(Config{}.withDefaults())
		set(p)
		f.sidecars = append(f.sidecars, p)
		f.skew = append(f.skew, 0.7+0.6*f.rnd.Float64())
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for sec := range 10 * 60 {
		now = now.Add(time.Second)
		f.second(now, sec)
	}
	return f
}

// Once a sidecar has promoted a board it keeps it, though the API stops listing
// it, and Redis is left with little more than the refreshes.
func TestFleetDoesNotFlap(t *testing.T) {
	for _, reports := range []bool{false, true} {
		t.Run(fmt.Sprintf("reports=%v", reports), func(t *testing.T) { checkFleet(t, runFleet(reports, func(*policy) {})) })
	}
}

func checkFleet(t *testing.T, f *simFleet) {
	for b, total := range f.total {
		var reached int64
		for _, s := range f.counted[len(f.counted)-60:] {
			reached += s[b]
		}
		t.Logf("%-8s %6.0f/s: %d promotions, %d flips, %d reads/s reach Redis", b, total, f.promotions[b], f.flips[b], reached/60)
		if f.flips[b] != 0 {
			t.Errorf("%s flips %d times", b, f.flips[b])
		}
		if total >= 400 && (f.promotions[b] != fleetSize || reached/60 > fleetSize) {
			t.Errorf("%s: %d of %d sidecars promoted it, %d reads/s still reach Redis", b, f.promotions[b], fleetSize, reached/60)
		}
	}
	if f.promotions["cold"]+f.promotions["cool"] != 0 {
		t.Errorf("cold boards were promoted: %v", f.promotions)
	}
}

// Why boards of the verdict have an exit rate of their own: with the one of busy
// boards, this fleet flaps.
func TestFleetFlapsWithOneExitRate(t *testing.T) {
	f := runFleet(false, func(p *policy) { p.listedExit = p.exit })
	if f.flips["warm"] == 0 {
		t.Errorf("no flips of a board that 40 sidecars read 10 times a second each: the fleet of TestFleetDoesNotFlap proves nothing")
	}
}
