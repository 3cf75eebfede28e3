package replay

import (
	"slices"
	"sync/atomic"
	"time"
)

const (
	findKeeperEvery = 5 * time.Second // how often it is looked for a keeper's value while there is none
	// staleStates is from when on a keeper's states are of no use, or five of its intervals if that is longer.
	staleStates = 3 * time.Second
	// ownReadings are the time between two readings of Redis by this process while a keeper that was there is away.
	// The first is a random part of it later: else a whole fleet would read at once.
	ownReadings = 5 * time.Second
	// keeperReturns is how long a keeper that was there is expected back: until then no rows are compared.
	keeperReturns = 10 * time.Minute
	// SelfCheckEvery is how often each board is read here though a keeper does: that may read another Redis.
	SelfCheckEvery = 5 * time.Minute
	// mistrust is for how long a keeper is not heard after Redis did not confirm what its value told.
	mistrust = 30 * time.Second
)

// Pace decides when a process looks at a keeper's value, what that value dates, and when the process reads Redis
// itself. It has no clock and does no I/O, so that a fleet can be simulated. P is what was here before a look.
// [Pace.Expected] may be called concurrently, all else by one goroutine.
//
// A keeper takes the serial k before it reads, and publishes what it has read as k+1 only if the serial is still k. So
// the reading of j began after j-1 was published, and that was after a look here that showed j-2 or less: what this
// process had before that look, Redis had before the reading. Such a look is the time of the reading.
type Pace[P any] struct {
	older     uint64         // by how much lower the serial of a look is that was before the reading: 2
	random    func() float64 // from 0 to less than 1
	looks     []Look[P]      // that may date a later value, oldest first
	next      time.Time      // of the next look
	seen      atomic.Int64   // when a value last dated a reading that Redis did not refute, in Unix nanoseconds; 0: never
	every     time.Duration  // of the keeper
	selfCheck time.Duration  // of this process
}

// Look is what was here before a look at the keeper's value, which then showed a serial.
type Look[P any] struct {
	Serial uint64
	At     time.Time
	Before P
}

// NewPace returns the pace of a process that has heard no keeper yet. random returns numbers from 0 to less than 1.
func NewPace[P any](random func() float64) *Pace[P] {
	p := &Pace[P]{older: 2, random: random}
	p.selfCheck = p.jitter(SelfCheckEvery)
	return p
}

// jitter returns d, give or take a tenth.
func (p *Pace[P]) jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.9 + 0.2*p.random()))
}

// Poll returns the time until Redis is read again.
func (p *Pace[P]) Poll(every time.Duration) time.Duration { return p.jitter(every) }

// Next returns when the next look is due.
func (p *Pace[P]) Next() time.Time { return p.next }

// Expected returns whether a keeper is there, or was until lately: no rows are compared then.
func (p *Pace[P]) Expected(now time.Time) bool {
	seen := p.seen.Load()
	return seen != 0 && now.Sub(time.Unix(0, seen)).Abs() < keeperReturns // a clock may go back
}

// Missed records a look that found no value of a keeper.
func (p *Pace[P]) Missed(at time.Time) {
	p.forget(at)
	if p.next = at.Add(p.jitter(findKeeperEvery)); p.Expected(at) {
		p.next = at.Add(p.jitter(max(p.every, time.Second)))
	}
}

// Heard records a keeper's value and interval, and returns the look that counts as its reading's time; nil: none.
func (p *Pace[P]) Heard(now Look[P], every time.Duration) (before *Look[P]) {
	p.forget(now.At)
	p.every, p.next = every, now.At.Add(p.jitter(every))
	if before = p.take(now); before == nil || now.At.Sub(before.At) > p.stale() {
		return nil
	}
	return before
}

// Used notes that a value has dated a reading.
func (p *Pace[P]) Used(at time.Time) { p.seen.Store(at.UnixNano()) }

// Refuted notes that Redis has something else than the value: the keeper is not heard for some time.
func (p *Pace[P]) Refuted(now time.Time) { p.looks, p.next = nil, now.Add(p.jitter(mistrust)) }

// Spared returns until when Redis is not asked about boards that a value has confirmed, as of a look.
func (p *Pace[P]) Spared(before time.Time) time.Time {
	return before.Add(p.stale() + time.Duration(p.random()*float64(ownReadings)))
}

// SelfCheck returns whether a board that this process asked Redis about last is due though a keeper confirms it.
func (p *Pace[P]) SelfCheck(asked, now time.Time) bool { return now.Sub(asked) > p.selfCheck }

// Alone returns when Redis is asked again about a board; zero: at the next poll. A keeper expected back: later.
func (p *Pace[P]) Alone(read time.Time) time.Time {
	if !p.Expected(read) {
		return time.Time{}
	}
	return read.Add(p.jitter(ownReadings))
}

// take adds a look with a serial, and returns the latest before it that is older than the serial's reading; nil: none,
// or a known serial. A lower serial is another history: former looks date nothing.
func (p *Pace[P]) take(now Look[P]) (before *Look[P]) {
	if last := len(p.looks) - 1; last >= 0 {
		switch shown := p.looks[last].Serial; {
		case now.Serial < shown:
			p.looks = nil
		case now.Serial == shown:
			p.looks[last] = now
			return nil
		}
	}
	p.looks = append(p.looks, now)
	for i := range slices.Backward(p.looks) {
		if now.Serial >= p.older && p.looks[i].Serial <= now.Serial-p.older {
			p.looks = p.looks[i:]
			return &p.looks[0]
		}
	}
	return nil
}

// forget drops looks that are too old to date a value: they hold boards.
func (p *Pace[P]) forget(now time.Time) {
	p.looks = slices.DeleteFunc(p.looks, func(l Look[P]) bool { return now.Sub(l.At) > p.stale() })
	if len(p.looks) == 0 {
		p.looks = nil
	}
}

// stale is the age from which on states are of no use.
func (p *Pace[P]) stale() time.Duration { return max(staleStates, 5*p.every) }
