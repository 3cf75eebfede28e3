package class

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

const maxSeasonTag = 32 // the most characters of a season's tag

// Seasons are periods with names of their own, in their order. There may be gaps between them.
type Seasons []Period

// With returns the seasons and a further one, which begins after all others have ended and sorts behind them.
func (all Seasons) With(s Period) (Seasons, error) {
	if err := checkSeason(s); err != nil {
		return nil, err
	}
	if len(all) > 0 {
		before := all[len(all)-1]
		switch {
		case s.Tag <= before.Tag:
			return nil, fmt.Errorf("tag %q does not sort behind %q, that of the season before it", s.Tag, before.Tag)
		case s.Start.Before(before.End):
			return nil, fmt.Errorf("season %s begins at %s, before %s ends at %s", s.Tag, s.Start.Format(time.RFC3339), before.Tag, before.End.Format(time.RFC3339))
		}
	}
	return append(all, s), nil
}

func checkSeason(s Period) error {
	if err := checkSeasonTag(s.Tag); err != nil {
		return err
	}
	for _, t := range [...]time.Time{s.Start, s.End} {
		if y := t.UTC().Year(); y < minYear || y > maxYear || t.Nanosecond() != 0 {
			return fmt.Errorf("season %s: %s: want whole seconds, and a year from %d to %d", s.Tag, t.Format(time.RFC3339Nano), minYear, maxYear)
		}
	}
	if !s.Start.Before(s.End) {
		return fmt.Errorf("season %s ends at %s, not after its start", s.Tag, s.End.Format(time.RFC3339))
	}
	return nil
}

// checkSeasonTag refuses what can't be a tag: ".p1" names other boards, now and previous other periods.
func checkSeasonTag(tag string) error {
	switch rest := strings.TrimLeft(tag, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-"); {
	case tag == "" || len(tag) > maxSeasonTag || rest != "":
		return fmt.Errorf("tag %.60q: want 1 to %d characters of A-Z a-z 0-9 -", tag, maxSeasonTag)
	case tag == "now" || tag == "previous" || segment{text: tag}.canBePage():
		return fmt.Errorf("tag %q has a meaning of its own in requests or ids: choose another", tag)
	}
	return nil
}

// NewSeasons returns the calendar of seasons, whose times are shown in an IANA time zone.
func NewSeasons(all Seasons, tz string) (Calendar, error) {
	if len(all) == 0 {
		return Calendar{}, errors.New("seasons: want at least one")
	}
	z, err := loadZone(tz)
	if err != nil {
		return Calendar{}, err
	}
	c := Calendar{unit: season, zone: z, seasons: slices.Clone(all)}
	for i := range c.seasons {
		s := &c.seasons[i]
		s.Start, s.End = s.Start.In(z.Location), s.End.In(z.Location)
	}
	return c, nil
}

// Seasons returns the seasons in their order, nil if periods have no names. They must not be changed.
func (c Calendar) Seasons() Seasons { return c.seasons }

// Gap reports a time without a running season, an ended one before it or a next one after it. It is an [ErrPeriod].
type Gap struct {
	what string
	Next Period // the season that begins next; zero: none is planned
}

// Error tells when the next season begins.
func (g *Gap) Error() string {
	if g.Next.Tag == "" {
		return g.what + ", and no further one is planned"
	}
	return fmt.Sprintf("%s: season %s begins at %s", g.what, g.Next.Tag, g.Next.Start.Format(time.RFC3339))
}

// Is reports whether target is [ErrPeriod].
func (g *Gap) Is(target error) bool { return target == ErrPeriod }

// endsAfter returns the index of the first season that ends after t.
func (all Seasons) endsAfter(t time.Time) int {
	i, _ := slices.BinarySearchFunc(all, t, func(s Period, t time.Time) int {
		if s.End.After(t) {
			return 1
		}
		return -1
	})
	return i
}

func (all Seasons) at(t time.Time) (Period, error) {
	i := all.endsAfter(t)
	if i == len(all) || t.Before(all[i].Start) {
		return Period{}, all.gap("no season runs at "+t.Format(time.RFC3339), i)
	}
	return all[i], nil
}

func (all Seasons) following(t time.Time) (Period, error) {
	i := all.endsAfter(t)
	if i < len(all) && !t.Before(all[i].Start) {
		i++
	}
	if i == len(all) {
		return Period{}, all.gap("no season begins after "+t.Format(time.RFC3339), i)
	}
	return all[i], nil
}

func (all Seasons) ended(t time.Time) (Period, error) {
	i := all.endsAfter(t)
	if i == 0 {
		return Period{}, all.gap("no season has ended by "+t.Format(time.RFC3339), 0)
	}
	return all[i-1], nil
}

// gap returns an error whose next season is that of an index, if there is one.
func (all Seasons) gap(what string, next int) error {
	g := &Gap{what: what}
	if next < len(all) {
		g.Next = all[next]
	}
	return g
}

func (all Seasons) named(tag string) (Period, bool) {
	i, ok := slices.BinarySearchFunc(all, tag, func(s Period, tag string) int { return strings.Compare(s.Tag, tag) })
	if !ok {
		return Period{}, false
	}
	return all[i], true
}

func (all Seasons) longestTag() string {
	return slices.MaxFunc(all, func(a, b Period) int { return len(a.Tag) - len(b.Tag) }).Tag
}
