package rooms

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rankcache"
)

const sampleRooms = `
rooms:
  - uid: "88"
    mode: super-hot
    boards: ["1_2_3"]
  - uid: "89"
    mode: hot
  - uid: "90"
    mode: blocked
boards:
  - match: "9_*"
    mode: blocked
  - match: "7_1_1"
    mode: super-hot
`

func TestParse(t *testing.T) {
	got, err := Parse([]byte(sampleRooms))
	if err != nil {
		t.Fatal(err)
	}
	want := &File{
		Rooms: []Room{
			{UID: "88", Mode: ModeSuperHot, Boards: []rankcache.BoardID{"1_2_3"}},
			{UID: "89", Mode: ModeHot},
			{UID: "90", Mode: ModeBlocked},
		},
		Rules: []Rule{{"9_*", ModeBlocked}, {"7_1_1", ModeSuperHot}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseRefusesWithItsLine(t *testing.T) {
	for file, want := range map[string]string{
		"rooms:\n- uid: 88\n  mode: hot":                          "line 2: want a string in quotes",
		"rooms:\n- uid: \"88\"\n  mode: hot\n  boards: [1_2_3]":   "line 4: want a string in quotes",
		"rooms:\n- uid: \"88\"\n  mode: warm":                     "line 3: unknown mode",
		"rooms:\n- uid: \"88\"\n  mode: none":                     "unknown mode",
		"rooms:\n- uid: \"88\"":                                   "line 2: room \"88\" has no mode",
		"rooms:\n- mode: hot":                                     "room uid",
		"rooms:\n- uid: \"88\"\n  mode: hot\n  board: x":          "line 4: unknown or repeated key \"board\"",
		"rooms:\n- uid: \"88\"\n  mode: hot\n  boards: [\"a b\"]": "bad board id",
		"roms: []":                               "line 1: unknown or repeated key \"roms\"",
		"rooms: []\nrooms: []":                   "repeated",
		"- a":                                    "want a mapping",
		"rooms: x":                               "want a list",
		"a: [":                                   "rooms file",
		"boards:\n- match: \"9_*\"\n  mode: hot": "can only be blocked",
		"boards:\n- match: \"[\"\n  mode: blocked":                     "not a pattern",
		"rooms:\n- {uid: \"8\", mode: hot}\n- {uid: \"8\", mode: hot}": "twice",
		strings.Repeat("#", MaxFile+1):                                 "at most",
	} {
		if _, err := Parse([]byte(file)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: got %v, want %q in it", file, err, want)
		}
	}
}

func TestTiersModeTheGreaterWins(t *testing.T) {
	file, err := Parse([]byte(sampleRooms))
	if err != nil {
		t.Fatal(err)
	}
	tiers := file.Resolve(map[string][]rankcache.BoardID{"88": {"not_asked"}, "89": {"5_5_5", "1_2_3"}, "90": {"6_6_6"}})
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
		{"not_asked", "", ModeNone}, // the file says which boards room 88 has
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
	if got := late.Resolve(nil).InOrder(ModeSuperHot); !slices.Equal(got, []rankcache.BoardID{"b", "a"}) {
		t.Errorf("super-hot boards in order: %v", got)
	}
	if got := (*Tiers)(nil).Mode("1_2_3", "88"); got != ModeNone {
		t.Errorf("nil tiers say %v", got)
	}
}

// FuzzParse holds that no file panics and that an accepted one resolves to
// legal boards only.
func FuzzParse(f *testing.F) {
	f.Add([]byte(sampleRooms))
	f.Add([]byte("rooms:\n- &a {uid: \"1\", mode: hot}\n- *a"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse(data)
		if err != nil {
			return
		}
		tiers := file.Resolve(nil)
		for _, m := range []Mode{ModeHot, ModeSuperHot} {
			for _, b := range tiers.Boards(m) {
				if err := b.Check(); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
