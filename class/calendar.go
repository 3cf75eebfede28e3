package class

import (
	"errors"
	"fmt"
	"slices"
	"time"
	_ "time/tzdata" // images have no zone files
)

// ErrPeriod reports a time or a tag that has no period in a calendar.
var ErrPeriod = errors.New("no such period")

// Years that tags can name, so that they have four digits.
// Years of tags. The last period must end before the year 10000, which JSON and protobuf have no
// text for.
const minYear, maxYear = 1970, 9998

// Period is one stretch of time of a calendar: Start is in it, End begins the next
// one. The period of a calendar without periods is the zero Period.
type Period struct {
	Tag        string
	Start, End time.Time // in the calendar's zone
}

// unit is what a period is, or is a part of.
type unit uint8

const (
	none unit = iota
	part      // of a day
	hour
	day
	week // ISO 8601: from Monday
	month
	year
	season // with a name of its own
)

// Calendar divides time into periods: each instant is in exactly one, and each
// begins where the one before it ends. Only between seasons there may be gaps. The zero
// value has no periods. It is immutable.
type Calendar struct {
	unit    unit
	length  time.Duration // of a part or an hour
	digits  int           // of a part's number
	zone    zone
	seasons Seasons
}

var units = map[string]unit{"none": none, "1h": hour, "day": day, "week": week, "month": month, "year": year}

// NewCalendar returns the calendar of a period (none, 1h, day, week, month, year, or
// a duration that divides a day, such as 30m) in an IANA time zone. Where the
// system has no zone files, those in the binary are used.
func NewCalendar(period, tz string) (Calendar, error) {
	u, known := units[period]
	if !known {
		length, err := time.ParseDuration(period)
		if err != nil {
			return Calendar{}, fmt.Errorf("period %.40q: want none, a divisor of a day such as 30m, 1h, day, week, month or year", period)
		}
		if length < time.Minute {
			return Calendar{}, fmt.Errorf("period %s: want at least 1m", period)
		}
		return PartsOfDay(length, tz)
	}
	z, err := loadZone(tz)
	return Calendar{unit: u, length: time.Hour, zone: z}, err
}

// PartsOfDay returns a calendar whose periods last length, of whole seconds, which
// divides a day. Unlike [NewCalendar] it takes less than a minute, for tests and the
// demo, which wait for the end of a period.
func PartsOfDay(length time.Duration, tz string) (Calendar, error) {
	switch {
	case length == time.Hour:
		return Calendar{}, errors.New("period of an hour: write 1h")
	case length == 24*time.Hour:
		return Calendar{}, errors.New("period of 24 hours: write day")
	case length < time.Second || length%time.Second != 0 || 24*time.Hour%length != 0:
		return Calendar{}, fmt.Errorf("period %v does not divide a day into equal parts of whole seconds", length)
	}
	z, err := loadZone(tz)
	return Calendar{unit: part, length: length, digits: partDigits(length), zone: z}, err
}

// Starting returns the calendar whose days, weeks, months or years begin with the first instant at which
// the clock of the zone shows starts or later, such as 5h for 05:00, on their first date. Their tags stay
// those of that date.
func (c Calendar) Starting(starts time.Duration) (Calendar, error) {
	if c.unit < day || c.unit > year {
		return c, fmt.Errorf("starts: periods of %s have none: want day, week, month or year", c)
	}
	c.zone.starts = starts
	return c, nil
}

// Starts returns when its days begin, as 05:00; "": at midnight.
func (c Calendar) Starts() string {
	if c.zone.starts == 0 {
		return ""
	}
	return time.Unix(0, 0).UTC().Add(c.zone.starts).Format("15:04")
}

// String returns the period as [NewCalendar] takes it, or seasons; equal ones that begin at the same
// time have equal texts.
func (c Calendar) String() string {
	switch {
	case c.unit == season:
		return "seasons"
	case c.unit != part:
		for name, u := range units {
			if u == c.unit {
				return name
			}
		}
	case c.length%time.Hour == 0:
		return fmt.Sprintf("%dh", c.length/time.Hour)
	case c.length%time.Minute == 0:
		return fmt.Sprintf("%dm", c.length/time.Minute)
	}
	return fmt.Sprintf("%ds", c.length/time.Second)
}

