package rooms

import (
	"slices"
	"testing"

	"rankcache"
)

func TestTiersMode(t *testing.T) {
	file, err := Parse([]byte(sampleFile))
	if err != nil {
		t.Fatal(err)
	}
	tiers := file.Resolve(map[string][]rankcache.BoardID{"88": {"not_used"}, "89": {"5_5_5", "1_2_3"}, "90": {"6_6_6"}})
	for _, c := range []struct {
		board rankcache.BoardID
		room  string
		want  Mode
	}{
		{"1_2_3", "", ModeSuperHot}, // hot by room 89, super-hot by room 88
		{"5_5_5", "", ModeHot},
		{"6_6_6", "", ModeBlocked},
		{"7_1_1", "", ModeSuperHot},
		{"9_1", "", ModeBlocked},
		{"4_4_4", "", ModeNone},
		{"4_4_4", "89", ModeHot},
		{"1_2_3", "90", ModeBlocked},
		{"1_2_3", "unknown", ModeSuperHot},
		{"not_used", "", ModeNone}, // the file names the boards of room 88
	} {
		if got := tiers.Mode(c.board, c.room); got != c.want {
			t.Errorf("%s in room %q: got %v, want %v", c.board, c.room, got, c.want)
		}
	}
	if got := tiers.Boards(ModeSuperHot); !slices.Equal(got, []rankcache.BoardID{"1_2_3", "7_1_1"}) {
		t.Errorf("super-hot boards: %v", got)
	}
	late, err := Parse([]byte("boards:\n- {match: \"b\", mode: super-hot}\n- {match: \"a\", mode: super-hot}\n- {match: \"c\", mode: hot}\n- {match: \"b\", mode: hot}"))
	if err != nil {
		t.Fatal(err)
	}
	if got, lingering := late.Resolve(nil).ByPriority(ModeSuperHot); !slices.Equal(got, []rankcache.BoardID{"b", "a"}) || lingering != nil {
		t.Errorf("super-hot boards in order: %v, %v", got, lingering)
	}
	if got := (*Tiers)(nil).Mode("1_2_3", "88"); got != ModeNone {
		t.Errorf("nil tiers return %v", got)
	}
}

// TestTrims: which boards keep their best members alone.
func TestTrims(t *testing.T) {
	file, err := Parse([]byte("classes:\n- {name: a, board: \"best:{x}\", period: none, ops: [incr], trim: 10}\n- {name: b, board: \"all:{x}\", period: none}\n" +
		"boards:\n- {match: \"best:1\", mode: super-hot}\n"))
	if err != nil {
		t.Fatal(err)
	}
	tiers := file.Resolve(nil)
	for board, want := range map[rankcache.BoardID]bool{"best:1": true, "best:2": true, "all:1": false, "best": false, "other": false} {
		if got := tiers.Trims(board); got != want {
			t.Errorf("%s: %t", board, got)
		}
	}
	if (*Tiers)(nil).Trims("best:1") {
		t.Error("no tiers")
	}
}
