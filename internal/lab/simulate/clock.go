package simulate

import "time"

// clock is virtual time, and what happens in it.
type clock struct {
	now    time.Time
	events []event // a heap, the next one first
	count  int
}

type event struct {
	at    int64 // nanoseconds
	order int   // of those at the same time
	do    func()
}

func (e event) before(o event) bool { return e.at < o.at || e.at == o.at && e.order < o.order }

func newClock() *clock { return &clock{now: time.Unix(1_000_000_000, 0)} }

// at has something done at a time, which is now if that is past.
func (c *clock) at(t time.Time, do func()) {
	c.count++
	e := event{max(t.UnixNano(), c.now.UnixNano()), c.count, do}
	i := len(c.events)
	for c.events = append(c.events, e); i > 0 && e.before(c.events[(i-1)/2]); i = (i - 1) / 2 {
		c.events[i] = c.events[(i-1)/2]
	}
	c.events[i] = e
}

func (c *clock) after(d time.Duration, do func()) { c.at(c.now.Add(d), do) }

// run does what happens until a time.
func (c *clock) run(until time.Time) {
	for len(c.events) > 0 && c.events[0].at <= until.UnixNano() {
		e := c.next()
		c.now = time.Unix(0, e.at)
		e.do()
	}
	c.now = until
}

// next takes the first event.
func (c *clock) next() event {
	first, last := c.events[0], c.events[len(c.events)-1]
	c.events[len(c.events)-1] = event{}
	c.events = c.events[:len(c.events)-1]
	n, i := len(c.events), 0
	for child := 1; child < n; child = 2*i + 1 {
		if child+1 < n && c.events[child+1].before(c.events[child]) {
			child++
		}
		if !c.events[child].before(last) {
			break
		}
		c.events[i], i = c.events[child], child
	}
	if n > 0 {
		c.events[i] = last
	}
	return first
}