// Zone returns the name of the calendar's time zone.
func (c Calendar) Zone() string { return c.zone.String() }

// Is reports whether two periods have the same tag and times.
func (p Period) Is(other Period) bool {
	return p.Tag == other.Tag && p.Start.Equal(other.Start) && p.End.Equal(other.End)
}

// Within reports whether each period of c lies in one period of outer.
func (c Calendar) Within(outer Calendar) bool {
	switch {
	case outer.unit == none:
		return true
	case outer.unit == season:
		return slices.EqualFunc(c.seasons, outer.seasons, Period.Is)
	case c.unit == none || c.unit == season || c.Zone() != outer.Zone() || c.zone.starts != outer.zone.starts:
		return false
	case outer.unit <= hour:
		return c.unit <= hour && outer.length%c.length == 0
	}
	return c.unit <= day || c.unit == outer.unit || c.unit == month && outer.unit == year
}

// Length returns how long a period is usually: a month has 31 days, a year 366; 0 without periods.
func (c Calendar) Length() time.Duration {
	days := map[unit]time.Duration{day: 1, week: 7, month: 31, year: 366}
	if n := days[c.unit]; n > 0 {
		return n * 24 * time.Hour
	}
	if c.unit == none {
		return 0
	}
	return c.length
}

// Periodic reports whether the calendar has periods.
func (c Calendar) Periodic() bool { return c.unit != none }

// At returns the period that t is in. The error wraps [ErrPeriod] if its tag has no
// year from 1970 to 9998, and is a [*Gap] between seasons.
func (c Calendar) At(t time.Time) (Period, error) {
	switch c.unit {
	case none:
		return Period{}, nil
	case season:
		return c.seasons.at(t.In(c.zone.Location))
	}
	if y := t.Year(); y < minYear-1 || y > maxYear+1 {
		return Period{}, fmt.Errorf("%w: the year %d is not from %d to %d", ErrPeriod, y, minYear, maxYear)
	}
	date := c.zone.dateOf(t)
	first := date.first(c.unit)
	p := Period{Start: c.zone.begin(first), End: c.zone.begin(first.next(c.unit))}
	n := 0
	if c.unit <= hour {
		n = int(t.Sub(p.Start) / c.length)
		p.Start = p.Start.Add(time.Duration(n) * c.length)
		if end := p.Start.Add(c.length); end.Before(p.End) {
			p.End = end
		}
	}
	if y := first.year(c.unit); y < minYear || y > maxYear {
		return Period{}, fmt.Errorf("%w: the year %d is not from %d to %d", ErrPeriod, y, minYear, maxYear)
	}
	p.Tag = c.tag(first, n)
	return p, nil
}

// Following returns the first period that begins after t. Without one the error wraps [ErrPeriod].
func (c Calendar) Following(t time.Time) (Period, error) {
	if c.unit == season {
		return c.seasons.following(t.In(c.zone.Location))
	}
	p, err := c.periodAt(t)
	if err != nil {
		return p, err
	}
	return c.At(p.End)
}

// Ended returns the latest period that has ended by t. Without one the error wraps [ErrPeriod].
func (c Calendar) Ended(t time.Time) (Period, error) {
	if c.unit == season {
		return c.seasons.ended(t.In(c.zone.Location))
	}
	p, err := c.periodAt(t)
	if err != nil {
		return p, err
	}
	return c.At(p.Start.Add(-1))
}

func (c Calendar) periodAt(t time.Time) (Period, error) {
	if c.unit == none {
		return Period{}, fmt.Errorf("%w: the class has no periods", ErrPeriod)
	}
	return c.At(t)
}

// Next returns the period after p. Without one the error wraps [ErrPeriod].
func (c Calendar) Next(p Period) (Period, error) { return c.Following(p.Start) }

// Previous returns the period before p. Without one the error wraps [ErrPeriod].
func (c Calendar) Previous(p Period) (Period, error) { return c.Ended(p.Start) }
