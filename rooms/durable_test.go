package rooms

import (
	"testing"
	"time"
)

// A class is durable by its own key, by its ledger, by what it feeds, or because another one feeds it,
// by way of others, too.
func TestDurable(t *testing.T) {
	f, err := Parse([]byte("classes:\n" +
		entry("total", "total", "period: none") +
		entry("day", "day:{period}", "period: day", "ops: [incr]", "feeds: [total]") +
		entry("hour", "hour:{period}", "period: 1h", "ops: [incr]", "feeds: [day]") +
		entry("kept", "kept", "period: none", "ledger: true", "durable: true", "orders: 10m") +
		entry("own", "own", "period: none", "durable: true") +
		entry("plain", "plain", "period: none", "durable: false", "orders: 1m") +
		entry("other", "other", "period: none")))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"total": true, "day": true, "hour": true, "kept": true, "own": true, "plain": false, "other": false} {
		if got := f.Class(name).Durable; got != want {
			t.Errorf("class %s: durable %t, want %t", name, got, want)
		}
	}
}

// Classes set at run time make those of the file durable that they feed; the file itself stays as it was.
func TestDurableAtRunTime(t *testing.T) {
	f, err := Parse([]byte("classes:\n" + entry("total", "total", "period: none") + entry("other", "other", "period: none", "durable: false")))
	if err != nil {
		t.Fatal(err)
	}
	with, err := f.WithClasses([]byte(`{"classes": [{"name": "gift", "board": "gift:{period}", "period": "day", "ops": ["incr"], "feeds": ["total"]},
		{"name": "sure", "board": "sure", "period": "none", "durable": true}]}`), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"gift": true, "total": true, "sure": true, "other": false} {
		if got := with.Class(name).Durable; got != want {
			t.Errorf("class %s: durable %t, want %t", name, got, want)
		}
	}
	if f.Class("total").Durable {
		t.Error("the class of the file has changed")
	}
	if _, err := f.WithClasses([]byte(`classes: [{name: gift, board: gift, period: none, ops: [incr], feeds: [other]}]`), time.Now()); err == nil {
		t.Error("a class that may not be durable is fed")
	}
}

func TestOrdered(t *testing.T) {
	for _, c := range []struct {
		lines          []string
		ordered, board bool
	}{
		{[]string{"ops: [incr]"}, false, false},
		{nil, true, false}, // all ops
		{[]string{"ops: [incr, delete]"}, true, false},
		{[]string{"ops: [set]"}, true, false},
		{[]string{"ops: [best]"}, false, false},
		{[]string{"ops: [best, incr]"}, true, false},
		{[]string{"ops: [best]", "ties: first"}, true, true},
		{[]string{"ops: [incr]", "ties: first"}, true, true},
		{[]string{"ops: [incr]", "ties: last"}, true, true},
		{[]string{"ops: [incr]", "guard: {changes: 60/1m, members: 9}"}, false, false}, // which only counts
		{[]string{"ops: [incr]", "guard: {changes: 60/1m, action: refuse}"}, true, true},
		{[]string{"ops: [incr]", "guard: {members: 9, action: refuse}"}, true, true},
		{[]string{"ops: [incr]", "guard: {gain: 9/1h, action: refuse}"}, true, true},
		{[]string{"ops: [incr]", "guard: {action: refuse}"}, false, false}, // of what?
	} {
		f, err := Parse([]byte("classes:\n" + entry("a", "a", append(c.lines, "period: none")...)))
		if err != nil {
			t.Fatal(err)
		}
		if a := f.Classes[0]; a.Ordered() != c.ordered || a.OrderedAsBoard() != c.board {
			t.Errorf("%q: ordered %t, as a board %t; want %t, %t", c.lines, a.Ordered(), a.OrderedAsBoard(), c.ordered, c.board)
		}
	}
}
