package hotkey

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"rankcache"
)

// env is the input of a policy, second by second, and a log of its transitions.
type env struct {
	policy *policy
	now    time.Time
	begin  time.Time

	rates  map[rankcache.BoardID]float64
	listed map[rankcache.BoardID]int64
	pinned []rankcache.BoardID
	barred map[rankcache.BoardID]bool

	log []string // "second board cause" or "second board -reason"
}

func newEnv(cfg Config) *env {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return &env{policy: newPolicy(cfg.withDefaults()), now: begin, begin: begin,
		rates: map[rankcache.BoardID]float64{}, barred: map[rankcache.BoardID]bool{}}
}

// pass lets seconds pass without a change of the inputs.
func (e *env) pass(seconds int) []transition {
	var all []transition
	for range seconds {
		e.now = e.now.Add(time.Second)
		transitions := e.policy.step(e.now, e.observation())
		for _, c := range transitions {
			what := string(c.cause)
			if c.cause == "" {
				what = "-" + c.reason
			}
			e.log = append(e.log, fmt.Sprintf("%d %s %s", int(e.now.Sub(e.begin).Seconds()), c.board, what))
		}
		all = append(all, transitions...)
	}
	return all
}

func (e *env) observation() observation {
	o := observation{
		rate:   func(b rankcache.BoardID) float64 { return e.rates[b] },
		listed: e.listed,
		pinned: e.pinned,
		barred: func(b rankcache.BoardID) bool { return e.barred[b] },
	}
	for b, rate := range e.rates {
		if rate >= e.policy.cfg.PromoteRate {
			o.busy = append(o.busy, BoardCount{Board: b})
		}
	}
	return o
}

func (e *env) hot(b rankcache.BoardID) bool {
	c := e.policy.boards[b]
	return c != nil && c.hot
}

func TestPolicy(t *testing.T) {
	const a, b = rankcache.BoardID("a"), rankcache.BoardID("b")
	verdict := map[rankcache.BoardID]int64{a: 5000}
	for _, tt := range []struct {
		name string
		cfg  Config
		play func(*env)
		want string
	}{
		{"a step of load promotes once and demotes once", Config{}, func(e *env) {
			e.pass(5)
			e.rates[a] = 500
			e.pass(120)
			e.rates[a] = 0
			e.pass(300)
		}, "7 a own-rate, 165 a -cold"}, // the load ends at 125; 10 s until the mean is below 25; 30 s
		{"one busy second is not enough", Config{}, func(e *env) {
			e.rates[a] = 500
			e.pass(1)
			e.rates[a] = 0
			e.pass(60)
		}, ""},
		{"two of three seconds are", Config{}, func(e *env) {
			for _, rate := range []float64{50, 0, 50} {
				e.rates[a] = rate
				e.pass(1)
			}
		}, "3 a own-rate"},
		{"the least residency is kept", Config{ExitAfter: time.Second}, func(e *env) {
			e.rates[a] = 500
			e.pass(3)
			e.rates[a] = 0
			e.pass(100)
		}, "2 a own-rate, 62 a -cold"},
		{"a dip shorter than ExitAfter transitions nothing", Config{}, func(e *env) {
			for range 5 {
				e.rates[a] = 60
				e.pass(100)
				e.rates[a] = 0
				e.pass(20)
			}
		}, "2 a own-rate"},
		{"the verdict promotes where the board is read", Config{}, func(e *env) {
			e.rates[a], e.rates[b] = 3, 3
			e.listed = verdict
			e.pass(20)
		}, "4 a verdict"},
		{"the verdict does not promote where it is hardly read", Config{}, func(e *env) {
			e.rates[a] = 1.5
			e.listed = verdict
			e.pass(60)
		}, ""},
		{"a verdict that falls silent does not demote", Config{}, func(e *env) {
			e.rates[a] = 3
			e.listed = verdict
			e.pass(20)
			e.listed = nil
			e.pass(600)
		}, "4 a verdict"},
		{"a listed board leaves by its own rate", Config{}, func(e *env) {
			e.rates[a] = 3
			e.listed = verdict
			e.pass(20)
			e.listed, e.rates[a] = nil, 0
			e.pass(120)
		}, "4 a verdict, 64 a -cold"},
		{"a board promoted by its own rate and listed later keeps the lower exit rate", Config{}, func(e *env) {
			e.rates[a] = 60
			e.pass(10)
			e.listed = verdict
			e.pass(5)
			e.listed, e.rates[a] = nil, 5
			e.pass(300)
		}, "2 a own-rate"},
		{"a demoted board cools down", Config{CoolDown: 30 * time.Second}, func(e *env) {
			e.rates[a] = 60
			e.pass(2)
			e.rates[a] = 0
			e.pass(60) // demoted at 62
			e.rates[a] = 60
			e.pass(60)
		}, "2 a own-rate, 62 a -cold, 92 a own-rate"},
		{"pinned boards are hot at once and stay", Config{}, func(e *env) {
			e.pinned = []rankcache.BoardID{a}
			e.pass(600)
		}, "1 a pinned"},
		{"an unpinned board leaves by its own rate", Config{}, func(e *env) {
			e.pinned = []rankcache.BoardID{a}
			e.pass(100)
			e.pinned = nil
			e.pass(60)
		}, "1 a pinned, 131 a -cold"},
		{"a blocked board is never promoted and is demoted at once", Config{}, func(e *env) {
			e.rates[a], e.rates[b] = 60, 60
			e.barred[b] = true
			e.pass(5)
			e.barred[a] = true
			e.pass(5)
			e.barred[a] = false
			e.pass(15)
		}, "2 a own-rate, 6 a -barred, 21 a own-rate"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := newEnv(tt.cfg)
			tt.play(e)
			if got := strings.Join(e.log, ", "); got != tt.want {
				t.Errorf("happened: %s\nwant:     %s", got, tt.want)
			}
		})
	}
}

