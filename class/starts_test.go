package class

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func TestStarts(t *testing.T) {
	at := func(hour, minute int) time.Duration {
		return time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute
	}
	for _, c := range []struct {
		period, tz      string
		starts          time.Duration
		at              string
		tag, start, end string
	}{
		{"day", "Asia/Shanghai", at(5, 0), "2026-11-22T04:59:59+08:00", "20261121", "2026-11-21T05:00:00+08:00", "2026-11-22T05:00:00+08:00"},
		{"day", "Asia/Shanghai", at(5, 0), "2026-11-22T05:00:00+08:00", "20261122", "2026-11-22T05:00:00+08:00", "2026-11-23T05:00:00+08:00"},
		{"week", "Asia/Shanghai", at(5, 0), "2026-11-23T04:59:59+08:00", "2026W47", "2026-11-16T05:00:00+08:00", "2026-11-23T05:00:00+08:00"},
		{"month", "UTC", at(23, 59), "2026-12-01T12:00:00Z", "202611", "2026-11-01T23:59:00Z", "2026-12-01T23:59:00Z"},
		{"year", "UTC", at(5, 0), "2027-01-01T04:00:00Z", "2026", "2026-01-01T05:00:00Z", "2027-01-01T05:00:00Z"},

		// Days of 23 and 25 hours, before and behind the change of the clocks.
		{"day", "Europe/Berlin", at(5, 0), "2026-03-29T00:00:00Z", "20260328", "2026-03-28T05:00:00+01:00", "2026-03-29T05:00:00+02:00"},
		{"day", "Europe/Berlin", at(1, 0), "2026-03-29T12:00:00Z", "20260329", "2026-03-29T01:00:00+01:00", "2026-03-30T01:00:00+02:00"},
		{"day", "Europe/Berlin", at(5, 0), "2026-10-25T00:00:00Z", "20261024", "2026-10-24T05:00:00+02:00", "2026-10-25T05:00:00+01:00"},
		// 02:30 is left out: the clock goes from 02:00 to 03:00.
		{"day", "Europe/Berlin", at(2, 30), "2026-03-29T01:00:00Z", "20260329", "2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"},
		{"day", "Europe/Berlin", at(2, 30), "2026-03-29T00:59:59Z", "20260328", "2026-03-28T02:30:00+01:00", "2026-03-29T03:00:00+02:00"},
		// 02:30 comes twice: the first one counts, the second one begins nothing.
		{"day", "Europe/Berlin", at(2, 30), "2026-10-25T00:30:00Z", "20261025", "2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"},
		{"day", "Europe/Berlin", at(2, 30), "2026-10-25T01:15:00Z", "20261025", "2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"},
		// 23:30 comes twice, as the clock goes back at midnight.
		{"day", "Asia/Beirut", at(23, 30), "2026-10-24T21:15:00Z", "20261024", "2026-10-24T23:30:00+03:00", "2026-10-25T23:30:00+02:00"},
		// The last hour of a Saturday is left out: the next date begins at once.
		{"day", "America/Nuuk", at(23, 30), "2026-03-29T01:00:00Z", "20260328", "2026-03-29T00:00:00-01:00", "2026-03-29T23:30:00-01:00"},
		// A date is left out.
		{"day", "Pacific/Apia", at(5, 0), "2011-12-30T12:00:00Z", "20111229", "2011-12-29T05:00:00-10:00", "2011-12-31T05:00:00+14:00"},
	} {
		p, err := starting(t, c.period, c.tz, c.starts).At(instant(t, c.at))
		if err != nil || p.Tag != c.tag || p.Start.Format(time.RFC3339) != c.start || p.End.Format(time.RFC3339) != c.end {
			t.Errorf("%s in %s from %v at %s: %s from %s to %s, %v; want %s from %s to %s", c.period, c.tz, c.starts, c.at,
				p.Tag, p.Start.Format(time.RFC3339), p.End.Format(time.RFC3339), err, c.tag, c.start, c.end)
		}
	}
}

