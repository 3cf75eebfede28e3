package hotkey

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"rankcache"
)

// world is what a policy is shown, second by second, and what it did.
type world struct {
	policy *policy
	now    time.Time
	begin  time.Time

	rates  map[rankcache.BoardID]float64
	listed map[rankcache.BoardID]int64
	pinned []rankcache.BoardID
	barred map[rankcache.BoardID]bool

	log []string // "second board cause" or "second board -reason"
}

func newWorld(cfg Config) *world {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return &world{policy: newPolicy(cfg.withDefaults()), now: begin, begin: begin,
		rates: map[rankcache.BoardID]float64{}, barred: map[rankcache.BoardID]bool{}}
}

// pass lets seconds pass with the world as it is.
func (w *world) pass(seconds int) []change {
	var all []change
	for range seconds {
		w.now = w.now.Add(time.Second)
		changes := w.policy.step(w.now, w.see())
		for _, c := range changes {
			what := string(c.cause)
			if c.cause == "" {
				what = "-" + c.reason
			}
			w.log = append(w.log, fmt.Sprintf("%d %s %s", int(w.now.Sub(w.begin).Seconds()), c.board, what))
		}
		all = append(all, changes...)
	}
	return all
}

func (w *world) see() observation {
	o := observation{
		rate:   func(b rankcache.BoardID) float64 { return w.rates[b] },
		listed: w.listed,
		pinned: w.pinned,
		barred: func(b rankcache.BoardID) bool { return w.barred[b] },
	}
	for b, rate := range w.rates {
		if rate >= w.policy.cfg.PromoteRate {
			o.busy = append(o.busy, b)
		}
	}
	return o
}

func (w *world) hot(b rankcache.BoardID) bool {
	c := w.policy.boards[b]
	return c != nil && c.hot
}

func TestPolicy(t *testing.T) {
	const a, b = rankcache.BoardID("a"), rankcache.BoardID("b")
	verdict := map[rankcache.BoardID]int64{a: 5000}
	for _, tt := range []struct {
		name string
		cfg  Config
		play func(*world)
		want string
	}{
		{"a step of load promotes once and demotes once", Config{}, func(w *world) {
			w.pass(5)
			w.rates[a] = 500
			w.pass(120)
			w.rates[a] = 0
			w.pass(300)
		}, "7 a own-rate, 165 a -cold"}, // the load ends at 125; 10 s until the mean is below 25; 30 s
		{"one busy second is not enough", Config{}, func(w *world) {
			w.rates[a] = 500
			w.pass(1)
			w.rates[a] = 0
			w.pass(60)
		}, ""},
		{"two of three seconds are", Config{}, func(w *world) {
			for _, rate := range []float64{50, 0, 50} {
				w.rates[a] = rate
				w.pass(1)
			}
		}, "3 a own-rate"},
		{"the least residency is kept", Config{ExitAfter: time.Second}, func(w *world) {
			w.rates[a] = 500
			w.pass(3)
			w.rates[a] = 0
			w.pass(100)
		}, "2 a own-rate, 62 a -cold"},
		{"a dip shorter than ExitAfter changes nothing", Config{}, func(w *world) {
			for range 5 {
				w.rates[a] = 60
				w.pass(100)
				w.rates[a] = 0
				w.pass(20)
			}
		}, "2 a own-rate"},
		{"the verdict promotes where the board is read", Config{}, func(w *world) {
			w.rates[a], w.rates[b] = 3, 3
			w.listed = verdict
			w.pass(20)
		}, "5 a verdict"},
		{"the verdict does not promote where it is hardly read", Config{}, func(w *world) {
			w.rates[a] = 1.5
			w.listed = verdict
			w.pass(60)
		}, ""},
		{"a verdict that falls silent does not demote", Config{}, func(w *world) {
			w.rates[a] = 3
			w.listed = verdict
			w.pass(20)
			w.listed = nil
			w.pass(600)
		}, "5 a verdict"},
		{"a listed board leaves by its own rate", Config{}, func(w *world) {
			w.rates[a] = 3
			w.listed = verdict
			w.pass(20)
			w.listed, w.rates[a] = nil, 0
			w.pass(120)
		}, "5 a verdict, 65 a -cold"},
		{"a board promoted by its own rate and listed later keeps the lower exit rate", Config{}, func(w *world) {
			w.rates[a] = 60
			w.pass(10)
			w.listed = verdict
			w.pass(5)
			w.listed, w.rates[a] = nil, 5
			w.pass(300)
		}, "2 a own-rate"},
		{"a demoted board cools down", Config{CoolDown: 30 * time.Second}, func(w *world) {
			w.rates[a] = 60
			w.pass(2)
			w.rates[a] = 0
			w.pass(60) // demoted at 62
			w.rates[a] = 60
			w.pass(60)
		}, "2 a own-rate, 62 a -cold, 92 a own-rate"},
		{"pinned boards are hot at once and stay", Config{}, func(w *world) {
			w.pinned = []rankcache.BoardID{a}
			w.pass(600)
		}, "1 a pinned"},
		{"an unpinned board leaves by its own rate", Config{}, func(w *world) {
			w.pinned = []rankcache.BoardID{a}
			w.pass(100)
			w.pinned = nil
			w.pass(60)
		}, "1 a pinned, 131 a -cold"},
		{"a blocked board is never promoted and is demoted at once", Config{}, func(w *world) {
			w.rates[a], w.rates[b] = 60, 60
			w.barred[b] = true
			w.pass(5)
			w.barred[a] = true
			w.pass(5)
			w.barred[a] = false
			w.pass(15)
		}, "2 a own-rate, 6 a -barred, 21 a own-rate"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(tt.cfg)
			tt.play(w)
			if got := strings.Join(w.log, ", "); got != tt.want {
				t.Errorf("happened: %s\nwant:     %s", got, tt.want)
			}
		})
	}
}

