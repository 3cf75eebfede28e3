package rooms

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rankcache"
)

var sixOClock = time.Date(2026, 11, 22, 18, 0, 0, 0, time.UTC)

func TestBypassRequest(t *testing.T) {
	for text, want := range map[string]Bypass{
		`{"board":"1_2_3","for_s":600,"by":"alice@desk"}`: {Board: "1_2_3", By: "alice@desk", From: sixOClock, Until: sixOClock.Add(10 * time.Minute)},
		`{"all":true,"for_s":86400,"by":"ü"}`:             {All: true, By: "ü", From: sixOClock, Until: sixOClock.Add(24 * time.Hour)},
	} {
		got, err := ParseBypassRequest([]byte(text), sixOClock)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", text, err, diff)
		}
		stored, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := ParseBypass(stored); err != nil || back != got {
			t.Errorf("%s was stored as %s and read as %+v, %v", text, stored, back, err)
		}
	}
}

func TestBypassRequestRefuses(t *testing.T) {
	x := strings.Repeat
	for text, want := range map[string]string{
		``:                     "EOF",
		`{"for_s":1,"by":"a"}`: "either a board or all",
		`{"board":"b","all":true,"for_s":1,"by":"a"}`:        "either a board or all",
		`{"board":"*","for_s":1,"by":"a"}`:                   "bad board id",
		`{"board":"b","for_s":0,"by":"a"}`:                   "want 1 to 86400",
		`{"board":"b","for_s":86401,"by":"a"}`:               "want 1 to 86400",
		`{"board":"b","for_s":1}`:                            "operator's name",
		`{"board":"b","for_s":1,"by":"a\nb"}`:                "operator's name",
		`{"board":"b","for_s":1,"by":"` + x("a", 129) + `"}`: "operator's name",
		`{"board":"b","for_s":1,"by":"a","why":1}`:           "no field here",
		`{"board":"b","for_s":1,"by":"a"}{}`:                 "after top-level value",
	} {
		if _, err := ParseBypassRequest([]byte(text), sixOClock); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %q", text, err, want)
		}
	}
}

func TestParseBypassRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`{"board":"b","by":"a","from":"2026-11-22T18:00:00Z","until":"2026-11-22T18:00:00Z"}`:       "end after it began",
		`{"board":"b","by":"a","from":"2026-11-22T18:00:00Z","until":"2026-11-23T18:00:00.001Z"}`:   "within 24h",
		`{"board":"b","by":"a","until":"2026-11-22T18:00:00Z"}`:                                     "within 24h",
		`{"board":"b","by":"a","from":"2026-11-22T18:00:00Z","until":"2026-11-22T19:00:00Z","x":1}`: "no field here",
		strings.Repeat(" ", MaxBypassJSON+1):                                                        "at most",
	} {
		if _, err := ParseBypass([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %q", text, err, want)
		}
	}
}

func TestTiersBypass(t *testing.T) {
	early, late := sixOClock.Add(time.Minute), sixOClock.Add(time.Hour)
	named := func(until time.Time) Bypass { return Bypass{Board: "a", By: "n", From: sixOClock, Until: until} }
	all := func(until time.Time) Bypass { return Bypass{All: true, By: "n", From: sixOClock, Until: until} }
	for _, c := range []struct {
		name     string
		bypasses []Bypass
		a, b     Bypass // in force for the boards; zero: none
	}{
		{"none", nil, Bypass{}, Bypass{}},
		{"one board", []Bypass{named(early)}, named(early), Bypass{}},
		{"all", []Bypass{all(early)}, all(early), all(early)},
		{"both, all longer", []Bypass{all(late), named(early)}, all(late), all(late)},
		{"both, the board longer", []Bypass{all(early), named(late)}, named(late), all(early)},
	} {
		tiers := (&File{}).Resolve(nil).Bypassing(c.bypasses)
		for board, want := range map[string]Bypass{"a": c.a, "b": c.b} {
			got, is := tiers.Bypass(rankcache.BoardID(board))
			if got != want || is != (want != Bypass{}) || tiers.Bypassed(rankcache.BoardID(board)) != is {
				t.Errorf("%s: board %s: %+v, %v; want %+v", c.name, board, got, is, want)
			}
		}
		if tiers.Bypassing(nil).Bypassed("a") {
			t.Errorf("%s: stays after its end", c.name)
		}
	}
	if (*Tiers)(nil).Bypassed("a") {
		t.Error("no tiers bypass a board")
	}
}

// FuzzParseBypass checks that what is accepted is written and read back as the same.
func FuzzParseBypass(f *testing.F) {
	f.Add([]byte(`{"board":"b","by":"a","from":"2026-11-22T18:00:00+02:00","until":"2026-11-22T18:10:00Z"}`))
	f.Add([]byte(`{"all":true,"by":"a","from":"2026-11-22T18:00:00Z","until":"2026-11-22T18:10:00Z"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := ParseBypass(data)
		if err != nil {
			return
		}
		text, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := ParseBypass(text); err != nil || back != b {
			t.Fatalf("%q was read as %+v, written as %s and read as %+v, %v", data, b, text, back, err)
		}
	})
}
