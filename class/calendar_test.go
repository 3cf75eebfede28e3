package class

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func calendar(t testing.TB, period, tz string) Calendar {
	t.Helper()
	c, err := NewCalendar(period, tz)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func starting(t testing.TB, period, tz string, starts time.Duration) Calendar {
	t.Helper()
	c, err := calendar(t, period, tz).Starting(starts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func instant(t testing.TB, rfc3339 string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, rfc3339)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestPeriods(t *testing.T) {
	for _, c := range []struct{ period, tz, at, tag, start, end string }{
		{"30m", "Asia/Shanghai", "2026-11-22T08:17:00+08:00", "20261122-17", "2026-11-22T08:00:00+08:00", "2026-11-22T08:30:00+08:00"},
		{"30m", "UTC", "2026-11-22T00:00:00Z", "20261122-01", "2026-11-22T00:00:00Z", "2026-11-22T00:30:00Z"},
		{"30m", "UTC", "2026-11-22T23:59:59.999999999Z", "20261122-48", "2026-11-22T23:30:00Z", "2026-11-23T00:00:00Z"},
		{"1m", "UTC", "2026-11-22T23:59:59Z", "20261122-1440", "2026-11-22T23:59:00Z", "2026-11-23T00:00:00Z"},
		{"15m", "UTC", "2026-11-22T00:20:00Z", "20261122-002", "2026-11-22T00:15:00Z", "2026-11-22T00:30:00Z"},
		{"12h", "UTC", "2026-11-22T13:00:00Z", "20261122-2", "2026-11-22T12:00:00Z", "2026-11-23T00:00:00Z"},
		{"1h", "Asia/Shanghai", "2026-11-22T08:17:00+08:00", "20261122-H08", "2026-11-22T08:00:00+08:00", "2026-11-22T09:00:00+08:00"},
		{"day", "Asia/Shanghai", "2026-11-22T00:00:00+08:00", "20261122", "2026-11-22T00:00:00+08:00", "2026-11-23T00:00:00+08:00"},
		{"month", "UTC", "2026-12-31T23:59:59Z", "202612", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"year", "UTC", "2026-11-22T00:00:00Z", "2026", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"},

		// Leap days.
		{"day", "UTC", "2028-02-29T12:00:00Z", "20280229", "2028-02-29T00:00:00Z", "2028-03-01T00:00:00Z"},
		{"month", "UTC", "2028-02-29T12:00:00Z", "202802", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"},
		{"month", "UTC", "2100-02-28T12:00:00Z", "210002", "2100-02-01T00:00:00Z", "2100-03-01T00:00:00Z"},

		// ISO weeks at a year's end.
		{"week", "UTC", "2026-11-22T12:00:00Z", "2026W47", "2026-11-16T00:00:00Z", "2026-11-23T00:00:00Z"},
		{"week", "UTC", "2027-01-03T23:59:59Z", "2026W53", "2026-12-28T00:00:00Z", "2027-01-04T00:00:00Z"},
		{"week", "UTC", "2024-12-30T00:00:00Z", "2025W01", "2024-12-30T00:00:00Z", "2025-01-06T00:00:00Z"},
		{"week", "UTC", "1970-01-01T00:00:00Z", "1970W01", "1969-12-29T00:00:00Z", "1970-01-05T00:00:00Z"},
		{"week", "UTC", "9998-12-31T00:00:00Z", "9998W53", "9998-12-28T00:00:00Z", "9999-01-04T00:00:00Z"},
		{"week", "America/Sao_Paulo", "2017-10-16T12:00:00Z", "2017W42", "2017-10-16T00:00:00-02:00", "2017-10-23T00:00:00-02:00"},

		// Days of 23, 25, 23.5, 24.5, 26 and 27 hours.
		{"day", "Europe/Berlin", "2026-03-29T12:00:00Z", "20260329", "2026-03-29T00:00:00+01:00", "2026-03-30T00:00:00+02:00"},
		{"1h", "Europe/Berlin", "2026-03-29T01:00:00Z", "20260329-H02", "2026-03-29T03:00:00+02:00", "2026-03-29T04:00:00+02:00"},
		{"30m", "Europe/Berlin", "2026-03-29T21:59:00Z", "20260329-46", "2026-03-29T23:30:00+02:00", "2026-03-30T00:00:00+02:00"},
		{"1h", "Europe/Berlin", "2026-10-25T01:00:00Z", "20261025-H03", "2026-10-25T02:00:00+01:00", "2026-10-25T03:00:00+01:00"},
		{"1h", "Europe/Berlin", "2026-10-25T22:59:00Z", "20261025-H24", "2026-10-25T23:00:00+01:00", "2026-10-26T00:00:00+01:00"},
		{"15m", "Europe/Berlin", "2026-10-25T22:59:00Z", "20261025-100", "2026-10-25T23:45:00+01:00", "2026-10-26T00:00:00+01:00"},
		{"12h", "Europe/Berlin", "2026-10-25T22:59:00Z", "20261025-3", "2026-10-25T23:00:00+01:00", "2026-10-26T00:00:00+01:00"},
		{"1h", "Australia/Lord_Howe", "2026-10-03T15:30:00Z", "20261004-H02", "2026-10-04T02:30:00+11:00", "2026-10-04T03:30:00+11:00"},
		{"1h", "Australia/Lord_Howe", "2026-10-04T12:45:00Z", "20261004-H23", "2026-10-04T23:30:00+11:00", "2026-10-05T00:00:00+11:00"},
		{"1h", "Australia/Lord_Howe", "2027-04-04T13:15:00Z", "20270404-H24", "2027-04-04T23:30:00+10:30", "2027-04-05T00:00:00+10:30"},
		{"15m", "Antarctica/Troll", "2026-10-25T23:59:00Z", "20261025-104", "2026-10-25T23:45:00Z", "2026-10-26T00:00:00Z"},
		{"15m", "Antarctica/Casey", "2010-03-05T15:59:00Z", "20100305-108", "2010-03-05T23:45:00+08:00", "2010-03-06T00:00:00+08:00"},

		// The end of a leap year for which zone files have a rule only.
		{"day", "Europe/Berlin", "2040-12-31T12:00:00Z", "20401231", "2040-12-31T00:00:00+01:00", "2041-01-01T00:00:00+01:00"},
		{"year", "America/New_York", "2040-12-31T12:00:00Z", "2040", "2040-01-01T00:00:00-05:00", "2041-01-01T00:00:00-05:00"},

		// Days that begin at 01:00.
		{"day", "America/Sao_Paulo", "2017-10-15T12:00:00Z", "20171015", "2017-10-15T01:00:00-02:00", "2017-10-16T00:00:00-02:00"},
		{"day", "America/Sao_Paulo", "2017-10-15T02:59:59Z", "20171014", "2017-10-14T00:00:00-03:00", "2017-10-15T01:00:00-02:00"},
		{"1h", "America/Sao_Paulo", "2017-10-15T03:00:00Z", "20171015-H00", "2017-10-15T01:00:00-02:00", "2017-10-15T02:00:00-02:00"},
		{"30m", "Asia/Beirut", "2026-03-28T22:00:00Z", "20260329-01", "2026-03-29T01:00:00+03:00", "2026-03-29T01:30:00+03:00"},
		{"30m", "Asia/Beirut", "2026-10-24T20:30:00Z", "20261024-48", "2026-10-24T23:30:00+03:00", "2026-10-24T23:00:00+02:00"},
		{"30m", "Asia/Beirut", "2026-10-24T21:00:00Z", "20261024-49", "2026-10-24T23:00:00+02:00", "2026-10-24T23:30:00+02:00"},
		{"month", "Africa/Cairo", "2026-04-24T00:00:00Z", "202604", "2026-04-01T00:00:00+02:00", "2026-05-01T00:00:00+03:00"},

		// Midnight comes twice (Havana), and a date comes again for an hour (St. John's).
		{"day", "America/Havana", "2026-11-01T04:30:00Z", "20261101", "2026-11-01T00:00:00-04:00", "2026-11-02T00:00:00-05:00"},
		{"day", "America/Havana", "2026-11-01T05:30:00Z", "20261101", "2026-11-01T00:00:00-04:00", "2026-11-02T00:00:00-05:00"},
		{"day", "America/St_Johns", "2010-11-07T02:30:30Z", "20101107", "2010-11-07T00:00:00-02:30", "2010-11-08T00:00:00-03:30"},
		{"day", "America/St_Johns", "2010-11-07T03:00:00Z", "20101107", "2010-11-07T00:00:00-02:30", "2010-11-08T00:00:00-03:30"},

		// Zones of :30 and :45, and one that left out a day.
		{"1h", "Asia/Kolkata", "2026-11-22T00:00:00Z", "20261122-H05", "2026-11-22T05:00:00+05:30", "2026-11-22T06:00:00+05:30"},
		{"30m", "Asia/Kathmandu", "2026-11-22T00:00:00Z", "20261122-12", "2026-11-22T05:30:00+05:45", "2026-11-22T06:00:00+05:45"},
		{"day", "Pacific/Apia", "2011-12-30T09:59:59Z", "20111229", "2011-12-29T00:00:00-10:00", "2011-12-31T00:00:00+14:00"},
		{"day", "Pacific/Apia", "2011-12-30T10:00:00Z", "20111231", "2011-12-31T00:00:00+14:00", "2012-01-01T00:00:00+14:00"},
	} {
		p, err := calendar(t, c.period, c.tz).At(instant(t, c.at))
		if err != nil || p.Tag != c.tag || p.Start.Format(time.RFC3339) != c.start || p.End.Format(time.RFC3339) != strings.TrimPrefix(c.end, "+") {
			t.Errorf("%s in %s at %s: %s from %s to %s, %v; want %s from %s to %s", c.period, c.tz, c.at,
				p.Tag, p.Start.Format(time.RFC3339), p.End.Format(time.RFC3339), err, c.tag, c.start, c.end)
		}
	}
}

func TestNoPeriods(t *testing.T) {
	c := calendar(t, "none", "UTC")
	p, err := c.At(instant(t, "2026-11-22T00:00:00Z"))
	if p != (Period{}) || err != nil || c.Periodic() {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := c.Next(p); !errors.Is(err, ErrPeriod) {
		t.Errorf("next: %v", err)
	}
	if _, err := c.Previous(p); !errors.Is(err, ErrPeriod) {
		t.Errorf("previous: %v", err)
	}
	if _, err := c.Parse("2026"); !errors.Is(err, ErrPeriod) {
		t.Errorf("a tag: %v", err)
	}
}

// TestWithin compares Within with periods around a year's end and a day of 25 hours.
func TestWithin(t *testing.T) {
	periods := []string{"none", "15m", "30m", "1h", "90m", "6h", "day", "week", "month", "year"}
	for _, inner := range periods {
		for _, outer := range periods {
			c, o := calendar(t, inner, "Europe/Berlin"), calendar(t, outer, "Europe/Berlin")
			if got, want := c.Within(o), lies(t, c, o); got != want {
				t.Errorf("%s within %s: %v, want %v", inner, outer, got, want)
			}
		}
	}
	if calendar(t, "1h", "UTC").Within(calendar(t, "day", "Asia/Shanghai")) {
		t.Error("an hour of another zone lies in a day")
	}
}

// lies looks at some days: does each period of inner end in the period of outer in
// which it begins?
func lies(t *testing.T, inner, outer Calendar) bool {
	if !inner.Periodic() || !outer.Periodic() {
		return !outer.Periodic()
	}
	for _, from := range []string{"2026-12-20T00:00:00Z", "2026-10-23T00:00:00Z"} {
		at := instant(t, from)
		for range 15 * 24 / 5 {
			p, err := inner.At(at)
			o, err2 := outer.At(p.Start)
			if err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
			if p.End.After(o.End) {
				return false
			}
			at = at.Add(5 * time.Hour)
		}
	}
	return true
}

func TestCalendarsAsText(t *testing.T) {
	for period, want := range map[string]string{"none": "none", "1h": "1h", "day": "day", "week": "week", "month": "month", "year": "year",
		"30m": "30m", "1800s": "30m", "120m": "2h", "90m": "90m", "100s": "100s"} {
		if got := calendar(t, period, "UTC").String(); got != want {
			t.Errorf("%s: %s, want %s", period, got, want)
		}
	}
}

func TestCalendarRejects(t *testing.T) {
	for _, c := range []struct{ period, tz, want string }{
		{"60m", "UTC", "write 1h"},
		{"3600s", "UTC", "write 1h"},
		{"24h", "UTC", "write day"},
		{"48h", "UTC", "does not divide"},
		{"7m", "UTC", "does not divide"},
		{"1m0.5s", "UTC", "does not divide"},
		{"67.5s", "UTC", "whole seconds"}, // 1,280 times a day
		{"59s", "UTC", "at least 1m"},
		{"-30m", "UTC", "at least 1m"},
		{"0", "UTC", "at least 1m"},
		{"Day", "UTC", "want none"},
		{"", "UTC", "want none"},
		{"day", "Local", "IANA"},
		{"day", "", "IANA"},
		{"30m", "Asia/Peking", "IANA"},
		{"none", "../etc/passwd", "IANA"},
	} {
		if _, err := NewCalendar(c.period, c.tz); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s in %q: %v, want %q in it", c.period, c.tz, err, c.want)
		}
	}
	if _, err := PartsOfDay(500*time.Millisecond, "UTC"); err == nil {
		t.Error("half a second is taken")
	}
}

// TestYearsOfTags checks that no time has a tag that sorts wrongly.
func TestYearsOfTags(t *testing.T) {
	for _, period := range []string{"1m", "1h", "day", "week", "month", "year"} {
		c := calendar(t, period, "Pacific/Kiritimati")
		for _, at := range []time.Time{{}, time.UnixMilli(-1 << 63), time.UnixMilli(1<<63 - 1), instant(t, "1969-06-01T00:00:00Z"), instant(t, "9998-12-31T12:00:00Z").AddDate(0, 0, 9)} {
			if p, err := c.At(at); !errors.Is(err, ErrPeriod) {
				t.Errorf("%s at %v: %+v, %v", period, at, p, err)
			}
		}
	}
	for _, period := range []string{"1m", "1h", "day", "month", "year"} { // which begin with 1970, unlike its first week
		c := calendar(t, period, "UTC")
		first, err := c.At(time.Unix(0, 0))
		if _, err2 := c.Previous(first); err != nil || !errors.Is(err2, ErrPeriod) {
			t.Errorf("%s: first %+v, %v; before it %v", period, first, err, err2)
		}
	}
}

var zones = []string{"UTC", "Asia/Shanghai", "America/Sao_Paulo", "Asia/Beirut", "Asia/Kolkata", "Asia/Kathmandu", "Europe/Berlin", "America/New_York",
	"Australia/Lord_Howe", "Pacific/Apia", "America/St_Johns", "America/Havana", "Africa/Casablanca", "Antarctica/Troll", "Antarctica/Casey", "Pacific/Chatham",
	"Africa/Cairo", "Asia/Tehran", "America/Santiago", "Atlantic/Azores", "Africa/Monrovia", "Pacific/Kwajalein", "Asia/Pyongyang", "America/Caracas"}

func calendars(t testing.TB) (all []Calendar) {
	for _, tz := range zones {
		for _, period := range []string{"1m", "15m", "16m", "20m", "30m", "1h", "90m", "12h", "day", "week", "month", "year"} {
			all = append(all, calendar(t, period, tz))
		}
		for _, period := range []string{"day", "week", "month", "year"} {
			for _, starts := range []time.Duration{30 * time.Minute, 150 * time.Minute, 5 * time.Hour, 23*time.Hour + 59*time.Minute} {
				all = append(all, starting(t, period, tz, starts))
			}
		}
		short, err := PartsOfDay(5*time.Second, tz)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, short)
	}
	return all
}

// TestPeriodsDivideTime checks random times, half of them near a change of the zone's
// offset: a time is in its period, periods follow each other without a hole, a tag
// names its period alone, and tags sort as periods do.
func TestPeriodsDivideTime(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	for _, c := range calendars(t) {
		for range 15 {
			checkPeriod(t, c, randomTime(random, c.zone))
			if t.Failed() {
				t.Fatalf("%+v in %s", c, c.zone)
			}
		}
	}
}

// randomTime returns a time from 1970 to 2069.
func randomTime(random *rand.Rand, z zone) time.Time {
	at := time.Unix(random.Int64N(100*365*secondsPerDay), random.Int64N(1e9)).In(z.Location)
	if _, change := at.ZoneBounds(); !change.IsZero() && random.IntN(2) == 0 {
		at = change.Add(time.Duration(random.Int64N(int64(2*longestDay))) - longestDay)
	}
	return at
}

func checkPeriod(t *testing.T, c Calendar, at time.Time) {
	t.Helper()
	p, err := c.At(at)
	if err != nil {
		if at.After(time.Unix(2*secondsPerDay, 0)) {
			t.Error(err)
		}
		return
	}
	if at.Before(p.Start) || !at.Before(p.End) {
		t.Errorf("%v is not in %+v", at, p)
	}
	for _, same := range []time.Time{p.Start, p.End.Add(-1)} {
		if again, err := c.At(same); err != nil || again != p {
			t.Errorf("%v is in %+v, not in %+v: %v", same, again, p, err)
		}
	}
	if parsed, err := c.Parse(p.Tag); err != nil || parsed != p {
		t.Errorf("%s is parsed as %+v, not %+v: %v", p.Tag, parsed, p, err)
	}
	next, err := c.Next(p)
	if err != nil || next.Start != p.End || next.Tag <= p.Tag && !c.overflows(p) {
		t.Errorf("after %+v comes %+v, %v", p, next, err)
	}
	if back, err := c.Previous(next); err != nil || back != p {
		t.Errorf("before %+v is %+v, not %+v: %v", next, back, p, err)
	}
}

// overflows reports whether the day is longer than [longestDay].
func (c Calendar) overflows(p Period) bool {
	d := c.zone.dateOf(p.Start)
	return c.zone.begin(d+1).Sub(c.zone.begin(d)) > longestDay
}

// FuzzParseTag checks that a text is either the tag of exactly one period or refused.
func FuzzParseTag(f *testing.F) {
	for _, tag := range []string{"", "20261122-17", "20261122-017", "20261122-H08", "20261122", "2026W47", "2026W00", "2026W54", "202611", "202613", "2026", "0000", "20261122-999999",
		"20261122--1", "20261122-+1", "20260230", "２０２６", "20111230", "20260329-H23"} {
		f.Add(tag)
	}
	all := calendars(f)
	f.Fuzz(func(t *testing.T, tag string) {
		for _, c := range all {
			p, err := c.Parse(tag)
			if err != nil {
				if !errors.Is(err, ErrPeriod) || p != (Period{}) {
					t.Fatalf("%q: %+v, %v", tag, p, err)
				}
				continue
			}
			if p.Tag != tag || !p.Start.Before(p.End) {
				t.Fatalf("%q is parsed as %+v", tag, p)
			}
			if again, err := c.At(p.Start); err != nil || again != p {
				t.Fatalf("%q begins in %+v, not in %+v: %v", tag, again, p, err)
			}
		}
	})
}
