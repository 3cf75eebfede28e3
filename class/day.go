package class

import (
	"errors"
	"fmt"
	"time"
)

type date int // a calendar day as a number of days since 1970-01-01

const (
	fullDay       = 24 * time.Hour
	secondsPerDay = 24 * 60 * 60
)

func dateFrom(y int, m time.Month, d int) date {
	return date(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / secondsPerDay)
}

func (d date) civil() time.Time { return time.Unix(int64(d)*secondsPerDay, 0).UTC() }

// first returns the first day of the day's week, month or year; the day itself for what is not longer than a day.
func (d date) first(u unit) date {
	civil := d.civil()
	switch u {
	case week:
		return d - date(civil.Weekday()+6)%7
	case month:
		return dateFrom(civil.Year(), civil.Month(), 1)
	case year:
		return dateFrom(civil.Year(), time.January, 1)
	}
	return d
}

// next returns the first day after the week, month, year or day that begins with d.
func (d date) next(u unit) date {
	civil := d.civil()
	switch u {
	case week:
		return d + 7
	case month:
		return dateFrom(civil.Year(), civil.Month()+1, 1)
	case year:
		return dateFrom(civil.Year()+1, time.January, 1)
	}
	return d + 1
}

// year returns the year in the tag of a period that begins with d.
func (d date) year(u unit) int {
	civil := d.civil()
	if u == week {
		y, _ := civil.ISOWeek()
		return y
	}
	return civil.Year()
}

// zone is a time zone in which days have a first instant.
type zone struct {
	*time.Location
	starts time.Duration // of days, by the clock; 0: midnight
}

func loadZone(name string) (zone, error) {
	if name == "" || name == "Local" { // time.LoadLocation takes both
		return zone{}, errors.New("time zone is missing: want an IANA name such as Asia/Shanghai, or UTC")
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return zone{}, fmt.Errorf("time zone %.40q: want an IANA name such as Asia/Shanghai, or UTC: %.100w", name, err)
	}
	return zone{Location: loc}, nil
}

// begin returns the first instant of a day: at which the clock shows its start or later on d or, if the zone left that
// out, the next day. A clock that is set back over the start does not begin the day again.
func (z zone) begin(d date) time.Time {
	midnight := z.first(int64(d) * secondsPerDay)
	if z.starts == 0 {
		return midnight
	}
	return z.first(int64(dateFrom(midnight.Date()))*secondsPerDay + int64(z.starts/time.Second))
}

// first returns the first instant at which the zone's clock shows what UTC's shows at a Unix time, or a later time.
func (z zone) first(clock int64) time.Time {
	t := time.Unix(clock-secondsPerDay, 0).In(z.Location) // offsets are less than a day: it is not reached
	for {
		_, offset := t.Zone()
		_, end := t.ZoneBounds()
		if !end.IsZero() && !end.After(t) { // from 2040 on, Go 1.26 ends leap years a day early
			end = t.Add(time.Hour)
		}
		first := max(t.Unix(), clock-int64(offset))
		if end.IsZero() || first < end.Unix() {
			return time.Unix(first, 0).In(z.Location)
		}
		t = end
	}
}

// dateOf returns the day that t is in: the last one that has begun.
func (z zone) dateOf(t time.Time) date {
	local := t.In(z.Location)
	d := dateFrom(local.Date())
	for !z.begin(d + 1).After(t) { // clocks were set back over midnight
		d++
	}
	for z.starts > 0 && z.begin(d).After(t) {
		d--
	}
	return d
}
