package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"rankcache/class"
)

// Values of the argument at, beside times and tags.
const (
	atNow      = "now"
	atPrevious = "previous"
)

// periodState is where the clock is in a period's life.
type periodState uint8

const (
	periodUpcoming periodState = iota
	periodRunning
	periodEnded
	periodOver // and its grace
	periodGone // ended longer ago than its boards are kept
)

func (s periodState) String() string {
	return [...]string{"upcoming", "running", "ended", "ended", "gone"}[s]
}

// classPeriod is one period of a class as answers show it. It is immutable.
type classPeriod struct {
	class.Period
	state periodState
	// The argument that named the period names it, in the same state, from one instant
	// until before another. A zero until is never.
	from, until time.Time
	tail        []byte // of an answer's object, until the board's life
}

// named reports whether at still names the period, and its state is the same.
func (p *classPeriod) named(now time.Time) bool {
	return !now.Before(p.from) && (p.until.IsZero() || now.Before(p.until))
}

// periodAt returns the period that at names. Those of now and previous are kept until
// the running period ends.
func (k *knownClass) periodAt(at string, now time.Time) (*classPeriod, error) {
	var kept *atomic.Pointer[classPeriod]
	switch at {
	case atNow:
		kept = &k.running
	case atPrevious:
		kept = &k.previous
	}
	if kept != nil {
		if p := kept.Load(); p != nil && p.named(now) {
			return p, nil
		}
	}
	p, err := k.findPeriod(at, now)
	if err == nil && kept != nil {
		kept.Store(p)
	}
	return p, err
}

// before returns the period before p, whose state is of now.
func (k *knownClass) before(p *classPeriod, now time.Time) (class.Period, error) {
	if p.state != periodRunning || !k.Calendar().Periodic() {
		return k.Calendar().Previous(p.Period)
	}
	previous, err := k.periodAt(atPrevious, now)
	if err != nil {
		return class.Period{}, err
	}
	return previous.Period, nil
}

func (k *knownClass) findPeriod(at string, now time.Time) (*classPeriod, error) {
	calendar := k.Calendar()
	if !calendar.Periodic() {
		if at != atNow {
			return nil, errors.New("the class has no periods: leave it out")
		}
		return k.show(class.Period{}, periodRunning)
	}
	if at != atNow && at != atPrevious {
		found, err := parseAt(calendar, at)
		if err != nil {
			return nil, err
		}
		return k.withState(found, now)
	}
	running, err := calendar.At(now)
	found := running
	if err == nil && at == atPrevious {
		found, err = calendar.Previous(running)
	}
	if err != nil {
		return nil, err
	}
	return k.withState(found, now, running.Start, running.End)
}

// parseAt returns the period of a time or of a tag.
func parseAt(calendar class.Calendar, at string) (class.Period, error) {
	if t, err := time.Parse(time.RFC3339, at); err == nil {
		return calendar.At(t)
	}
	p, err := calendar.Parse(at)
	if err != nil {
		return p, fmt.Errorf("is %.40q: want now, previous, a time as in RFC 3339 (+ is %%2B) or a tag of the class", at)
	}
	return p, nil
}

// withState returns the period with its state of now. At further instants at names another
// period.
func (k *knownClass) withState(found class.Period, now time.Time, further ...time.Time) (*classPeriod, error) {
	state := periodUpcoming
	over, gone := found.End.Add(k.Grace), found.End.Add(k.Keep)
	for _, instant := range []time.Time{found.Start, found.End, over, gone} {
		if !now.Before(instant) {
			state++
		}
	}
	p, err := k.show(found, state)
	for _, instant := range append(further, found.Start, found.End, over, gone) {
		switch {
		case now.Before(instant) && (p.until.IsZero() || instant.Before(p.until)):
			p.until = instant
		case !now.Before(instant) && p.from.Before(instant):
			p.from = instant
		}
	}
	return p, err
}

// periodRow is a period in JSON.
type periodRow struct {
	Tag   string    `json:"tag"`
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
	State string    `json:"state"`
}

// row returns nil for what a class without periods has in their place.
func (p *classPeriod) row() *periodRow {
	if p.Tag == "" {
		return nil
	}
	return &periodRow{p.Tag, p.Start, p.End, p.state.String()}
}

// show returns the period with what answers say of it.
func (k *knownClass) show(found class.Period, state periodState) (*classPeriod, error) {
	p := &classPeriod{Period: found, state: state}
	tail, err := json.Marshal(struct {
		Class  string     `json:"class"`
		Period *periodRow `json:"period"`
	}{k.Name(), p.row()})
	if err == nil {
		tail[0] = ','
		p.tail = append(tail[:len(tail)-1], `,"locked":"`...)
	}
	return p, err
}
