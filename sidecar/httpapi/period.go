package httpapi

import (
	"sync/atomic"
	"time"

	"rankcache/class"
	"rankcache/rooms"
	"rankcache/sidecar/encode"
)

// classPeriod is one period of a class as answers show it. It is immutable.
type classPeriod struct {
	rooms.NamedPeriod
	tail []byte // of an answer's object, until the board's life
}

// periodAt returns the period that at names. Those of now and previous are kept until
// the running period ends.
func (k *knownClass) periodAt(at string, now time.Time) (*classPeriod, error) {
	var kept *atomic.Pointer[classPeriod]
	switch at {
	case rooms.Now:
		kept = &k.running
	case rooms.Previous:
		kept = &k.previous
	}
	if kept != nil {
		if p := kept.Load(); p != nil && p.Holds(now) {
			return p, nil
		}
	}
	named, err := k.PeriodAt(at, now)
	if err != nil {
		return nil, err
	}
	p := &classPeriod{named, encode.ClassTail(k.Name(), named.Period, named.State)}
	if kept != nil {
		kept.Store(p)
	}
	return p, nil
}

// before returns the period before p, whose state is of now.
func (k *knownClass) before(p *classPeriod, now time.Time) (class.Period, error) {
	if p.State != rooms.PeriodRunning || !k.Calendar().Periodic() {
		return k.Calendar().Previous(p.Period)
	}
	previous, err := k.periodAt(rooms.Previous, now)
	if err != nil {
		return class.Period{}, err
	}
	return previous.Period, nil
}
