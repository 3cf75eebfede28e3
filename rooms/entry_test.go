package rooms

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rankcache"
)

func TestEntryRoundTrips(t *testing.T) {
	for text, want := range map[string]struct {
		entry Entry
		field string
	}{
		`{"uid":"88","mode":"super-hot"}`:                    {Entry{Room: &Room{UID: "88", Mode: ModeSuperHot}}, "room:88"},
		`{"uid":"88","mode":"hot","boards":["1_2_3","4:5"]}`: {Entry{Room: &Room{UID: "88", Mode: ModeHot, Boards: []rankcache.BoardID{"1_2_3", "4:5"}}}, "room:88"},
		`{"uid":"88","mode":"hot","boards":[]}`:              {Entry{Room: &Room{UID: "88", Mode: ModeHot, Boards: []rankcache.BoardID{}}}, "room:88"},
		`{"match":"9_*","mode":"blocked"}`:                   {Entry{Rule: &Rule{Match: "9_*", Mode: ModeBlocked}}, "board:9_*"},
		`{"match":"1_2_3","mode":"super-hot"}`:               {Entry{Rule: &Rule{Match: "1_2_3", Mode: ModeSuperHot}}, "board:1_2_3"},
	} {
		got, err := ParseEntry([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want.entry, got); diff != "" || got.Field() != want.field {
			t.Errorf("%s: field %q (-want +got):\n%s", text, got.Field(), diff)
		}
		if back, err := json.Marshal(got); err != nil || string(back) != text {
			t.Errorf("%s written back as %s, %v", text, back, err)
		}
	}
}

func TestParseEntryRejects(t *testing.T) {
	for text, want := range map[string]string{
		``:                                                       "EOF",
		`{}`:                                                     "unknown mode",
		`{"mode":"hot"}`:                                         "want one of uid and match",
		`{"uid":"8","mode":"none"}`:                              "unknown mode",
		`{"uid":"8","mode":"warm"}`:                              "unknown mode",
		`{"uid":8,"mode":"hot"}`:                                 "not a string",
		`{"uid":"8\n","mode":"hot"}`:                             "room uid",
		"{\"uid\":\"\xff\",\"mode\":\"hot\"}":                    "UTF-8",
		`{"uid":"8\ud800","mode":"hot"}`:                         "surrogate",
		`{"uid":"8","UID":"9","mode":"hot"}`:                     `"UID"`,
		`{"uid":"8","mode":"hot","mode":"hot"}`:                  `"mode" is there twice`,
		`{"uid":"8","match":"a","mode":"hot"}`:                   "want one of uid and match",
		`{"uid":"8","mode":"hot","board":["a"]}`:                 `"board"`,
		`{"uid":"8","` + strings.Repeat("x", 9999) + `":1}`:      "no field",
		`{"match":"9` + strings.Repeat("x", 9999) + `"}`:         "unknown mode",
		`{"uid":"8","mode":"` + strings.Repeat("x", 9999) + `"}`: "unknown mode",
		`{"uid":"8","mode":"hot","boards":["a b"]}`:              "bad board id",
		`{"uid":"8","mode":"hot","boards":["rankcache:rooms"]}`:  "bad board id",
		`{"match":"rankcache:rooms","mode":"super-hot"}`:         "bad board id",
		`{"uid":"8","mode":"hot"}{}`:                             "after top-level value",
		`{"match":"[","mode":"blocked"}`:                         "not a pattern",
		`{"match":"a","mode":"hot","boards":["a"]}`:              "boards go with a uid",
		`{"uid":"` + strings.Repeat("8", 65) + `","mode":"hot"}`: "room uid",
		strings.Repeat(" ", MaxEntry+1):                          "at most",
	} {
		if _, err := ParseEntry([]byte(text)); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 400 {
			t.Errorf("%.60q: got %v, want %q in at most 400 bytes", text, err, want)
		}
	}
}

// FuzzParseEntry checks that an accepted entry is written and read back as the
// same entry, and that it names legal boards only.
func FuzzParseEntry(f *testing.F) {
	f.Add([]byte(`{"uid":"88","mode":"super-hot","boards":["1_2_3"]}`))
	f.Add([]byte(`{"match":"9_*","mode":"blocked"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		entry, err := ParseEntry(data)
		if err != nil {
			return
		}
		text, err := json.Marshal(entry)
		if err != nil {
			t.Fatal(err)
		}
		back, err := ParseEntry(text)
		if err != nil && len(text) <= MaxEntry { // escapes may make it longer
			t.Fatalf("accepted %q, then rejected %q: %v", data, text, err)
		}
		if diff := cmp.Diff(entry, back); err == nil && diff != "" {
			t.Fatal(diff)
		}
		if entry.Room != nil {
			for _, b := range entry.Room.Boards {
				if err := b.Check(); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