func TestPolicyCapEvictsTheColdest(t *testing.T) {
	e := newEnv(Config{MaxBoards: 3})
	for i, b := range []rankcache.BoardID{"a", "b", "c"} {
		e.rates[b] = 60 + 20*float64(i)
	}
	e.pass(20)
	e.rates["d"] = 80 // not enough hotter than a
	e.pass(20)
	if e.hot("d") {
		t.Fatal("a board that is hardly hotter took another's place")
	}
	e.rates["d"] = 200
	e.pass(20)
	e.pinned = []rankcache.BoardID{"p", "q"}
	e.pass(20)
	var hot []string
	for b, c := range e.policy.boards {
		if c.hot {
			hot = append(hot, string(b))
		}
	}
	slices.Sort(hot)
	if got := strings.Join(hot, " "); got != "d p q" {
		t.Errorf("hot: %s, want d p q; happened: %v", got, e.log)
	}
	evicted := 0
	for _, line := range e.log {
		if strings.HasSuffix(line, reasonEvicted) {
			evicted++
		}
	}
	if evicted != 3 {
		t.Errorf("%d evicted, want 3 (a by d, b and c by the pinned ones); happened: %v", evicted, e.log)
	}
}

// Two boards of equal rates under a cap of one must not take turns.
func TestPolicyEqualsDoNotTakeTurns(t *testing.T) {
	e := newEnv(Config{MaxBoards: 1})
	e.rates["a"], e.rates["b"] = 60, 60
	e.pass(600)
	if len(e.log) != 1 {
		t.Errorf("happened: %v, want one promotion", e.log)
	}
}

func TestPolicyForgets(t *testing.T) {
	e := newEnv(Config{})
	for i := range 1000 {
		b := rankcache.BoardID(fmt.Sprint("once", i))
		e.rates[b] = 60
		e.pass(1)
		delete(e.rates, b)
	}
	e.listed = map[rankcache.BoardID]int64{"x": 1}
	e.pass(10)
	e.listed = nil
	e.pass(1)
	if n := len(e.policy.boards); n != 0 {
		t.Errorf("%d boards remembered, want 0", n)
	}
}

func TestFlipIsAPromotionSoonAfterADemotion(t *testing.T) {
	e := newEnv(Config{})
	flips := func(seconds int) (n int) {
		for _, c := range e.pass(seconds) {
			if c.flip {
				n++
			}
		}
		return n
	}
	e.rates["a"] = 60
	if flips(10) != 0 {
		t.Error("the first promotion is called a flip")
	}
	e.rates["a"] = 0
	flips(100)
	e.rates["a"] = 60
	if flips(30) != 1 {
		t.Error("a promotion a minute after the demotion is not called a flip")
	}
	e.rates["a"] = 0
	flips(600)
	e.rates["a"] = 60
	if flips(30) != 0 {
		t.Error("a promotion ten minutes later is called a flip")
	}
}