// TestStartsByTheClock compares the starts of days, half of them near a change of the zone's offset, with
// a clock that is looked at each minute.
func TestStartsByTheClock(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	for _, tz := range append(zones, "America/Nuuk") {
		for range 8 {
			starts := time.Duration(random.IntN(24*60)) * time.Minute
			c := starting(t, "day", tz, starts)
			p, err := c.At(randomTime(random, c.zone).Add(72 * time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			midnight, err := calendar(t, "day", tz).Parse(p.Tag)
			if err != nil {
				t.Fatalf("%s in %s: %v", p.Tag, tz, err)
			}
			want := midnight.Start
			for date := want.Format(time.DateOnly); want.Format(time.DateOnly) == date && want.Format("15:04") < c.zone.startsAs(); {
				want = want.Add(time.Minute - time.Duration(want.Second())*time.Second)
			}
			if got := p.Start; !got.Equal(want) && got.Sub(want).Abs() >= time.Minute { // some old offsets have seconds
				t.Errorf("%s of %v in %s begins at %v, want %v", p.Tag, starts, tz, got, want)
			}
		}
	}
}

func (z zone) startsAs() string {
	return fmt.Sprintf("%02d:%02d", z.starts/time.Hour, z.starts%time.Hour/time.Minute)
}

func TestStartsOfOtherPeriods(t *testing.T) {
	for _, period := range []string{"none", "1h", "30m"} {
		if _, err := calendar(t, period, "UTC").Starting(time.Hour); err == nil || !strings.Contains(err.Error(), "periods of "+period) {
			t.Errorf("%s: %v", period, err)
		}
	}
	day, five := calendar(t, "day", "UTC"), starting(t, "day", "UTC", 5*time.Hour)
	if day.Starts() != "" || five.Starts() != "05:00" {
		t.Errorf("%q, %q", day.Starts(), five.Starts())
	}
	week := starting(t, "week", "UTC", 5*time.Hour)
	if five.Within(calendar(t, "week", "UTC")) || day.Within(week) || calendar(t, "30m", "UTC").Within(five) || !five.Within(week) || !five.Within(calendar(t, "none", "UTC")) {
		t.Error("periods lie in those that begin at another time")
	}
}

func TestWeeksBeginOnAnyDay(t *testing.T) {
	for _, c := range []struct{ tz, starts, at, tag, start, end string }{
		// Sunday 22 November 2026 is of ISO week 47.
		{"Asia/Shanghai", "sunday 20:00", "2026-11-22T19:59:59+08:00", "2026W46", "2026-11-15T20:00:00+08:00", "2026-11-22T20:00:00+08:00"},
		{"Asia/Shanghai", "sunday 20:00", "2026-11-22T20:00:00+08:00", "2026W47", "2026-11-22T20:00:00+08:00", "2026-11-29T20:00:00+08:00"},
		{"UTC", "tuesday 08:00", "2026-11-24T07:59:59Z", "2026W47", "2026-11-17T08:00:00Z", "2026-11-24T08:00:00Z"},
		{"UTC", "tuesday 08:00", "2026-11-24T08:00:00Z", "2026W48", "2026-11-24T08:00:00Z", "2026-12-01T08:00:00Z"},
		{"UTC", "sunday 00:00", "2026-11-28T23:59:59Z", "2026W47", "2026-11-22T00:00:00Z", "2026-11-29T00:00:00Z"},
		// 2026 has 53 weeks, the last of which has days of 2027: what begins then is of the year before.
		{"UTC", "friday 00:00", "2027-01-02T00:00:00Z", "2026W53", "2027-01-01T00:00:00Z", "2027-01-08T00:00:00Z"},
		// The clock is set on Sundays: the week that begins before is an hour shorter, that behind another longer.
		{"Europe/Berlin", "sunday 01:00", "2026-03-29T12:00:00Z", "2026W13", "2026-03-29T01:00:00+01:00", "2026-04-05T01:00:00+02:00"},
		{"Europe/Berlin", "sunday 02:30", "2026-03-29T00:59:59Z", "2026W12", "2026-03-22T02:30:00+01:00", "2026-03-29T03:00:00+02:00"},
		{"UTC", "monday 05:00", "2026-11-23T04:59:59Z", "2026W47", "2026-11-16T05:00:00Z", "2026-11-23T05:00:00Z"},
	} {
		starts, err := ParseStarts(c.starts)
		if err != nil {
			t.Fatal(err)
		}
		weeks := starting(t, "week", c.tz, starts)
		if told := weeks.Starts(); told != strings.TrimPrefix(c.starts, "monday ") {
			t.Errorf("%s is told as %q", c.starts, told)
		}
		p, err := weeks.At(instant(t, c.at))
		if err != nil || p.Tag != c.tag || p.Start.Format(time.RFC3339) != c.start || p.End.Format(time.RFC3339) != c.end {
			t.Errorf("%s in %s at %s: %s from %s to %s, %v; want %s from %s to %s", c.starts, c.tz, c.at,
				p.Tag, p.Start.Format(time.RFC3339), p.End.Format(time.RFC3339), err, c.tag, c.start, c.end)
		}
	}
	for _, period := range []string{"day", "month", "year"} {
		if _, err := calendar(t, period, "UTC").Starting(25 * time.Hour); err == nil || !strings.Contains(err.Error(), "no day of the week") {
			t.Errorf("%s: %v", period, err)
		}
	}
}

// TestWeeksOfEachDayGoOn: weeks that begin on any day of any zone follow each other, and are told by their tags.
func TestWeeksOfEachDayGoOn(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	for _, tz := range zones {
		for weekday := range 7 {
			starts := time.Duration(weekday)*24*time.Hour + time.Duration(random.IntN(24*60))*time.Minute
			c := starting(t, "week", tz, starts)
			at := randomTime(random, c.zone)
			p, err := c.At(at)
			if err != nil {
				t.Fatal(err)
			}
			named, err := c.Parse(p.Tag)
			next, none := c.Next(p)
			before, lacking := c.Previous(next)
			if err != nil || none != nil || lacking != nil || !named.Is(p) || !before.Is(p) || !next.Start.Equal(p.End) || next.Tag <= p.Tag || at.Before(p.Start) || !at.Before(p.End) {
				t.Errorf("%s %s at %v: %v, named %v %v, next %v %v, previous %v %v", tz, c.Starts(), at, p, named, err, next, none, before, lacking)
			}
			day, err := starting(t, "day", tz, starts%(24*time.Hour)).At(p.Start)
			date, _ := time.Parse("20060102", day.Tag)
			if crossed := tz == "Pacific/Apia" || tz == "Pacific/Kwajalein"; err == nil && !crossed && (!day.Start.Equal(p.Start) || int(date.Weekday()+6)%7 != weekday) {
				t.Errorf("%s %s: begins on %v, a day on %v, %v", tz, c.Starts(), p.Start, day.Start, date.Weekday())
			}
		}
	}
}
