package origin

import (
	"slices"
	"time"
)

const (
	// firstCalls and mostCalls are how many calls may be under way to one master before background calls wait.
	firstCalls, mostCalls = 4, 32
	// Between background calls for which there is no room is a pause, which doubles with each time-out.
	shortestPause, longestPause = 250 * time.Millisecond, 30 * time.Second
)

// Budget decides when a background call to one master may begin: when fewer calls are under way than its limit. Apps'
// calls never wait, but count. The limit is halved at a time-out, once for all calls that were under way then, and
// grows with answers that come in a quarter of that time. Where there is no room for one call there is one after each
// pause. It has no clock and does no I/O, so that a fleet can be simulated. It is not safe for concurrent use.
type Budget struct {
	random   func() float64
	timeout  time.Duration
	limit    float64
	underWay int // calls of all kinds
	own      int // of these background calls
	pause    time.Duration
	next     time.Time // no background call begins before
	cut      time.Time // of the last time-out
	waiting  [2][]*Turn
}

// Turn is a background call that waits for its turn.
type Turn struct {
	kind  Kind
	start func()
}

// Kind is what a call is for.
type Kind uint8

// Kinds of calls, the most important first.
const (
	ForApp  Kind = iota
	ForLook      // of the background
	ForLoad      // of a whole board, which comes last
)

// NewBudget returns the budget of a master whose calls have a time-out. random returns numbers from 0 to less than 1.
func NewBudget(timeout time.Duration, random func() float64) *Budget {
	return &Budget{random: random, timeout: timeout, limit: firstCalls}
}

// Begin has a call begun by start, at once or when it may. A call that waits is returned.
func (b *Budget) Begin(kind Kind, now time.Time, start func()) *Turn {
	if kind == ForApp {
		b.underWay++
		start()
		return nil
	}
	t := &Turn{kind, start}
	b.waiting[kind-ForLook] = append(b.waiting[kind-ForLook], t)
	b.Wake(now)
	return t
}

// Leave takes back a call that waits. It returns false if it has begun.
func (b *Budget) Leave(t *Turn) bool {
	q := &b.waiting[t.kind-ForLook]
	n := len(*q)
	*q = slices.DeleteFunc(*q, func(other *Turn) bool { return other == t })
	return len(*q) < n
}

// Wake begins the calls that may begin now.
func (b *Budget) Wake(now time.Time) {
	for !now.Before(b.next) && (b.own == 0 || b.hasRoom()) {
		q := &b.waiting[0]
		if len(*q) == 0 {
			q = &b.waiting[1]
		}
		if len(*q) == 0 {
			return
		}
		t := (*q)[0]
		*q = (*q)[1:]
		b.underWay++
		b.own++
		t.start()
	}
}

// Due returns after how long Wake is to be called; 0: it need not be.
func (b *Budget) Due(now time.Time) time.Duration {
	if len(b.waiting[0])+len(b.waiting[1]) == 0 {
		return 0
	}
	return max(0, b.next.Sub(now))
}

func (b *Budget) hasRoom() bool { return float64(b.underWay+1) <= b.limit }

// End takes a call that has ended. answered tells that Redis did, late that it did not in time, while this process was
// not late itself.
func (b *Budget) End(kind Kind, began, now time.Time, answered, late bool) {
	b.underWay--
	if kind != ForApp {
		b.own--
	}
	switch {
	case late && began.After(b.cut):
		if b.cut = now; b.limit <= 1 {
			b.pause = max(shortestPause, min(2*b.pause, longestPause))
		}
		b.limit = max(b.limit/2, 0.5)
	case answered && now.Sub(began) < b.timeout/4:
		if b.pause /= 2; b.pause < shortestPause {
			b.pause, b.limit = 0, min(b.limit+1/max(b.limit, 1), mostCalls)
		}
		if sooner := now.Add(b.jitter(b.pause)); sooner.Before(b.next) {
			b.next = sooner
		}
	}
	if kind != ForApp && !b.hasRoom() {
		b.next = now.Add(b.jitter(max(b.pause, shortestPause)))
	}
	b.Wake(now)
}

// jitter returns d, give or take a half.
func (b *Budget) jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.5 + b.random()))
}
