package rooms

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rankcache/class"
	"rankcache/wire"
)

// There is a gap of two days behind the second season.
const ladder = `classes:
- name: ladder
  board: "ladder:{zone}:{period}"
  tz: Europe/Berlin
  grace: 10s
  keep: 24h
  mode: super-hot
  dims: {zone: ["7"]}
  seasons:
  - {tag: s1, from: 2026-10-20T05:00:00+02:00, to: 2026-11-01T05:00:00+01:00}
  - {tag: s2, from: "2026-11-01T05:00:00+01:00", to: "2026-12-01T05:00:00+01:00"}
  - {tag: s3, from: 2026-12-03T05:00:00+01:00, to: 2027-01-07T05:00:00+01:00}
`

func parseLadder(t *testing.T, text string) *File {
	t.Helper()
	f, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func instant(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestSeasonsByName asks for periods by all names before, in, between and after seasons, and that a name that
// is kept is let go when it stands for something else.
func TestSeasonsByName(t *testing.T) {
	c := parseLadder(t, ladder).Classes[0]
	for _, w := range []struct{ now, running, previous string }{
		{"2026-10-20T02:59:59Z", "gap s1", "gap s1"},
		{"2026-10-20T03:00:00Z", "s1 running", "gap s1"},
		{"2026-11-01T03:59:59Z", "s1 running", "gap s1"},
		{"2026-11-01T04:00:00Z", "s2 running", "s1 ended"},
		{"2026-12-01T03:59:59Z", "s2 running", "s1 gone"},
		{"2026-12-01T04:00:00Z", "gap s3", "s2 ended"},
		{"2026-12-02T04:00:00Z", "gap s3", "s2 gone"},
		{"2026-12-03T04:00:00Z", "s3 running", "s2 gone"},
		{"2027-01-07T04:00:00Z", "gap ", "s3 ended"},
	} {
		for at, want := range map[string]string{Now: w.running, Previous: w.previous, w.now: w.running} {
			p, err := c.PeriodAt(at, instant(t, w.now))
			got := p.Tag + " " + p.State.String()
			if gap, ok := errors.AsType[*class.Gap](err); ok {
				got, err = "gap "+gap.Next.Tag, nil
			}
			if got != want || err != nil {
				t.Errorf("%s at %s: %s, %v; want %s", at, w.now, got, err, want)
			}
		}
	}
	for now := instant(t, "2026-10-19T00:00:00Z"); now.Before(instant(t, "2027-01-10T00:00:00Z")); now = now.Add(7 * time.Hour) {
		for _, at := range []string{Now, Previous} {
			p, err := c.PeriodAt(at, now)
			if err != nil {
				continue
			}
			for later := now; later.Before(now.Add(80 * 24 * time.Hour)); later = later.Add(11 * time.Hour) {
				q, err := c.PeriodAt(at, later)
				if same := err == nil && q.Period == p.Period && q.State == p.State; same != p.Holds(later) {
					t.Fatalf("%s of %v is %s %s; %v later %s %s, %v, but it holds: %v", at, now, p.Tag, p.State, later.Sub(now), q.Tag, q.State, err, p.Holds(later))
				}
			}
		}
	}
	if _, err := c.PeriodAt("s9", time.Now()); err == nil || errors.Is(err, class.ErrPeriod) {
		t.Errorf("an unknown tag: %v", err)
	}
	if p, err := c.PeriodAt("s3", instant(t, "2026-12-02T04:00:00Z")); err != nil || p.State != PeriodUpcoming {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestClassBoardsOfSeasons checks which boards are in memory around a gap.
func TestClassBoardsOfSeasons(t *testing.T) {
	f := parseLadder(t, ladder)
	for at, want := range map[string]string{
		"2026-10-20T02:58:59Z":     "",
		"2026-10-20T02:59:00Z":     "s1",
		"2026-11-01T03:59:00Z":     "s1 s2",
		"2026-11-01T04:00:10Z":     "s2 s1",
		"2026-11-01T04:10:10Z":     "s2 s1", // which lingers
		"2026-11-01T04:10:10.001Z": "s2",
		"2026-12-01T03:59:59Z":     "s2",
		"2026-12-01T04:00:10Z":     "s2",
		"2026-12-01T04:10:10Z":     "s2",
		"2026-12-01T04:10:10.001Z": "",
		"2026-12-03T03:58:59Z":     "",
		"2026-12-03T03:59:00Z":     "s3",
		"2027-01-07T03:59:59Z":     "s3",
		"2027-01-07T04:10:11Z":     "",
	} {
		var got []string
		for _, rule := range f.ClassBoards(instant(t, at)) {
			got = append(got, strings.TrimPrefix(rule.Match, "ladder:7:"))
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", at, diff)
		}
	}
	log := f.Log(wire.DefaultNames(), "ladder:7:s2")
	if log.Topic != "update_cache_ladder.7.s2" || log.Shared || !log.Last.Equal(instant(t, "2026-12-01T04:00:10Z")) {
		t.Errorf("%+v", log)
	}
	if err := f.CheckBoards(wire.DefaultNames().CheckBoard); err != nil {
		t.Error(err)
	}
}

// TestSeasonsChange takes files with other seasons.
func TestSeasonsChange(t *testing.T) {
	before := parseLadder(t, ladder).Classes[0]
	s1 := "  - {tag: s1, from: 2026-10-20T05:00:00+02:00, to: 2026-11-01T05:00:00+01:00}\n"
	for _, c := range []struct{ old, new, now, want string }{
		{"", "", "2026-11-10T00:00:00Z", ""},
		{"2027-01-07", "2027-01-09", "2026-11-10T00:00:00Z", ""}, // s3 has not begun
		{"2026-12-03", "2026-12-02", "2026-11-10T00:00:00Z", ""},
		{"s3", "t1", "2026-11-10T00:00:00Z", ""},
		{"Europe/Berlin", "Asia/Tokyo", "2026-11-10T00:00:00Z", ""}, // another key's matter
		{"2027-01-07", "2027-01-09", "2026-12-03T02:59:59Z", ""},
		{"2027-01-07", "2027-01-09", "2026-12-03T03:00:00Z", "season s3 can't change"}, // soon
		{`to: "2026-12-01`, `to: "2026-12-02`, "2026-11-10T00:00:00Z", "season s2 can't change, as it has begun or begins within 1h0m0s: it is from 2026-11-01T05:00:00+01:00 to 2026-12-01T05:00:00+01:00"},
		{"s2", "s21", "2026-11-10T00:00:00Z", "season s2 can't change"},
		{s1, "", "2026-11-02T03:59:59Z", "season s1 can't change"}, // its board is there
		{s1, "", "2026-11-02T04:00:00Z", ""},
		{s1, "  - {tag: s0, from: 2026-10-02T05:00:00+02:00, to: 2026-10-03T05:00:00+01:00}\n" + s1, "2026-11-02T04:00:00Z", ""},
	} {
		err := parseLadder(t, strings.Replace(ladder, c.old, c.new, 1)).Classes[0].checkSeasons(before, instant(t, c.now))
		if got := fmt.Sprint(err); !strings.Contains(got, c.want) || (err == nil) != (c.want == "") {
			t.Errorf("%s for %s at %s: %v, want %q", c.new, c.old, c.now, err, c.want)
		}
	}
	running := func(to time.Time) *File {
		return parseLadder(t, fmt.Sprintf(`classes: [{name: c, board: "c:{period}", seasons: [{tag: s1, from: 2020-01-01T00:00:00Z, to: %s}]}]`, to.Format(time.RFC3339)))
	}
	later := time.Now().Add(time.Hour).Truncate(time.Second)
	old := running(later)
	if err := running(later.Add(time.Hour)).CheckChange(old, time.Now()); err == nil || !strings.Contains(err.Error(), "rooms file: line 1: class c: season s1 can't change") {
		t.Errorf("a longer season that runs: %v", err)
	}
	if err := running(later).CheckChange(old, time.Now()); err != nil {
		t.Error(err)
	}
	day := parseLadder(t, `classes: [{name: c, board: "c:{period}", period: day}]`)
	five := parseLadder(t, `classes: [{name: c, board: "c:{period}", period: day, starts: "05:00"}]`)
	if err := day.CheckChange(old, time.Now()); err == nil || !strings.Contains(err.Error(), `period can't change from "seasons" to "day"`) {
		t.Error(err)
	}
	if err := five.CheckChange(day, time.Now()); err == nil || !strings.Contains(err.Error(), `starts can't change from "" to "05:00"`) {
		t.Error(err)
	}
}

// TestStarts checks that classes that begin at the same time feed each other.
func TestStarts(t *testing.T) {
	f := parseLadder(t, `classes:
- {name: day, board: "d:{period}", period: day, starts: "05:00", tz: Asia/Shanghai, ops: [incr], feeds: [week, month, all]}
- {name: week, board: "w:{period}", period: week, starts: "05:00", tz: Asia/Shanghai}
- {name: month, board: "m:{period}", period: month, starts: 05:00, tz: Asia/Shanghai}
- {name: all, board: "all", period: none}
`)
	now := instant(t, "2026-11-01T04:59:59+08:00")
	for i, want := range []string{"d:20261031", "w:2026W44", "m:202610", "all"} {
		for j, at := range []time.Time{now, now.Add(time.Second)} {
			want := [...]string{want, [...]string{"d:20261101", "w:2026W44", "m:202611", "all"}[i]}[j]
			if b, err := f.Classes[i].At(nil, at); err != nil || string(b.ID) != want {
				t.Errorf("%s, %v; want %s", b.ID, err, want)
			}
		}
	}
}

// TestWeeksOnOtherDays checks what reads and feeds make of weeks that begin on another day.
func TestWeeksOnOtherDays(t *testing.T) {
	f := parseLadder(t, `classes:
- {name: day, board: "d:{period}", period: day, starts: "20:00", tz: Asia/Shanghai, ops: [incr], feeds: [week]}
- {name: week, board: "w:{period}", period: week, starts: sunday 20:00, tz: Asia/Shanghai}
- {name: guild, board: "g:{period}", period: week, starts: tuesday 08:00, tz: Asia/Shanghai}
`)
	sunday := instant(t, "2026-11-22T20:00:00+08:00") // of ISO week 47
	for at, want := range map[time.Time][4]string{    // boards of week and guild, the weeks of now and previous
		sunday.Add(-1):             {"w:2026W46", "g:2026W47", "2026W46", "2026W45"},
		sunday:                     {"w:2026W47", "g:2026W47", "2026W47", "2026W46"},
		sunday.Add(36 * time.Hour): {"w:2026W47", "g:2026W48", "2026W47", "2026W46"},
	} {
		week, err := f.Classes[1].At(nil, at)
		guild, wrong := f.Classes[2].At(nil, at)
		now, none := f.Classes[1].PeriodAt(Now, at)
		previous, ended := f.Classes[1].PeriodAt(Previous, at)
		if got := [4]string{string(week.ID), string(guild.ID), now.Tag, previous.Tag}; got != want || errors.Join(err, wrong, none, ended) != nil {
			t.Errorf("at %v: %q, want %q: %v %v %v %v", at, got, want, err, wrong, none, ended)
		}
		if named, err := f.Classes[1].PeriodAt(previous.Tag, at); err != nil || !named.Is(previous.Period) || named.State < PeriodEnded {
			t.Errorf("%s is %+v, %v", previous.Tag, named, err)
		}
	}
}
