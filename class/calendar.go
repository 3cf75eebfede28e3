package class

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // images have no zone files
)

var ErrPeriod = errors.New("no such period") // reports a time or a tag that has no period in a calendar

// Years of tags, of four digits. The last period must end before 10000, which JSON and protobuf have no text for.
const minYear, maxYear = 1970, 9998

// Period is one stretch of time of a calendar: Start is in it, End begins the next one. Zero: there are no periods.
type Period struct {
	Tag        string
	Start, End time.Time // in the calendar's zone
}

type unit uint8 // what a period is, or is a part of

const (
	none unit = iota
	part      // of a day
	hour
	day
	week // ISO 8601: named after that in which it begins, on any day of it
	month
	year
	season // with a name of its own
)

// Calendar divides time into periods: each instant is in exactly one, and each begins where the one before it ends.
// Only between seasons there may be gaps. The zero value has no periods. It is immutable.
type Calendar struct {
	unit    unit
	length  time.Duration // of a part or an hour
	digits  int           // of a part's number
	zone    zone
	weekday date // on which weeks begin, after Monday
	seasons Seasons
}

var units = map[string]unit{"none": none, "1h": hour, "day": day, "week": week, "month": month, "year": year}

// NewCalendar returns the calendar of a period (none, 1h, day, week, month, year, or a duration that divides a day,
// such as 30m) in an IANA time zone. Where the system has no zone files, those in the binary are used.
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

// PartsOfDay returns a calendar whose periods last length, of whole seconds, which divides a day. Unlike [NewCalendar]
// it takes less than a minute, for tests and the demo, which wait for the end of a period.
func PartsOfDay(length time.Duration, tz string) (Calendar, error) {
	switch {
	case length == time.Hour:
		return Calendar{}, errors.New("period of an hour: write 1h")
	case length == fullDay:
		return Calendar{}, errors.New("period of 24 hours: write day")
	case length < time.Second || length%time.Second != 0 || fullDay%length != 0:
		return Calendar{}, fmt.Errorf("period %v does not divide a day into equal parts of whole seconds", length)
	}
	z, err := loadZone(tz)
	return Calendar{unit: part, length: length, digits: partDigits(length), zone: z}, err
}

// Starting returns the calendar whose days, weeks, months or years begin at the first instant at which the zone's clock
// shows starts or later, such as 5h, on their first date; weeks up to 7 days after Monday. Tags stay that date's.
func (c Calendar) Starting(starts time.Duration) (Calendar, error) {
	if c.unit < day || c.unit > year {
		return c, fmt.Errorf("starts: periods of %s have none: want day, week, month or year", c)
	}
	if c.weekday = date(starts / fullDay); c.weekday > 0 && c.unit != week {
		return c, fmt.Errorf("starts: periods of %s have no day of the week: want a time of the day", c)
	}
	c.zone.starts = starts % fullDay
	return c, nil
}

// Starts returns when its days begin, as 05:00, or its weeks, as sunday 20:00; "": at midnight, on Monday.
func (c Calendar) Starts() string {
	clock := time.Unix(0, 0).UTC().Add(c.zone.starts).Format("15:04")
	switch {
	case c.weekday > 0:
		return strings.ToLower(time.Weekday((c.weekday+1)%7).String()) + " " + clock
	case c.zone.starts > 0:
		return clock
	}
	return ""
}

// ParseStarts returns what [Calendar.Starting] takes from a time of the day, such as 05:00 or "sunday 20:00".
func ParseStarts(text string) (time.Duration, error) {
	days, shown := time.Duration(0), text
	if name, clock, both := strings.Cut(text, " "); both {
		shown = clock
		for days < 7 && name != strings.ToLower(time.Weekday((days+1)%7).String()) {
			days++
		}
	}
	clock, err := time.Parse("15:04", shown)
	if err != nil || len(shown) != len("15:04") || days == 7 {
		return 0, fmt.Errorf("starts %.40q: want a time of the day from 00:00 to 23:59, for weeks also with a day, as sunday 20:00", text)
	}
	return days*fullDay + time.Duration(clock.Hour())*time.Hour + time.Duration(clock.Minute())*time.Minute, nil
}

func (c Calendar) firstDay(d date) date { return (d - c.weekday).first(c.unit) + c.weekday }

// String returns the period as [NewCalendar] takes it, or seasons; equal ones have equal texts.
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
	case c.unit == none || c.unit == season || c.Zone() != outer.Zone() || c.zone.starts != outer.zone.starts || c.unit == week && c.weekday != outer.weekday:
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
		return n * fullDay
	}
	if c.unit == none {
		return 0
	}
	return c.length
}

// Periodic reports whether the calendar has periods.
func (c Calendar) Periodic() bool { return c.unit != none }

// At returns the period that t is in. The error wraps [ErrPeriod] beyond 1970 to 9998; it is a [*Gap] between seasons.
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
	first := c.firstDay(date)
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