func TestPolicyCapEvictsTheColdest(t *testing.T) {
	w := newWorld(Config{MaxBoards: 3})
	for i, b := range []rankcache.BoardID{"a", "b", "c"} {
		w.rates[b] = 60 + 20*float64(i)
	}
	w.pass(20)
	w.rates["d"] = 80 // not enough hotter than a
	w.pass(20)
	if w.hot("d") {
		t.Fatal("a board that is hardly hotter took another's place")
	}
	w.rates["d"] = 200
	w.pass(20)
	w.pinned = []rankcache.BoardID{"p", "q"}
	w.pass(20)
	var hot []string
	for b, c := range w.policy.boards {
		if c.hot {
			hot = append(hot, string(b))
		}
	}
	slices.Sort(hot)
	if got := strings.Join(hot, " "); got != "d p q" {
		t.Errorf("hot: %s, want d p q; happened: %v", got, w.log)
	}
	evicted := 0
	for _, line := range w.log {
		if strings.HasSuffix(line, reasonEvicted) {
			evicted++
		}
	}
	if evicted != 3 {
		t.Errorf("%d evicted, want 3 (a by d, b and c by the pinned ones); happened: %v", evicted, w.log)
	}
}

// Two boards of equal rates under a cap of one must not take turns.
func TestPolicyEqualsDoNotTakeTurns(t *testing.T) {
	w := newWorld(Config{MaxBoards: 1})
	w.rates["a"], w.rates["b"] = 60, 60
	w.pass(600)
	if len(w.log) != 1 {
		t.Errorf("happened: %v, want one promotion", w.log)
	}
}

func TestPolicyForgets(t *testing.T) {
	w := newWorld(Config{})
	for i := range 1000 {
		b := rankcache.BoardID(fmt.Sprint("once", i))
		w.rates[b] = 60
		w.pass(1)
		delete(w.rates, b)
	}
	w.listed = map[rankcache.BoardID]int64{"x": 1}
	w.pass(10)
	w.listed = nil
	w.pass(1)
	if n := len(w.policy.boards); n != 0 {
		t.Errorf("%d boards remembered, want 0", n)
	}
}

func TestFlipIsAPromotionSoonAfterADemotion(t *testing.T) {
	w := newWorld(Config{})
	flips := func(seconds int) (n int) {
		for _, c := range w.pass(seconds) {
			if c.flip {
				n++
			}
		}
		return n
	}
	w.rates["a"] = 60
	if flips(10) != 0 {
		t.Error("the first promotion is called a flip")
	}
	w.rates["a"] = 0
	flips(100)
	w.rates["a"] = 60
	if flips(30) != 1 {
		t.Error("a promotion a minute after the demotion is not called a flip")
	}
	w.rates["a"] = 0
	flips(600)
	w.rates["a"] = 60
	if flips(30) != 0 {
		t.Error("a promotion ten minutes later is called a flip")
	}
}
