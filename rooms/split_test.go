package rooms

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"rankcache"
	"rankcache/wire"
)

// TestSplitClass: the modes of a class, a room and a rule are those of all shards, which have a log each.
func TestSplitClass(t *testing.T) {
	f, err := Parse([]byte(`
rooms: [{uid: "88", mode: hot, boards: ["world:5"]}]
boards: [{match: "world:6", mode: super-hot}, {match: "?orld:4", mode: blocked}]
classes:
  - {name: world, board: "world:{zone}", period: none, shards: 3, score: integer, mode: super-hot, dims: {zone: ["7", "8"]}}
  - {name: day, board: "day:{period}", period: day, shards: 2}
`))
	if err != nil {
		t.Fatal(err)
	}
	c := f.Class("world")
	if !c.Split() || c.Shards() != 3 || c.Boards() != 6 {
		t.Errorf("%d shards, %d boards", c.Shards(), c.Boards())
	}
	var named []string
	for _, rule := range f.ClassBoards(time.Now()) {
		named = append(named, rule.Match)
	}
	if want := "world:7.s0 world:7.s1 world:7.s2 world:8.s0 world:8.s1 world:8.s2"; strings.Join(named, " ") != want {
		t.Errorf("%v, want %s", named, want)
	}
	tiers := f.Resolve(nil).Bypassing([]Bypass{{Board: "world:6"}})
	for b, want := range map[rankcache.BoardID]struct {
		mode     Mode
		shards   int
		bypassed bool
	}{"world:5": {}, "world:5.s2": {mode: ModeHot}, "world:6.s0": {mode: ModeSuperHot, bypassed: true}, "world:9.s0": {}, "world:4": {mode: ModeBlocked}, "world:4.s1": {mode: ModeBlocked}, "world:5.s3": {}, "1_2_3": {}} {
		if !strings.Contains(string(b), ".s") && b != "1_2_3" {
			want.shards = 3
		}
		form := rankcache.ScoreInteger
		if b == "1_2_3" || b == "world:5.s3" {
			form = rankcache.ScoreNumber
		}
		if m, shown, _, shards := tiers.Of(b, ""); m != want.mode || shards != want.shards || shards != tiers.Shards(b) || shown != form || tiers.Bypassed(b) != want.bypassed {
			t.Errorf("%s: %v, form %d, %d shards, bypassed %t", b, m, shown, shards, tiers.Bypassed(b))
		}
	}
	if boards := tiers.Boards(ModeSuperHot); !slices.Equal(boards, []rankcache.BoardID{"world:6.s0", "world:6.s1", "world:6.s2"}) {
		t.Error(boards)
	}
	matched, err := Parse([]byte("boards: [{match: \"a:*\", mode: blocked}, {match: \"a:1\", mode: hot}]\nclasses: [{name: a, board: \"a:{zone}\", period: none, shards: 2}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if tiers := matched.Resolve(nil); !slices.Equal(tiers.Boards(ModeBlocked), []rankcache.BoardID{"a:1.s0", "a:1.s1"}) || tiers.Whole("a:1.s1") != "a:1" || tiers.Whole("b") != "b" {
		t.Errorf("%v", tiers.Boards(ModeBlocked))
	}
	if l := f.Log(wire.DefaultNames(), "day:20261122.s1"); l.Topic != wire.DefaultNames().Topic("day:20261122.s1") || l.Shared || l.Last.IsZero() {
		t.Errorf("%+v", l)
	}
}

// TestSplitIsRefused has what does not go with shards.
func TestSplitIsRefused(t *testing.T) {
	const other = "  - {name: other, board: \"o:{zone}\", period: none}\n"
	for settings, want := range map[string]string{
		"shards: 1":                         "from 2 to 64",
		"shards: 65":                        "from 2 to 64",
		"shards: two":                       "from 2 to 64",
		"shards: 4, ties: first":            "shards: don't go with ties: first",
		"shards: 4, ops: [incr], trim: 10":  "shards: don't go with trim",
		"shards: 4, guard: {members: 5}":    "shards: don't go with guard: members",
		"shards: 4, ids: {act: 1, rank: 2}": "shards: don't go with ids",
	} {
		_, err := Parse([]byte("classes:\n  - {name: a, board: \"a:{zone}\", period: none, " + settings + "}\n" + other))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", settings, err, want)
		}
	}
	split := "  - {name: a, board: \"a:{zone}\", period: none, shards: 4}\n"
	for name, c := range map[string]struct{ text, want string }{
		"the id of a shard":  {"classes:\n" + split + "  - {name: b, board: \"a:{zone}:s3\", period: none}\n", ".s<n>"},
		"a rule for a shard": {"classes:\n" + split + "boards: [{match: \"a:7.s3\", mode: hot}]\n", "name the whole board, a:7"},
		"a room's shard":     {"classes:\n" + split + "rooms: [{uid: \"1\", mode: hot, boards: [\"a:7.s0\"]}]\n", "name the whole board, a:7"},
		"a sum of it":        {"classes:\n  - {name: a, board: \"a:{period}\", period: day, shards: 4, ops: [incr]}\n  - {name: week, board: \"w:{period}\", rolling: {of: a, last: 7}}\n", "is not split"},
		"a class of groups":  {"classes:\n  - {name: a, board: a, period: none, shards: 4}\n  - {name: b, board: b, period: none, ids: {act: 1, rank: 1}, group: a}\n", "groups is not split"},
		"too many":           {"classes:\n  - {name: a, board: \"a:{zone}\", period: none, shards: 64, mode: hot, dims: {zone: [" + zones(16) + "]}}\n", "more than 1000 boards"},
	} {
		if _, err := Parse([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	parse := func(text string) *File {
		f, err := Parse([]byte("classes:\n" + text))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	plain := parse(strings.Replace(split, ", shards: 4", "", 1))
	for _, change := range [][2]*File{{parse(split), plain}, {plain, parse(split)}, {parse(split), parse(strings.Replace(split, "4", "8", 1))}} {
		if err := change[0].CheckChange(change[1], time.Now()); err == nil || !strings.Contains(err.Error(), "shards can't change from") {
			t.Errorf("a change of shards: %v", err)
		}
	}
}

func zones(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%q", fmt.Sprint(i))
	}
	return strings.Join(names, ", ")
}
