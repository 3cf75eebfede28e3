package class

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rankcache"
	"rankcache/wire"
)

func newClass(t testing.TB, name, board, period string) *Class {
	t.Helper()
	c, err := New(name, board, calendar(t, period, "Asia/Shanghai"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestBoards(t *testing.T) {
	at := instant(t, "2026-11-22T08:17:00+08:00")
	seven := map[string]string{"zone": "7"}
	for _, c := range []struct {
		board, period string
		dims          map[string]string
		id, topic     string
		pattern       string
	}{
		{"gift:{zone}:{period}", "30m", seven, "gift:7:20261122-17", "update_class_x.20261122", "gift:{zone}:20261122-17"},
		{"gift:{zone}:{period}", "1h", seven, "gift:7:20261122-H08", "update_class_x.20261122", "gift:{zone}:20261122-H08"},
		{"{period}_gift.{zone}", "day", seven, "20261122_gift.7", "update_cache_20261122_gift.7", "20261122_gift.{zone}"},
		{"gift:{zone}:{app}", "none", map[string]string{"zone": "7", "app": "Aa0"}, "gift:7:Aa0", "update_cache_gift.7.Aa0", "gift:{zone}:{app}"},
		{"1_2_3", "none", nil, "1_2_3", "update_cache_1_2_3", "1_2_3"},
	} {
		class := newClass(t, "x", c.board, c.period)
		b, err := class.At(c.dims, at)
		if err != nil || string(b.ID) != c.id || b.Topic(wire.DefaultNames()) != c.topic || class.Pattern(b.Period) != c.pattern {
			t.Errorf("%s: %+v, topic %s, pattern %s, %v", c.board, b, b.Topic(wire.DefaultNames()), class.Pattern(b.Period), err)
		}
		var values []string
		for _, name := range class.Dimensions() {
			values = append(values, c.dims[name])
		}
		if got := string(class.AppendID([]byte("x"), values, b.Period.Tag)); got != "x"+c.id {
			t.Errorf("%s: appended %s", c.board, got)
		}
		if parsed, ok := class.Parse(b.ID); !ok || parsed.ID != b.ID || parsed.Period != b.Period || !maps.Equal(parsed.Dims, b.Dims) {
			t.Errorf("%s: parsed as %+v, %v", b.ID, parsed, ok)
		}
	}
}

func TestBesides(t *testing.T) {
	b, err := newClass(t, "x", "gift:{zone}:{period}", "30m").At(map[string]string{"zone": "7"}, instant(t, "2026-11-22T23:59:00+08:00"))
	if err != nil {
		t.Fatal(err)
	}
	next, err := b.Next()
	if err != nil || next.ID != "gift:7:20261123-01" {
		t.Errorf("%+v, %v", next, err)
	}
	if back, err := next.Previous(); err != nil || !cmp.Equal(back.Dims, b.Dims) || back.ID != b.ID {
		t.Errorf("%+v, %v", back, err)
	}
}

func TestBadDimensions(t *testing.T) {
	class := newClass(t, "x", "gift:{zone}:{period}", "day")
	for _, c := range []struct {
		dims map[string]string
		want string
	}{
		{nil, "zone is missing"},
		{map[string]string{"zone": ""}, "0 characters"},
		{map[string]string{"zone": strings.Repeat("x", 65)}, "65 characters"},
		{map[string]string{"zone": "a:b"}, "want characters"},
		{map[string]string{"zone": "a-b"}, "want characters"},
		{map[string]string{"zone": "ü"}, "want characters"},
		{map[string]string{"zone": "a\n"}, "want characters"},
		{map[string]string{"zone": "7", "room": "8"}, `want ["zone"]`},
		{map[string]string{"zone": "7", "period": "20261122"}, `want ["zone"]`},
	} {
		if b, err := class.At(c.dims, instant(t, "2026-11-22T00:00:00Z")); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %+v, %v; want %q", c.dims, b, err, c.want)
		}
	}
}

// A template that is all placeholders has no board whose id would be a key of rankcache itself.
func TestDimensionsMakeNoOwnKey(t *testing.T) {
	class := newClass(t, "x", "{a}:{b}", "none")
	if b, err := class.At(map[string]string{"a": "rankcache", "b": "rooms"}, time.Now()); !errors.Is(err, rankcache.ErrBoard) {
		t.Errorf("%+v, %v", b, err)
	}
}

func TestNewRejects(t *testing.T) {
	for _, c := range []struct{ name, board, period, want string }{
		{"", "a", "none", "class name"},
		{"Gift", "a", "none", "class name"},
		{"gift.day", "a", "none", "class name"},
		{strings.Repeat("a", 41), "a", "none", "class name"},
		{"x", "", "none", "0 characters"},
		{"x", "gift:{zone}", "day", "want {period}"},
		{"x", "gift:{period}", "none", "has period none"},
		{"x", "gift:{period}:{period}", "day", "{period} twice"},
		{"x", "gift:{zone}:{zone}", "none", "{zone} twice"},
		{"x", "gift-{zone}", "none", "on each side"},
		{"x", "{zone}{app}", "none", "want 1 to 32 characters"},
		{"x", "gift:{zone", "none", "on each side"},
		{"x", "gift:{}", "none", "want 1 to 32 characters"},
		{"x", "gift:{Zone}", "none", "want 1 to 32 characters"},
		{"x", "gift:{limit}", "none", "choose another"},
		{"x", "gift:{gap}", "none", "choose another"},
		{"x", "gift 1:{zone}", "none", "bad board id"},
		{"x", "rankcache:{zone}", "none", "rankcache's own"},
		{"x", strings.Repeat("{a}:", 100_000), "none", "at most 400"},
		{"x", "{a}:{b}:{c}:{period}", "day", "longest id: bad board id: 203 characters"},
	} {
		if _, err := New(c.name, c.board, calendar(t, c.period, "UTC")); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q %q: %v, want %q", c.name, c.board, err, c.want)
		}
	}
}

func TestConflicts(t *testing.T) {
	for _, c := range []struct {
		a, period, b, other string
		want                string // "" for none
	}{
		{"gift:{zone}:{period}", "30m", "gift:{zone}:{period}", "day", "one id"},
		{"gift:{zone}:{period}", "30m", "gift_{app}.{period}", "30m", "one id"},
		{"gift:{zone}", "none", "gift.x", "none", "one id"},
		{"gift:{zone}", "none", "gift.x-y", "none", ""},
		{"gift:{zone}", "none", "gift:{period}", "day", "one id"},
		{"gift:{zone}", "none", "gift:{period}", "30m", ""}, // a dimension has no "-"
		{"gift:{period}", "month", "gift:202611", "none", "one id"},
		{"gift:{period}", "month", "gift:202613", "none", ""},
		{"gift:{zone}:{period}", "day", "like:{zone}:{period}", "day", ""},
		{"gift:{zone}:{period}", "day", "{zone}:gift:{period}", "day", "one id"}, // gift:gift:20261122
		{"gift:{zone}:{period}", "day", "gift:{period}", "day", ""},
		{"gift:{zone}", "none", "gift:{zone}:{app}", "none", ".p<n>"},
		{"gift:{zone}:p12", "none", "gift:{zone}", "none", ".p<n>"},
		{"gift:{zone}:p1x", "none", "gift:{zone}", "none", ""},
		{"gift:{zone}:pages", "none", "gift:{zone}", "none", ""},
		{"gift:{zone}:{period}", "day", "gift:{zone}", "none", ""},
	} {
		a, b := newClass(t, "a", c.a, c.period), newClass(t, "b", c.b, c.other)
		for _, err := range []error{Conflict(a, b), Conflict(b, a)} {
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s (%s) and %s (%s): %v, want %q", c.a, c.period, c.b, c.other, err, c.want)
			}
		}
	}
}

