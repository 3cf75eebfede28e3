package rooms

import (
	"slices"
	"testing"
	"time"

	"rankcache"
)

// How long boards linger: as told, or by the length of their period.
func TestLinger(t *testing.T) {
	for lines, want := range map[string]time.Duration{
		"period: day, mode: super-hot":                                10 * time.Minute,
		"period: 1m, mode: super-hot":                                 30 * time.Second,
		"period: day, mode: super-hot, linger: 1h":                    time.Hour,
		"period: day, mode: super-hot, linger: 0s":                    0,
		"period: day, mode: super-hot, keep: 1m":                      55 * time.Second,
		"period: day, mode: super-hot, keep: 5s":                      0,
		"period: day, mode: super-hot, keep: 1h, linger: 59m55s":      59*time.Minute + 55*time.Second,
		"period: day, mode: hot":                                      0,
		"period: day, linger: 1h":                                     0,
		"period: 1m, mode: super-hot, linger: 16h":                    16 * time.Hour,
		"period: month, tz: Asia/Shanghai, mode: super-hot, lead: 0s": 10 * time.Minute,
	} {
		f, err := Parse([]byte(`classes: [{name: c, board: "c:{period}", ` + lines + "}]"))
		if err != nil {
			t.Fatalf("%s: %v", lines, err)
		}
		c := f.Classes[0]
		p, err := c.Calendar().At(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))
		if err != nil {
			t.Fatal(err)
		}
		if got := c.LingerOf(p); got != want {
			t.Errorf("%s: %v, want %v", lines, got, want)
		}
		lingering := 0
		for _, r := range f.ClassBoards(p.End.Add(c.Grace + want)) {
			if r.Lingers {
				lingering++
			}
		}
		if got := c.Lingering(); got < lingering || (lingering > 0) != (want > 0) || got > lingering+1 {
			t.Errorf("%s: %d boards linger, and %d are counted", lines, lingering, got)
		}
	}
}

// A board that lingers is the least important, unless somebody has named it.
func TestLingeringBoardsComeLast(t *testing.T) {
	rules := []Rule{{Match: "ended", Mode: ModeSuperHot, Lingers: true}, {Match: "named", Mode: ModeSuperHot, Lingers: true}, {Match: "hot", Mode: ModeHot},
		{Match: "hot", Mode: ModeSuperHot, Lingers: true}, {Match: "named", Mode: ModeSuperHot}, {Match: "running", Mode: ModeSuperHot},
		{Match: "bad", Mode: ModeSuperHot, Lingers: true}, {Match: "b*", Mode: ModeBlocked}}
	tiers := (&File{Rules: rules}).Resolve(nil)
	boards, lingering := tiers.ByPriority(ModeSuperHot)
	if !slices.Equal(boards, []rankcache.BoardID{"named", "running"}) || !slices.Equal(lingering, []rankcache.BoardID{"ended", "hot"}) {
		t.Errorf("%v, and lingering %v", boards, lingering)
	}
	for b, want := range map[rankcache.BoardID]Mode{"ended": ModeSuperHot, "hot": ModeSuperHot, "bad": ModeBlocked} {
		if got := tiers.Mode(b, ""); got != want {
			t.Errorf("%s is %v, want %v", b, got, want)
		}
	}
}
