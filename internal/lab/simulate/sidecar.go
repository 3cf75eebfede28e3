package simulate

import (
	"time"

	"github.com/cenkalti/backoff/v5"

	"rankcache/internal/plan"
	"rankcache/keeper"
	"rankcache/origin"
	"rankcache/replay"
)

// scanRows is of how many rows a request of a load from Redis is.
const scanRows = 1000

const (
	// gatesAtOnce is the most gates that ask in one round trip.
	gatesAtOnce = 100
	// connectSeconds is what Redis takes for a connection that is made again.
	connectSeconds = 60e-6
)

// sidecar asks Redis as a real one does: when is decided by its own [replay.Pace].
type sidecar struct {
	*fleet
	pace    *replay.Pace[[]int]
	budget  *origin.Budget
	wakeAt  time.Time // of the budget
	cut     int       // connections that time-outs have closed
	gates   []int     // boards whose gates ask for their states
	asking  bool      // those of some
	boards  []copied
	open    int     // boards
	left    float64 // bytes of logs and snapshots that it has not read yet
	loads   []int   // boards that wait for a load from Redis, the first of which is under way
	walking bool
	openAt  time.Time
}

// copied is a board of a sidecar.
type copied struct {
	has        int  // the failovers of which it knows
	open       bool // it may be read
	due, asked time.Time
	retry      *backoff.ExponentialBackOff
}

func (f *fleet) newSidecar() *sidecar {
	return &sidecar{fleet: f, pace: replay.NewPace[[]int](f.random.Float64), budget: origin.NewBudget(origin.DefaultTimeout, f.random.Float64), boards: make([]copied, len(f.redis.lost))}
}

// ask sends a round trip when it is its turn.
func (s *sidecar) ask(kind origin.Kind, commands int, cost float64, done func(ok bool)) {
	s.budget.Begin(kind, s.clock.now, func() {
		begun := s.clock.now
		if s.cut > 0 {
			s.cut--
			cost += connectSeconds
		}
		s.redis.ask(commands, cost, func(ok bool) {
			s.budget.End(kind, begun, s.clock.now, ok, !ok)
			s.wakeLater()
			if !ok {
				s.cut++
			}
			done(ok)
		})
	})
	s.wakeLater()
}

// wakeLater has the budget woken when a pause is over.
func (s *sidecar) wakeLater() {
	if at := s.clock.now.Add(s.budget.Due(s.clock.now)); at.After(s.clock.now) && at != s.wakeAt {
		s.wakeAt = at
		s.clock.at(at, func() { s.budget.Wake(s.clock.now); s.wakeLater() })
	}
}

// run starts what it does again and again.
func (s *sidecar) run() {
	s.clock.after(s.upTo(replay.DefaultTotalsEvery), s.poll)
	s.clock.after(s.upTo(s.q.StatesEvery), s.look)
	once := 3 // verdict, rooms, ping
	if s.q.Keepers > 0 {
		once = 2
	}
	for range once {
		s.clock.after(s.upTo(time.Second), s.besides)
	}
}

// allOpen notes when its last board was opened.
func (s *sidecar) allOpen() {
	if s.openAt = s.clock.now; s.walking {
		return
	}
	s.walking = true
	s.clock.after(s.upTo(time.Second), func() {
		s.walk(s.q.Members[0], func() bool { return !s.pace.Expected(s.clock.now) }, s.ask)
	})
}

func (s *sidecar) besides() {
	s.ask(origin.ForApp, 1, 0, func(bool) { s.clock.after(s.pace.Poll(time.Second), s.besides) })
}

// poll reads the boards that are due.
func (s *sidecar) poll() {
	var due []int
	for b := range s.boards {
		if !s.clock.now.Before(s.boards[b].due) {
			due = append(due, b)
		}
	}
	s.read(due, func() { s.clock.after(s.pace.Poll(replay.DefaultTotalsEvery), s.poll) })
}

// read reads the states of boards, and has those loaded that have lost something.
func (s *sidecar) read(boards []int, done func()) {
	if len(boards) == 0 {
		done()
		return
	}
	at := s.clock.now
	s.ask(origin.ForLook, 3*len(boards), float64(len(boards))*plan.StateSeconds, func(ok bool) {
		for _, b := range boards {
			if c := &s.boards[b]; ok {
				c.asked, c.due = at, time.Time{}
				if c.open {
					c.due = s.pace.Alone(at)
				}
				s.judge(b)
			}
		}
		done()
	})
}