// FuzzParse checks that an id is of a class only if the class makes it again, and
// that classes without a conflict have no id in common.
func FuzzParse(f *testing.F) {
	for _, id := range []string{"gift:7:20261122-17", "gift:7:20261122-H08", "gift:7:20261122", "gift.7.20261122-17", "like:7", "like:7.p1", "1_2_3", "", ":", "::", "gift::20261122-17", "week.2026W53:x:y"} {
		f.Add(id)
	}
	var classes []*Class
	for _, c := range [][2]string{{"gift:{zone}:{period}", "30m"}, {"gift:{zone}:H:{period}", "1h"}, {"{zone}:day:{period}.x", "day"}, {"like:{zone}", "none"},
		{"week.{period}:{zone}:{app}", "week"}, {"1_2_3", "none"}} {
		classes = append(classes, newClass(f, "x", c[0], c[1]))
	}
	for i, a := range classes {
		for _, b := range classes[:i] {
			if err := Conflict(a, b); err != nil {
				f.Fatal(err)
			}
		}
	}
	f.Fuzz(func(t *testing.T, id string) {
		owners := slices.DeleteFunc(slices.Clone(classes), func(c *Class) bool {
			b, ok := c.Parse(rankcache.BoardID(id))
			if !ok {
				return true
			}
			again, err := c.At(b.Dims, b.Period.Start)
			if err != nil || string(again.ID) != id || again.Period != b.Period || again.ID.Check() != nil {
				t.Fatalf("%q is parsed as %+v, which has the id %q: %v", id, b, again.ID, err)
			}
			return false
		})
		if len(owners) > 1 {
			t.Fatalf("%q is of %d classes", id, len(owners))
		}
	})
}
