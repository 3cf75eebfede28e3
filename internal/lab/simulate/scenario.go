package simulate

import (
	"time"

	"rankcache/internal/plan"
)

// settled is when something happens.
const settled = 20 * time.Second

// scenario is what happens to a fleet.
type scenario struct {
	name   string
	starts int  // sidecars that are not there before; -1: all
	kept   bool // it takes a keeper
	shared bool // with snapshots
	lasts  time.Duration
	does   func(*fleet)
}

const (
	failsOver = 10 * time.Second
	// lossBefore is how long before a failover the changes were that it loses.
	lossBefore = 100 * time.Millisecond
)

var scenarios = []scenario{
	{name: "steady", lasts: 10 * time.Second},
	{name: "the keeper dies, another takes over", kept: true, lasts: 30 * time.Second, does: func(f *fleet) { f.keeper.kill(true) }},
	{name: "the keeper dies, none is left", kept: true, lasts: 60 * time.Second, does: func(f *fleet) { f.keeper.kill(false) }},
	{name: "Redis fails over", lasts: 60 * time.Second, does: func(f *fleet) { f.redis.failOver(failsOver, nil) }},
	{name: "Redis fails over and loses 0.1 s", lasts: 3 * time.Minute, does: func(f *fleet) { f.redis.failOver(failsOver, f.changed(lossBefore)) }},
	{name: "40 start, from the log", starts: 40, lasts: time.Hour},
	{name: "40 start, from snapshots", starts: 40, shared: true, lasts: time.Hour},
	{name: "all start, from the log", starts: -1, lasts: time.Hour},
	{name: "all start, from snapshots", starts: -1, shared: true, lasts: time.Hour},
}

// changed returns boards at random: those that were changed in a time.
func (f *fleet) changed(within time.Duration) (boards []int) {
	there := map[int]bool{}
	for range int(f.q.Updates * within.Seconds()) {
		if b := f.random.IntN(len(f.q.Members)); !there[b] {
			there[b], boards = true, append(boards, b)
		}
	}
	return boards
}

// row is what a scenario gave. Before are the ten seconds before something happened, after the last ten.
type row struct {
	Name         string  `json:"name"`
	Keeper       bool    `json:"keeper"`
	Before       float64 `json:"redis_cores_before"`
	Commands     float64 `json:"redis_commands_per_s_before"`
	Peak         float64 `json:"redis_cores_peak"` // in a second
	PeakCommands int     `json:"redis_commands_per_s_peak"`
	Wait         float64 `json:"redis_wait_ms_peak"` // the longest of a request, its own time included
	Failed       int     `json:"redis_timeouts"`     // of requests, those while Redis was away left out
	After        float64 `json:"redis_cores_after"`
	Open         float64 `json:"all_open_s"`  // after which all boards of all sidecars are open again; -1: not in the time
	Calm         float64 `json:"recovered_s"` // after which Redis is as at the end
}

// run runs a scenario.
func (c *scenario) run(q plan.Question, network float64, seed uint64) row {
	starts := c.starts
	if starts < 0 {
		starts = q.Pods
	}
	f := newFleet(q, network, seed, q.Pods-starts)
	begin := f.clock.now
	f.clock.run(begin.Add(settled))
	f.redis.failed = 0
	if c.does != nil {
		c.does(f)
	}
	if starts > 0 {
		if !c.shared {
			q.SnapshotEvery = 0
		}
		a := plan.Make(q)
		for range starts {
			f.start((a.LogMiB + a.SnapshotMiB) * (1 << 20))
		}
		f.fill()
	}
	event := f.clock.now
	for end := event.Add(c.lasts); f.clock.now.Before(end); {
		f.clock.run(f.clock.now.Add(10 * time.Second))
		if c.lasts > time.Minute && f.openAt().After(event) {
			f.clock.run(f.clock.now.Add(10 * time.Second))
			break
		}
	}
	r := f.row(event)
	r.Name, r.Keeper = c.name, q.Keepers > 0
	return r
}

// openAt returns when the last board was opened; zero if some are not open.
func (f *fleet) openAt() (last time.Time) {
	for _, s := range f.sidecars {
		if s.open < len(s.boards) {
			return time.Time{}
		}
		if s.openAt.After(last) {
			last = s.openAt
		}
	}
	return last
}

// row tells what Redis did before and after an event.
func (f *fleet) row(event time.Time) (r row) {
	n := int(settled / time.Second)
	before, after := f.redis.seconds[n/2:n], f.redis.seconds[n:int(f.clock.now.Sub(newClock().now)/time.Second)]
	r.Failed, r.Before, r.Commands = f.redis.failed, mean(before), 0
	for _, s := range before {
		r.Commands += float64(s.commands) / float64(len(before))
	}
	last := after[len(after)-min(10, len(after)):]
	r.After = mean(last)
	for i, s := range after {
		r.Peak, r.PeakCommands = max(r.Peak, s.busy), max(r.PeakCommands, s.commands)
		r.Wait = max(r.Wait, s.wait.Seconds()*1e3)
		if s.busy > 1.25*r.After+0.01 {
			r.Calm = float64(i + 1)
		}
	}
	if at := f.openAt(); at.After(event) {
		r.Open = at.Sub(event).Seconds()
	} else if at.IsZero() {
		r.Open = -1
	}
	return r
}

func mean(of []second) (cores float64) {
	for _, s := range of {
		cores += s.busy / float64(len(of))
	}
	return cores
}