// judge closes a board of which Redis has lost changes, and has it loaded.
func (s *sidecar) judge(b int) {
	c := &s.boards[b]
	if !c.open || c.has == s.redis.lost[b] {
		return
	}
	c.open, c.due = false, time.Time{}
	s.open--
	s.later(b, time.Duration(s.random.Float64()*float64(replay.RefillSpread)), s.queue)
}

func newRetry() *backoff.ExponentialBackOff {
	b := replay.NewRetry()
	b.RandomizationFactor = 0
	return b
}

// later does something about a board, each time later than before.
func (s *sidecar) later(b int, more time.Duration, do func(b int)) {
	c := &s.boards[b]
	if c.retry == nil {
		c.retry = newRetry()
	}
	s.clock.after(s.spread(c.retry.NextBackOff())+more, func() { do(b) })
}

// spread returns d, give or take a half, as the library does, whose random numbers have no seed.
func (s *sidecar) spread(d time.Duration) time.Duration {
	return seconds(d.Seconds() * (0.5 + s.random.Float64()))
}

// queue has a board loaded when no other one is.
func (s *sidecar) queue(b int) {
	if s.loads = append(s.loads, b); len(s.loads) == 1 {
		s.load()
	}
}

// load reads the first board that waits from Redis: its state, its rows, its state, and the state to which it is
// opened.
func (s *sidecar) load() {
	b, rows := s.loads[0], s.q.Members[0]
	end := func(ok bool) {
		if ok {
			s.prove(b)
		} else {
			s.later(b, 0, s.queue)
		}
		if s.loads = s.loads[1:]; len(s.loads) > 0 {
			s.load()
		}
	}
	var scan func(ok bool)
	scan = func(ok bool) {
		switch {
		case !ok || rows < 0:
			end(ok)
		case rows == 0:
			rows = -1
			s.ask(origin.ForLoad, 3, plan.StateSeconds, scan)
		default:
			n := min(rows, scanRows)
			rows -= n
			s.ask(origin.ForLoad, 1, float64(n)*plan.ScanSeconds, scan)
		}
	}
	s.ask(origin.ForLoad, 3, plan.StateSeconds, scan)
}

// prove opens a board that has all that Redis has.
func (s *sidecar) prove(b int) {
	if s.gates = append(s.gates, b); !s.asking {
		s.askGates()
	}
}

// askGates asks for the boards whose gates wait, all at once.
func (s *sidecar) askGates() {
	all := s.gates[:min(len(s.gates), gatesAtOnce)]
	s.gates, s.asking = s.gates[len(all):], true
	s.ask(origin.ForLook, 3*len(all), float64(len(all))*plan.StateSeconds, func(ok bool) {
		for _, b := range all {
			s.proved(b, ok)
		}
		if s.asking = false; len(s.gates) > 0 {
			s.askGates()
		}
	})
}

func (s *sidecar) proved(b int, ok bool) {
	c := &s.boards[b]
	switch {
	case c.open:
	case !ok:
		s.later(b, 0, s.prove)
	default:
		c.open, c.has, c.retry = true, s.redis.lost[b], nil
		if s.open++; s.open == len(s.boards) {
			s.allOpen()
		}
	}
}

// look reads the keeper's value.
func (s *sidecar) look() {
	at, before := s.clock.now, make([]int, len(s.boards))
	for b, c := range s.boards {
		if before[b] = c.has; !c.open {
			before[b] = -1
		}
	}
	next := func() { s.clock.at(s.pace.Next(), s.look) }
	s.ask(origin.ForLook, 1, float64(len(s.boards))/100*plan.ValueSeconds, func(ok bool) {
		k := s.keeper
		if !ok || k == nil || k.value == nil || s.clock.now.Sub(k.publishedAt) > keeper.ValueLives {
			s.pace.Missed(at)
			next()
			return
		}
		date := s.pace.Heard(replay.Look[[]int]{Serial: k.serial, At: at, Before: before}, s.q.StatesEvery)
		if date == nil {
			next()
			return
		}
		s.read(s.compare(k.value, date), next)
		s.pace.Used(at)
	})
}

// compare spares Redis the boards that are as the value has them, and returns the others.
func (s *sidecar) compare(value []int, date *replay.Look[[]int]) (doubted []int) {
	due := s.pace.Spared(date.At)
	for b, has := range date.Before {
		c := &s.boards[b]
		switch {
		case has < 0 || !c.open:
		case value[b] != c.has:
			doubted = append(doubted, b)
		case s.pace.SelfCheck(c.asked, date.At):
			c.due = time.Time{}
		default:
			c.due = due
		}
	}
	return doubted
}
