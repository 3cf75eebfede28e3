package rooms

import (
	"slices"
	"strings"
	"testing"
	"time"

	"rankcache"
	"rankcache/wire"
)

const rollingClasses = `
classes:
  - {name: gift-7d, board: "gift7d:{zone}:{period}", rolling: {of: gift-day, last: 7}}
  - {name: gift-day, board: "giftday:{zone}:{period}", period: day, tz: Europe/Berlin, ops: [incr], keep: 240h, grace: 7s, orders: 2h}
`

// A rolling class has what it needs of the other one, which may be further down, and both are durable.
func TestRollingClass(t *testing.T) {
	f, err := Parse([]byte(rollingClasses))
	if err != nil {
		t.Fatal(err)
	}
	c, of := f.Class("gift-7d"), f.Class("gift-day")
	if c.Calendar().String() != "day" || c.Calendar().Zone() != "Europe/Berlin" || c.Grace != 7*time.Second || c.Orders != 2*time.Hour || !c.Durable || !c.Rolls() || c.Rolling.Last != 7 || len(c.Ops) != 0 {
		t.Errorf("%+v", c)
	}
	if !of.Durable || of.Rolls() || !slices.Equal(of.RolledBy, []string{"gift-7d"}) {
		t.Errorf("%+v", of)
	}
	tiers := f.Resolve(nil)
	for b, want := range map[rankcache.BoardID]bool{"gift7d:7:20261125": true, "giftday:7:20261125": false, "1_2_3": false} {
		if _, _, rolls, _ := tiers.Of(b, ""); rolls != want {
			t.Errorf("%s: want %t", b, want)
		}
	}
}

// The default keep of the boards that are summed up suffices for the longest window; one that is written is not changed.
func TestKeepOfALongWindow(t *testing.T) {
	const hours = "classes:\n  - {name: h72, board: \"h72:{period}\", rolling: {of: h, last: 72}}\n  - {name: h9, board: \"h9:{period}\", rolling: {of: h, last: 9}}\n  - {name: h, board: \"h:{period}\", period: 1h, tz: UTC, ops: [incr]"
	f, err := Parse([]byte(hours + "}\n"))
	if err != nil || f.Class("h").Keep != 73*time.Hour || f.Class("h72").Keep != 72*time.Hour {
		t.Fatal(err)
	}
	for more, want := range map[string]string{", keep: 72h": "want at least 73h0m0s there, 73 periods", ", keep: 80h": ""} {
		if _, err := Parse([]byte(hours + more + "}\n")); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", more, err)
		}
	}
	for last, good := range map[string]bool{"100": true, "101": false, "2": true, "1": false} {
		if _, err := Parse([]byte(strings.Replace(hours, "last: 72", "last: "+last, 1) + "}\n")); (err == nil) != good {
			t.Errorf("last %s: %v", last, err)
		}
	}
}

// A day's increments change two boards. Those that a board is given are the earlier days of its window, over days of 23 and
// 25 hours, too.
func TestWindowOfARollingBoard(t *testing.T) {
	f, err := Parse([]byte(rollingClasses))
	if err != nil {
		t.Fatal(err)
	}
	c, of := f.Class("gift-7d"), f.Class("gift-day")
	for day, want := range map[string]string{"20261026": "gift7d:7:20261026 gift7d:7:20261027 20261020 20261021 20261022 20261023 20261024",
		"20260330": "gift7d:7:20260330 gift7d:7:20260331 20260324 20260325 20260326 20260327 20260328"} {
		b, ok := of.Parse(rankcache.BoardID("giftday:7:" + day))
		if !ok {
			t.Fatal(day)
		}
		into, err := c.RolledInto(b)
		if err != nil {
			t.Fatal(err)
		}
		sources, err := c.Sources(into[0].Period)
		if err != nil {
			t.Fatal(err)
		}
		got := []string{string(into[0].ID), string(into[1].ID)}
		for _, p := range sources {
			got = append(got, p.Tag)
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("got %s, want %s", text, want)
		}
	}
}

// Rolling classes that are set at run time may be of classes of the file, which are in force unchanged.
func TestRollingClassAtRunTime(t *testing.T) {
	f, err := Parse([]byte("classes:\n" + entry("a", "a:{zone}:{period}", "period: day", "ops: [incr]")))
	if err != nil {
		t.Fatal(err)
	}
	with, err := f.WithClasses([]byte("classes:\n"+entry("r", "r:{zone}:{period}", "rolling: {of: a, last: 2}")), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if a, r := with.Class("a"), with.Class("r"); !slices.Equal(a.RolledBy, []string{"r"}) || !a.Durable || !r.Rolls() {
		t.Errorf("%+v, %+v", a, r)
	}
	if a := f.Class("a"); len(a.RolledBy) != 0 || a.Durable {
		t.Errorf("the file in force was changed: %+v", a)
	}
	if err := with.CheckChange(with, time.Now()); err != nil {
		t.Error(err)
	}
	other, err := f.WithClasses([]byte("classes:\n"+entry("r", "r:{zone}:{period}", "rolling: {of: a, last: 2}", "keep: 80h")), time.Now())
	if err != nil || other.CheckChange(with, time.Now()) != nil {
		t.Error(err, other)
	}
}

// A rolling board is changed from the period before on.
func TestLogOfARollingBoard(t *testing.T) {
	f, err := Parse([]byte(rollingClasses))
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.Class("gift-7d").Calendar().Parse("20261125")
	if err != nil {
		t.Fatal(err)
	}
	before, err := f.Class("gift-7d").Calendar().Previous(p)
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Log(wire.DefaultNames(), "gift7d:7:20261125"); !got.First.Equal(before.Start.Add(-earliest)) {
		t.Errorf("first %v, want three minutes before %v", got.First, before.Start)
	}
}
