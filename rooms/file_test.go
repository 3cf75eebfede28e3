package rooms

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"rankcache"
)

const sampleFile = `
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
	got, err := Parse([]byte(sampleFile))
	if err != nil {
		t.Fatal(err)
	}
	want := &File{
		Rooms: []Room{
			{UID: "88", Mode: ModeSuperHot, Boards: []rankcache.BoardID{"1_2_3"}},
			{UID: "89", Mode: ModeHot},
			{UID: "90", Mode: ModeBlocked},
		},
		Rules: []Rule{{Match: "9_*", Mode: ModeBlocked}, {Match: "7_1_1", Mode: ModeSuperHot}},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(File{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseRejects(t *testing.T) {
	for file, want := range map[string]string{
		"rooms:\n- uid: 88\n  mode: hot":                                      "line 2: want a string in quotes",
		"rooms:\n- uid: \"88\"\n  mode: hot\n  boards: [1_2_3]":               "line 4: want a string in quotes",
		"rooms:\n- uid: \"88\"\n  mode: warm":                                 "line 3: unknown mode",
		"rooms:\n- uid: \"88\"\n  mode: none":                                 "unknown mode",
		"rooms:\n- uid: \"88\"":                                               "line 2: room \"88\" has no mode",
		"rooms:\n- mode: hot":                                                 "room uid",
		"rooms:\n- uid: \"88\"\n  mode: hot\n  board: x":                      "line 4: unknown or repeated key \"board\"",
		"rooms:\n- uid: \"88\"\n  mode: hot\n  boards: [\"a b\"]":             "bad board id",
		"rooms:\n- uid: \"88\"\n  mode: hot\n  boards: [\"rankcache:rooms\"]": "line 4: bad board id \"rankcache:rooms\"",
		"boards:\n- match: \"rankcache:ends\"\n  mode: super-hot":             "line 2: bad board id",
		"classes:\n- {name: x, board: \"rankcache:{a}\", period: none}":       "line 2: class \"x\": board \"rankcache:{a}\", longest id: bad board id",
		"classes:\n- {name: x, board: \"{a}:{b}\", period: none, mode: hot, dims: {a: [\"7\", \"rankcache\"], b: [\"rooms\"]}}": "line 2: class x: bad board id \"rankcache:rooms\"",
		"roms: []":             "line 1: unknown or repeated key \"roms\"",
		"rooms: []\nrooms: []": "repeated",
		"- a":                  "want a mapping",
		"rooms: x":             "want a list",
		"a: [":                 "rooms file",
		"boards:\n- match: \"[\"\n  mode: blocked":                     "not a pattern",
		"rooms:\n- {uid: \"8\", mode: hot}\n- {uid: \"8\", mode: hot}": "twice",
		strings.Repeat("#", MaxFile+1):                                 "at most",
	} {
		if _, err := Parse([]byte(file)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: got %v, want %q in it", file, err, want)
		}
	}
}

// FuzzParse checks that no file panics and that an accepted one resolves to
// legal boards only, those of classes to boards of one class.
func FuzzParse(f *testing.F) {
	f.Add([]byte(sampleFile))
	f.Add([]byte(sampleClasses))
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
		for _, rule := range file.ClassBoards(time.Unix(1795339230, 0)) {
			owners := 0
			for _, c := range file.Classes {
				if _, ok := c.Parse(rankcache.BoardID(rule.Match)); ok {
					owners++
				}
			}
			if owners != 1 {
				t.Fatalf("%s is of %d classes", rule.Match, owners)
			}
		}
	})
}
