package class

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"rankcache"
)

// seasons returns those of lines such as "s1 2026-11-01T00:00:00Z 2026-12-01T00:00:00Z".
func seasons(t testing.TB, lines ...string) (all Seasons) {
	t.Helper()
	for _, line := range lines {
		f := strings.Fields(line)
		var err error
		if all, err = all.With(Period{f[0], instant(t, f[1]), instant(t, f[2])}); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func seasonCalendar(t testing.TB, tz string, lines ...string) Calendar {
	t.Helper()
	c, err := NewSeasons(seasons(t, lines...), tz)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Two follow each other at once, then there is a gap.
var sampleSeasons = []string{
	"s1 2026-10-20T05:00:00+02:00 2026-11-01T05:00:00+01:00",
	"s2 2026-11-01T05:00:00+01:00 2026-12-01T05:00:00+01:00",
	"s3-xmas 2026-12-20T05:00:00+01:00 2027-01-07T05:00:00+01:00",
}

func TestSeasons(t *testing.T) {
	c := seasonCalendar(t, "Europe/Berlin", sampleSeasons...)
	for _, s := range []struct{ at, running, next, ended string }{
		{"2020-01-01T00:00:00Z", "-s1", "s1", "-s1"},
		{"2026-10-20T02:59:59Z", "-s1", "s1", "-s1"},
		{"2026-10-20T03:00:00Z", "s1", "s2", "-"},
		{"2026-11-01T03:59:59Z", "s1", "s2", "-"},
		{"2026-11-01T04:00:00Z", "s2", "s3-xmas", "s1"},
		{"2026-12-01T03:59:59.999Z", "s2", "s3-xmas", "s1"},
		{"2026-12-01T04:00:00Z", "-s3-xmas", "s3-xmas", "s2"},
		{"2026-12-20T04:00:00Z", "s3-xmas", "-", "s2"},
		{"2027-01-07T04:00:00Z", "-", "-", "s3-xmas"},
		{"2999-01-07T04:00:00Z", "-", "-", "s3-xmas"},
	} {
		at := instant(t, s.at)
		for i, ask := range []func(time.Time) (Period, error){c.At, c.Following, c.Ended} {
			p, err := ask(at)
			got := p.Tag
			if gap, ok := errors.AsType[*Gap](err); ok {
				got = "-" + gap.Next.Tag
			}
			if want := [...]string{s.running, s.next, s.ended}[i]; got != want && !(want == "-" && strings.HasPrefix(got, "-")) || err != nil && !errors.Is(err, ErrPeriod) {
				t.Errorf("at %s, %d: %s, %v; want %s", s.at, i, got, err, want)
			}
		}
	}
	if p, _ := c.At(instant(t, "2026-11-05T00:00:00Z")); p.Start.Format(time.RFC3339) != "2026-11-01T05:00:00+01:00" {
		t.Errorf("%v is not in the zone", p.Start)
	}
	_, err := c.At(instant(t, "2026-12-05T00:00:00Z"))
	if want := "no season runs at 2026-12-05T01:00:00+01:00: season s3-xmas begins at 2026-12-20T05:00:00+01:00"; err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if _, err = c.At(instant(t, "2028-12-05T00:00:00Z")); err.Error() != "no season runs at 2028-12-05T01:00:00+01:00, and no further one is planned" {
		t.Error(err)
	}
}

// TestSeasonsDivideTime compares random seasons with a walk over all of them.
func TestSeasonsDivideTime(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	for range 200 {
		var all Seasons
		now := time.Unix(1_700_000_000, 0)
		for i := range 1 + random.IntN(6) {
			from := now.Add(time.Duration(random.IntN(3)) * time.Second)
			now = from.Add(time.Duration(1+random.IntN(3)) * time.Second)
			var err error
			if all, err = all.With(Period{fmt.Sprintf("s%d", i), from, now}); err != nil {
				t.Fatal(err)
			}
		}
		c, err := NewSeasons(all, "UTC")
		if err != nil {
			t.Fatal(err)
		}
		for at := time.Unix(1_699_999_999, 0); at.Before(now.Add(2 * time.Second)); at = at.Add(500 * time.Millisecond) {
			var running, next, ended string
			for _, s := range all {
				if !at.Before(s.Start) && at.Before(s.End) {
					running = s.Tag
				}
				if s.Start.After(at) && next == "" {
					next = s.Tag
				}
				if !s.End.After(at) {
					ended = s.Tag
				}
			}
			p, _ := c.At(at)
			q, _ := c.Following(at)
			r, _ := c.Ended(at)
			if p.Tag != running || q.Tag != next || r.Tag != ended {
				t.Fatalf("at %v of %v: %q %q %q, want %q %q %q", at, all, p.Tag, q.Tag, r.Tag, running, next, ended)
			}
		}
		for i, s := range c.Seasons() {
			parsed, err := c.Parse(s.Tag)
			before, _ := c.Previous(s)
			after, _ := c.Next(s)
			if err != nil || parsed != s || i > 0 && before != c.Seasons()[i-1] || i == 0 && before.Tag != "" || i+1 < len(all) && after != c.Seasons()[i+1] || i+1 == len(all) && after.Tag != "" {
				t.Fatalf("%+v is parsed as %+v, %v, is between %+v and %+v", s, parsed, err, before, after)
			}
		}
	}
}

func TestSeasonsReject(t *testing.T) {
	before := "s1 2026-11-01T00:00:00Z 2026-12-01T00:00:00Z"
	for _, c := range []struct{ season, want string }{
		{"s1 2026-12-01T00:00:00Z 2027-01-01T00:00:00Z", `tag "s1" does not sort behind "s1"`},
		{"S2 2026-12-01T00:00:00Z 2027-01-01T00:00:00Z", `tag "S2" does not sort behind "s1"`},
		{"s2 2026-11-30T23:59:59Z 2027-01-01T00:00:00Z", "season s2 begins at 2026-11-30T23:59:59Z, before s1 ends at 2026-12-01T00:00:00Z"},
		{"s2 2025-11-30T23:59:59Z 2026-01-01T00:00:00Z", "before s1 ends"},
		{"s2 2026-12-01T00:00:00Z 2026-12-01T00:00:00Z", "not after its start"},
		{"s2 2027-12-01T00:00:00Z 2026-12-01T00:00:00Z", "not after its start"},
		{"s2 2026-12-01T00:00:00.5Z 2027-01-01T00:00:00Z", "want whole seconds"},
		{"s2 2026-12-01T00:00:00Z 9999-01-01T00:00:00Z", "a year from 1970 to 9998"},
		{"s.2 2026-12-01T00:00:00Z 2027-01-01T00:00:00Z", "want 1 to 32 characters"},
		{"s_2 2026-12-01T00:00:00Z 2027-01-01T00:00:00Z", "want 1 to 32 characters"},
		{strings.Repeat("x", 33) + " 2026-12-01T00:00:00Z 2027-01-01T00:00:00Z", "want 1 to 32 characters"},
		{"now 2026-12-01T00:00:00Z 2027-01-01T00:00:00Z", "a meaning of its own"},
		{"previous 2026-12-01T00:00:00Z 2027-01-01T00:00:00Z", "a meaning of its own"},
		{"p12 2026-12-01T00:00:00Z 2027-01-01T00:00:00Z", "a meaning of its own"},
	} {
		f := strings.Fields(c.season)
		if _, err := seasons(t, before).With(Period{f[0], instant(t, f[1]), instant(t, f[2])}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q in it", c.season, err, c.want)
		}
	}
	if _, err := NewSeasons(nil, "UTC"); err == nil {
		t.Error("no season is taken")
	}
	if _, err := NewSeasons(seasons(t, before), "Mars/Base"); err == nil {
		t.Error("a zone of Mars is taken")
	}
}

// TestBoardsOfSeasons checks ids: only tags of the seasons make some.
func TestBoardsOfSeasons(t *testing.T) {
	c, err := New("ladder", "ladder:{zone}:{period}", seasonCalendar(t, "UTC", sampleSeasons...))
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[rankcache.BoardID]bool{"ladder:7:s1": true, "ladder:7:s3-xmas": true, "ladder:7:s4": false, "ladder:7:20261122": false, "ladder:7:": false, "ladder::s1": false} {
		b, ok := c.Parse(id)
		if ok != want || c.Matches(id) != want || ok && (b.Dims["zone"] != "7" || b.Period.Tag != string(id[len("ladder:7:"):])) {
			t.Errorf("%s: %v, %+v; matches %v", id, ok, b, c.Matches(id))
		}
	}
	id := rankcache.BoardID("ladder:7:s3-xmas")
	if n := testing.AllocsPerRun(100, func() { c.Matches(id) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if _, err := c.At(map[string]string{"zone": "7"}, instant(t, "2026-12-05T00:00:00Z")); !errors.Is(err, ErrPeriod) {
		t.Errorf("in a gap: %v", err)
	}
	long := strings.Repeat("l", 190) + ".{period}"
	if _, err := New("long", long, seasonCalendar(t, "UTC", "abcdefghij 2026-10-20T05:00:00Z 2026-11-01T05:00:00Z")); err == nil {
		t.Error("the longest id is no board id")
	}
}

// TestConflictsOfSeasons checks that a class is refused which a season to come could conflict with.
func TestConflictsOfSeasons(t *testing.T) {
	ladder, err := New("ladder", "ladder:{period}", seasonCalendar(t, "UTC", sampleSeasons...))
	if err != nil {
		t.Fatal(err)
	}
	for board, want := range map[string]bool{"ladder:{zone}": true, "ladder:s4": true, "ladder:s4:x": false, "ladder:s4:{zone}": true, "ladders:{zone}": false} {
		other := newClass(t, "other", board, "none")
		if err := Conflict(ladder, other); (err != nil) != want {
			t.Errorf("%s: %v", board, err)
		}
	}
	day := newClass(t, "other", "ladder.{period}", "day")
	if Conflict(ladder, day) == nil {
		t.Error("a class of days with the same ids is taken")
	}
}

func TestSeasonsWithin(t *testing.T) {
	c := seasonCalendar(t, "Europe/Berlin", sampleSeasons...)
	other := seasonCalendar(t, "Europe/Berlin", sampleSeasons[:2]...)
	day := calendar(t, "day", "Europe/Berlin")
	if !c.Within(seasonCalendar(t, "UTC", sampleSeasons...)) || !c.Within(calendar(t, "none", "UTC")) || c.Within(other) || other.Within(c) || c.Within(day) || day.Within(c) {
		t.Error("only the same seasons, and no periods, have all seasons in them")
	}
	if c.String() != "seasons" {
		t.Error(c.String())
	}
}
