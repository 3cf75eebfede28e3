package rooms

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"rankcache/class"
)

const startsUnset = -1 // no time that a file can have

const maxSeasons = 500 // the most seasons of a class

// fixedBefore is how long before its start a season is fixed: its board is in memory, and can have commands.
const fixedBefore = time.Hour

func (t *classText) readStarts(s string) (err error) {
	t.starts, err = class.ParseStarts(s)
	return err
}

func (t *classText) addSeason(n *yaml.Node) error {
	if len(t.seasons) == maxSeasons {
		return at(n, fmt.Errorf("more than %d seasons", maxSeasons))
	}
	var s class.Period
	err := fields(n, map[string]func(*yaml.Node) error{"tag": intoString(&s.Tag), "from": intoTime(&s.Start), "to": intoTime(&s.End)})
	if err != nil {
		return err
	}
	if s.Start.IsZero() || s.End.IsZero() {
		return at(n, errors.New("season: want tag, from and to"))
	}
	t.seasons, err = t.seasons.With(s)
	return at(n, err)
}

// intoTime reads an instant, with or without quotes.
func intoTime(to *time.Time) func(*yaml.Node) error {
	return func(n *yaml.Node) (err error) {
		if *to, err = time.Parse(time.RFC3339, n.Value); err != nil {
			return at(n, fmt.Errorf("%.40q: want a time as in RFC 3339, such as 2026-12-01T05:00:00+08:00", n.Value))
		}
		return nil
	}
}

func (t *classText) calendar(newCalendar NewCalendar) (c class.Calendar, err error) {
	switch {
	case t.seasons != nil && t.period != "":
		return c, errors.New("seasons are its periods: leave out period")
	case t.seasons != nil:
		c, err = class.NewSeasons(t.seasons, cmp.Or(t.tz, "UTC"))
	case t.period != "":
		c, err = newCalendar(t.period, cmp.Or(t.tz, "UTC"))
	default:
		return c, errors.New("no period: want none, a divisor of a day such as 30m, 1h, day, week, month or year, or seasons")
	}
	if err == nil && t.starts != startsUnset {
		return c.Starting(t.starts)
	}
	return c, err
}

// checkSeasons returns an error if a season has changed that is about to begin or has, and whose board is not gone.
func (c *Class) checkSeasons(before *Class, now time.Time) error {
	for _, s := range before.Calendar().Seasons() {
		same := func(other class.Period) bool { return other.Is(s) }
		fixed := !now.Before(s.Start.Add(-fixedBefore)) && now.Before(s.End.Add(before.Keep))
		if fixed && !slices.ContainsFunc(c.Calendar().Seasons(), same) {
			return fmt.Errorf("season %s can't change, as it has begun or begins within %v: it is from %s to %s", s.Tag, fixedBefore, s.Start.Format(time.RFC3339), s.End.Format(time.RFC3339))
		}
	}
	return nil
}
