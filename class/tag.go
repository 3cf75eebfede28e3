package class

import (
	"fmt"
	"strconv"
	"time"
)

// longestDay is the longest day of a zone that stayed on its side of the date line (Antarctica/Casey, 2010-03-05).
const longestDay = 27 * time.Hour

// partDigits returns how many digits the numbers of a day's parts have, so that tags sort on the longest day too.
func partDigits(length time.Duration) int {
	return len(strconv.Itoa(int((longestDay + length - 1) / length)))
}

// tag returns the name of the period that begins with the day first; n counts the parts or hours of the day before it.
func (c Calendar) tag(first date, n int) string {
	civil := first.civil()
	switch c.unit {
	case part:
		return fmt.Sprintf("%s-%0*d", civil.Format("20060102"), c.digits, n+1)
	case hour:
		return fmt.Sprintf("%s-H%02d", civil.Format("20060102"), n)
	case week:
		y, w := civil.ISOWeek()
		return fmt.Sprintf("%04dW%02d", y, w)
	case month:
		return civil.Format("200601")
	case year:
		return civil.Format("2006")
	}
	return civil.Format("20060102")
}

// Sample returns a tag of the calendar, the longest of seasons; others have its length but beside the date line.
func (c Calendar) Sample() string {
	if c.unit == season {
		return c.seasons.longestTag()
	}
	return c.tag(c.firstDay(dateFrom(2026, 11, 22)), 0)
}

// Parse returns the period that a tag names. The error wraps [ErrPeriod] for every other text.
func (c Calendar) Parse(tag string) (Period, error) {
	if p, ok := c.seasons.named(tag); ok {
		return p, nil
	}
	t, ok := c.instant(tag)
	if p, err := c.At(t); ok && err == nil && p.Tag == tag { // one way only to write a tag
		return p, nil
	}
	return Period{}, fmt.Errorf("%w: tag %.40q", ErrPeriod, tag)
}

// canMean reports whether the text is the tag of a period, or can be that of a season to come.
func (c Calendar) canMean(text string) bool {
	if c.unit == season {
		return checkSeasonTag(text) == nil
	}
	_, err := c.Parse(text)
	return err == nil
}

// looksLikeTag is a quick Parse that takes a tag of no period, such as 20261399, too. sample is a tag of the calendar.
func (c *Calendar) looksLikeTag(text, sample string) bool {
	if c.unit == season {
		_, ok := c.seasons.named(text)
		return ok
	}
	return alike(text, sample)
}

// instant returns a time that is in the period if the text is a tag.
func (c Calendar) instant(tag string) (time.Time, bool) {
	switch c.unit {
	case none:
		return time.Time{}, tag == ""
	case season:
		return time.Time{}, false
	case part:
		return c.inDay(tag, "-", 1)
	case hour:
		return c.inDay(tag, "-H", 0)
	case week:
		return c.inWeek(tag)
	}
	layout := map[unit]string{day: "20060102", month: "200601", year: "2006"}[c.unit]
	civil, err := time.Parse(layout, tag)
	return c.zone.begin(dateFrom(civil.Date())), err == nil
}

// inDay parses a day's date, sep, and the number of a part, which begins at base.
func (c Calendar) inDay(tag, sep string, base int) (time.Time, bool) {
	if len(tag) <= dateLen+len(sep) || tag[dateLen:dateLen+len(sep)] != sep {
		return time.Time{}, false
	}
	civil, err := time.Parse("20060102", tag[:dateLen])
	n, ok := number(tag[dateLen+len(sep):])
	n -= base
	if err != nil || !ok || n < 0 || n > int(48*time.Hour/c.length) {
		return time.Time{}, false
	}
	return c.zone.begin(dateFrom(civil.Date())).Add(time.Duration(n) * c.length), true
}

// inWeek parses an ISO week, such as 2026W47. The 4th of January is in week 1.
func (c Calendar) inWeek(tag string) (time.Time, bool) {
	if len(tag) != len("2026W47") || tag[4] != 'W' {
		return time.Time{}, false
	}
	y, ok := number(tag[:4])
	w, ok2 := number(tag[5:])
	monday := dateFrom(y, time.January, 4).first(week) + date(7*(w-1))
	return c.zone.begin(monday + c.weekday), ok && ok2
}

const dateLen = 8 // the length of a date such as 20261122

// number parses up to 6 digits.
func number(s string) (int, bool) {
	n, err := strconv.ParseUint(s, 10, 32)
	return int(n), err == nil && len(s) <= 6
}
