package rooms

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"rankcache"
	"rankcache/wire"
)

const sampleClasses = `
classes:
  - name: gift-half-hour
    title: Gifts of this half hour
    board: "gift:{zone}:{period}"
    period: 30m
    tz: Asia/Shanghai
    grace: 3s
    keep: 24h
    lead: 30s
    ties: first
    ops: [incr]
    mode: super-hot
    dims: {zone: ["1", "2"]}
    feeds: [gift-day, gift-total]
    trim: 1000
    orders: 2h
    top: 50
    ledger: true
    guard: {changes: 60/1m, members: 1000000, action: refuse}
    ids: {act: 7, rank: 2}
    group: gift-total
  - name: gift-day
    board: "giftday:{zone}:{period}"
    period: day
    tz: Asia/Shanghai
    orders: 2h
  - name: gift-total
    board: gifttotal
    period: none
    orders: 2h
    score: integer
`

func TestParseClasses(t *testing.T) {
	f, err := Parse([]byte(sampleClasses))
	if err != nil {
		t.Fatal(err)
	}
	all := []wire.Op{wire.OpIncr, wire.OpSet, wire.OpDelete}
	want := Classes{
		{Title: "Gifts of this half hour", Grace: 3 * time.Second, Keep: 24 * time.Hour, Lead: 30 * time.Second, Orders: 2 * time.Hour, Ties: TiesFirst, Form: rankcache.ScoreInteger,
			Ops: []wire.Op{wire.OpIncr}, Mode: ModeSuperHot, Dims: map[string][]string{"zone": {"1", "2"}}, Feeds: []Feed{{Class: "gift-day"}, {Class: "gift-total"}}, Trim: 1000, Top: 50,
			Ledger: true, Durable: true, Guard: Guard{60, time.Minute, 1_000_000, 0, 0, true}, IDs: IDs{7, 2}, Group: "gift-total"},
		{Grace: 5 * time.Second, Keep: 72 * time.Hour, Lead: time.Minute, Orders: 2 * time.Hour, Ties: TiesMember, Ops: all, Top: 100, Durable: true},
		{Grace: 5 * time.Second, Lead: time.Minute, Orders: 2 * time.Hour, Ties: TiesMember, Form: rankcache.ScoreInteger, Ops: all, Top: 100, Durable: true},
	}
	if diff := cmp.Diff(want, f.Classes, cmpopts.IgnoreUnexported(Class{}), cmpopts.IgnoreFields(Class{}, "Class")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c := f.Class("gift-day"); c.Template() != "giftday:{zone}:{period}" || c.Calendar().String() != "day" || c.Calendar().Zone() != "Asia/Shanghai" || f.Class("x") != nil {
		t.Errorf("%+v", c)
	}
}

// entry returns a class entry of a rooms file: name, board and period day, and the
// lines.
func entry(name, board string, lines ...string) string {
	return fmt.Sprintf("- name: %s\n  board: %q\n", name, board) + "  " + strings.Join(append(lines, ""), "\n  ") + "\n"
}

// Boards without a period are kept for ever unless the class tells for how long after their last
// change, which no grace is compared with.
func TestKeepOfAClassWithoutPeriods(t *testing.T) {
	for line, want := range map[string]time.Duration{"": 0, "keep: 8760h": 8760 * time.Hour, "keep: 1s": time.Second, "grace: 100h": 0} {
		f, err := Parse([]byte("classes:\n" + entry("a", "a", "period: none", line)))
		if err != nil || f.Classes[0].Keep != want {
			t.Errorf("%q: %+v, %v", line, f, err)
		}
	}
}

func TestBoardOfAClass(t *testing.T) {
	f, err := Parse([]byte(sampleClasses))
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[rankcache.BoardID]string{"gift:7:20261122-35": "gift-half-hour", "giftday:7:20261122": "gift-day", "gifttotal": "gift-total",
		"gift:7:20261122": "", "gift:7": "", "1_2_3": ""} {
		b, c, ok := f.Board(id)
		switch {
		case ok != (want != ""):
			t.Errorf("%s: %+v, %v", id, b, ok)
		case ok && (c.Name() != want || b.Class != c.Class || b.ID != id):
			t.Errorf("%s: %+v of %s", id, b, c.Name())
		}
	}
}

func TestParseRejectsClasses(t *testing.T) {
	a := func(lines ...string) string { return entry("a", "a:{zone}:{period}", append(lines, "period: day")...) }
	b := func(lines ...string) string { return entry("b", "b:{zone}:{period}", append(lines, "period: day")...) }
	season := func(lines ...string) string { return entry("a", "a:{period}", lines...) }
	s1 := "seasons:\n  - {tag: s1, from: 2026-11-01T00:00:00Z, to: 2026-12-01T00:00:00Z}"
	onlyIncr := "ops: [incr]"
	of := func(lines ...string) string { return a(append(lines, onlyIncr)...) }
	r := func(lines ...string) string { return entry("r", "r:{zone}:{period}", lines...) }
	for _, c := range []struct{ classes, want string }{
		// One class.
		{entry("a", "a:{period}", "period: 60m"), "line 2: class \"a\": period of an hour: write 1h"},
		{entry("a", "a:{period}", "period: 7m"), "line 2: class \"a\": period 7m0s does not divide a day"},
		{entry("a", "a:{period}", "period: 5s"), "line 2: class \"a\": period 5s: want at least 1m"},
		{entry("a", "a"), "line 2: class \"a\": no period: want none"},
		{entry("a", "a:{period}", "period: day", "tz: Mars/Base"), "line 2: class \"a\": time zone"},
		{entry("A", "a", "period: none"), "line 2: class \"A\": class name"},
		{entry("a", "aaaa:bb:{x}:{y}:{z}", "period: none"), "longest id: bad board id"},
		{entry("a", "a:{zone}", "period: day"), "want {period} in it"},
		{a("zone: 7"), "line 4: unknown or repeated key \"zone\""},
		{a("grace: 5"), "line 4: want a string in quotes"},
		{a("grace: -5s"), "line 4: \"-5s\": want a duration"},
		{a("lead: 2h"), "line 4: \"2h\": want a duration from 0s to 1h0m0s"},
		{a("linger: 10"), "line 4: want a string in quotes"},
		{a("linger: -1s"), "line 4: \"-1s\": want a duration"},
		{a("linger: [1m]"), "line 4: "},
		{a("linger: 2h", "keep: 2h"), "line 2: class a: linger 2h0m0s is longer than what is left of keep 2h0m0s behind grace 5s: want at most 1h59m55s"},
		{entry("a", "a", "period: none", "linger: 0s"), "line 2: class a: linger: a class without periods has no boards that end"},
		{entry("a", "a:{period}", "period: 1m", "mode: super-hot", "linger: 17h"), "line 2: class a: linger: more than 1000 ended boards"},
		{a("orders: 1s"), "line 4: \"1s\": want a duration"},
		{a("orders: 90.5s"), "line 2: class a: orders 1m30.5s: want whole seconds"},
		{a("grace: 2h", "keep: 1h"), "line 2: class a: grace 2h0m0s is longer than keep"},
		{a("ties: random"), "line 4: \"random\": want one of [member first last]"},
		{a("ties: first", "score: number"), "line 2: class a: ties: first keeps the tie-break in the fraction"},
		{a("order: ascending"), "line 4: \"ascending\": want one of [desc asc]"},
		{a("order: 1"), "line 4: want a string in quotes"},
		{a("order: [asc]"), "line 4: want"},
		{a("ops: []"), "line 2: class a: ops: want at least one"},
		{a("ops: [incr, incr]"), "line 4: op incr twice"},
		{a("ops: [add]"), "line 4: "},
		{a("top: 501"), "line 4: \"501\": want an integer from 1 to 500"},
		{a("top: \"50\""), "line 4: "},
		{a("ledger: yes please"), "line 4: "},
		{a("trim: 100"), "line 2: class a: trim: want ops: [incr] or [best]"},
		{a("trim: 100", "ops: [best, set]"), "line 2: class a: trim: want ops: [incr] or [best]"},
		{a("ops: [best, best]"), "line 4: op best twice"},
		{a("ops: [trim]"), "line 4: unknown op \"trim\": want incr, set, best or delete"},
		{a("ops: best"), "line 4: want"},
		{a("ledger: true", "final_rows: 1000"), "line 5: "},
		{a("ledger: true", "final_rows: most"), "line 5: \"most\": want one of [all]"},
		{a("ranks: about"), "line 4: \"about\": want one of [exact approx]"},
		{a("final_rows: all"), "line 2: class a: final_rows: want ledger: true"},
		{entry("a", "a:{zone}", "period: none", "ledger: true", "final_rows: all"), "line 2: class a: final_rows: want periods"},
		{a("durable: \"true\""), "line 4: \"true\": want true or false"},
		{a("durable: yes please"), "line 4: "},
		{a("durable: true", "orders: 9m"), "line 2: class a: orders 9m0s: want at least 10m0s, as the class is durable"},
		{a("ledger: true", "orders: 9m"), "line 2: class a: orders 9m0s: want at least 10m0s, as the class is durable"},
		{a("ledger: true", "durable: false"), "line 2: class a: durable: false: ledger: true needs each command in the log before it is applied: leave durable out"},
		{a("guard: {changes: 60}"), "line 4: want a string in quotes"},
		{a("guard: {changes: 60/2h}"), "line 4: changes \"60/2h\""},
		{a("guard: {members: 0}"), "line 4: "},
		{a("ops: [incr]\n  guard: {gain: 100/25h}"), "gain \"100/25h\": want a number up to 9007199254740991 and a duration of 1s to 24h"},
		{a("ops: [incr]\n  guard: {gain: 0/1h}"), "gain \"0/1h\""},
		{a("guard: {gain: 100000/1h}"), "guard: gain: want ops: [incr]"},
		{a("ops: [incr]\n  order: asc\n  guard: {gain: 100000/1h}"), "guard: gain: want ops: [incr]"},
		{a("guard: {action: ban}"), "line 4: \"ban\""},
		{a("title: \"a\\nb\""), "line 2: class a: title"},
		{a("mode: warm"), "line 4: unknown mode"},
		{a("mode: blocked"), "line 4: a class can't be blocked"},
		{a("mode: super-hot"), "line 2: class a: mode super-hot: want the values of zone"},
		{a("dims: {zone: [1]}"), "line 4: want a string in quotes"},
		{a("dims: {zone: [\"a:b\"]}"), "line 4: dimension zone is \"a:b\": want characters"},
		{a("dims: {zone: [\"1\", \"1\"]}"), "line 4: dimension zone has \"1\" twice"},
		{a("dims: {room: [\"1\"]}"), "line 2: class a: dims: room is not in board"},
		{a("dims: {zone: [" + values(MaxClassBoards+1) + "]}"), "or more than 1000 values"},
		{entry("a", "a:{x}:{y}", "period: none", "mode: hot", "dims: {x: ["+values(40)+"], y: ["+values(26)+"]}"), "line 2: class a: modes of classes name more than 1000"},
		{a("ids: {act: 1}"), "line 4: ids: want both"},
		{a("ids: {act: 1, rank: 0}"), "line 4: \"0\": want an integer from 1"},
		{a("ids: {act: 1, rank: 2, obj: 3}"), "line 4: unknown or repeated key \"obj\""},
		{entry("a", "a:{x}:{y}", "period: none", "ids: {act: 1, rank: 2}"), "line 2: class a: ids: board \"a:{x}:{y}\" has several dimensions"},
		{a("group: b") + b(), "line 2: class a: group: want ids, too"},

		// Starts and seasons.
		{a("starts: 5"), "line 4: want a string in quotes"},
		{a("starts: 5h"), "line 4: starts \"5h\": want a time of the day"},
		{a("starts: \"5:00\""), "line 4: starts \"5:00\": want a time of the day"},
		{a("starts: \"24:00\""), "line 4: starts \"24:00\": want a time of the day"},
		{a("starts: \"05:60\""), "line 4: starts \"05:60\": want a time of the day"},
		{a("starts: \"05:00:30\""), "line 4: starts \"05:00:30\": want a time of the day"},
		{a("starts: \"sonntag 05:00\""), "line 4: starts \"sonntag 05:00\": want a time of the day"},
		{a("starts: \"sunday\""), "line 4: starts \"sunday\": want a time of the day"},
		{entry("a", "a:{period}", "period: day", "starts: \"sunday 05:00\""), "class \"a\": starts: periods of day have no day of the week"},
		{entry("a", "a:{period}", "period: week", "starts: tuesday 08:00", "ops: [incr]", "feeds: [b]") + entry("b", "b:{period}", "period: week", "starts: \"08:00\""), "feeds b: its starts is 08:00, that of this class tuesday 08:00: want the same"},
		{entry("a", "a:{period}", "period: week", "starts: sunday 20:00", "ids: {act: 1, rank: 2}", "group: b") + entry("b", "b:{period}", "period: week", "starts: tuesday 20:00"), "group b: its starts is tuesday 20:00, that of this class sunday 20:00: want the same"},
		{entry("a", "a:{period}", "period: day", "ops: [incr]", "feeds: [b]") + entry("b", "b:{period}", "period: week", "starts: sunday 20:00"), "feeds b: its starts is sunday 20:00, that of this class 00:00: want the same"},
		{entry("a", "a:{period}", "period: 1h", "starts: \"05:00\""), "line 2: class \"a\": starts: periods of 1h have none"},
		{entry("a", "a:{period}", "period: 30m", "starts: \"00:00\""), "line 2: class \"a\": starts: periods of 30m have none"},
		{entry("a", "a", "period: none", "starts: \"05:00\""), "line 2: class \"a\": starts: periods of none have none"},
		{season("starts: \"05:00\"", s1), "line 2: class \"a\": starts: periods of seasons have none"},
		{season("period: day", s1), "line 2: class \"a\": seasons are its periods: leave out period"},
		{season("seasons: []"), "line 2: class \"a\": no period: want none"},
		{season("seasons: {tag: s1}"), "line 4: want a list"},
		{season("seasons: [s1]"), "line 4: want a mapping"},
		{season("seasons: [{tag: s1}]"), "line 4: season: want tag, from and to"},
		{season("seasons: [{from: 2026-11-01T00:00:00Z, to: 2026-12-01T00:00:00Z}]"), "line 4: tag \"\": want 1 to 32"},
		{season("seasons: [{tag: 1, from: 2026-11-01T00:00:00Z, to: 2026-12-01T00:00:00Z}]"), "line 4: want a string in quotes"},
		{season("seasons: [{tag: s1, from: 2026-11-01, to: 2026-12-01T00:00:00Z}]"), "line 4: \"2026-11-01\": want a time as in RFC 3339"},
		{season("seasons: [{tag: s1, from: 2026-11-01T00:00:00Z, to: [7]}]"), "line 4: \"\": want a time as in RFC 3339"},
		{season("seasons: [{tag: s1, start: 2026-11-01T00:00:00Z}]"), "line 4: unknown or repeated key \"start\""},
		{season(s1, "- {tag: s2, from: 2026-11-30T23:59:59Z, to: 2026-12-02T00:00:00Z}"), "line 6: season s2 begins at 2026-11-30T23:59:59Z, before s1 ends"},
		{season(s1, "- {tag: s0, from: 2026-12-01T00:00:00Z, to: 2026-12-02T00:00:00Z}"), "line 6: tag \"s0\" does not sort behind \"s1\""},
		{season("tz: Mars/Base", s1), "line 2: class \"a\": time zone"},
		{season("ops: [incr]", "feeds: [b]", s1) + b(), "line 2: class a: feeds: a class with seasons has none"},
		{entry("b", "b:{period}", "period: day", "ops: [incr]", "feeds: [a]") + season(s1), "line 2: class b: feeds a: its period is seasons, that of this class day"},
		{season(s1) + entry("b", "a:{zone}", "period: none"), "can have one id"},
		{entry("a", "a:{period}", "period: day", "starts: \"05:00\"", "ops: [incr]", "feeds: [b]") + entry("b", "b:{period}", "period: week"), "feeds b: its starts is 00:00, that of this class 05:00: want the same"},
		{entry("a", "a:{period}", "period: 30m", "ops: [incr]", "feeds: [b]") + entry("b", "b:{period}", "period: day", "starts: \"05:00\""), "feeds b: its starts is 05:00, that of this class 00:00: want the same"},
		{entry("a", "a:{period}", "period: day", "starts: \"05:00\"", "ids: {act: 1, rank: 2}", "group: b") + entry("b", "b:{period}", "period: day"), "group b: its starts is 00:00, that of this class 05:00: want the same"},

		// Several.
		{a("ids: {act: 1, rank: 2}") + b("ids: {act: 1, rank: 2}"), "line 7: class b: ids: class a has the same"},
		{a("ids: {act: 1, rank: 2}", "group: c"), "line 2: class a: group \"c\" is not a class"},
		{a("ids: {act: 1, rank: 2}", "group: a"), "line 2: class a: group: want another class"},
		{a("ids: {act: 1, rank: 2}", "group: b") + b("tz: Asia/Tokyo"), "line 2: class a: group b: its period is day (Asia/Tokyo)"},
		{a("ids: {act: 1, rank: 2}", "group: b") + entry("b", "b:{period}", "period: 1h"), "line 2: class a: group b: its period is 1h"},
		{a("ids: {act: 1, rank: 2}", "group: b") + entry("b", "b:{app}:{period}", "period: day"), "line 2: class a: group b: its dimensions are [\"app\"]"},
		{a() + a(), "line 6: class a: there is another one in line 2"},
		{a() + entry("b", "a.{app}.{period}", "period: month"), "line 6: class b: boards \"a:{zone}:{period}\" of class a and \"a.{app}.{period}\" of class b can have one id"},
		{entry("a", "a:{zone}", "period: none") + entry("b", "a:{zone}:{sub}", "period: none"), "line 6: class b: board \"a:{zone}:{sub}\" of class b can have the id of one of class a (\"a:{zone}\") with .p<n>"},
		{a(onlyIncr, "feeds: [b]", "durable: false") + b(), "line 2: class a: durable: false: feeds need each command in the log"},
		{a(onlyIncr, "feeds: [b]") + b("durable: false"), "line 8: class b: durable: false: class a feeds this one"},
		{a(onlyIncr, "feeds: [c]"), "line 2: class a: feeds \"c\", which is not a class"},
		{a("feeds: [b]") + b(), "line 2: class a: feeds: want ops: [incr] or [best]"},
		{a("ops: [incr, best]", "feeds: [b]") + b(), "line 2: class a: feeds: want ops: [incr] or [best]"},
		{a("ops: [best]", "feeds: [b]") + b(), "class a: feeds b: its ops are [incr set delete]: want best among them"},
		{a(onlyIncr, "feeds: [b]") + b("ops: [best]"), "class a: feeds b: its ops are [best]: want incr among them"},
		{a(onlyIncr, "feeds: [b, b]") + b(), "line 5: feeds \"b\" twice"},
		{a(onlyIncr, "feeds: [a]"), "line 2: class a: feeds go in a circle: a, a"},
		{a(onlyIncr, "feeds: [b]") + b(onlyIncr, "feeds: [c]") + entry("c", "c:{zone}:{period}", "period: day", onlyIncr, "feeds: [b]"), "line 8: class b: feeds go in a circle: b, c, b"},
		{a(onlyIncr, "feeds: [b]") + b("ops: [set]"), "class a: feeds b: its ops are [set]"},
		{a(onlyIncr, "feeds: [b]") + b("tz: Asia/Tokyo"), "class a: feeds b: its tz is Asia/Tokyo, that of this class UTC"},
		{a(onlyIncr, "feeds: [b]") + b("grace: 4s"), "class a: feeds b: its grace is 4s"},
		{a(onlyIncr, "feeds: [b]", "orders: 2h") + b(), "class a: feeds b: its orders are 1h0m0s"},
		{a(onlyIncr, "feeds: [b]") + b("ties: last"), "class a: feeds b: its scores are integers"},
		{a(onlyIncr, "feeds: [b]", "order: asc") + b(), "class a: feeds b: its order is desc, that of this class asc: want the same"},
		{a(onlyIncr, "feeds: [b]") + b("order: asc"), "class a: feeds b: its order is asc, that of this class desc: want the same"},
		{a(onlyIncr, "feeds: [b]", "order: asc") + b("order: asc", "score: integer"), "class a: feeds b: its scores are integers"},
		{a(onlyIncr, "feeds: [b]") + entry("b", "b:{app}:{period}", "period: day"), "class a: feeds b: its dimension app is none of this class"},
		{a(onlyIncr, "feeds: [b]") + entry("b", "b:{period}", "period: 1h"), "class a: feeds b: its period is 1h, that of this class day"},
		// Rolling.
		{of() + r("rolling: {of: a, last: 1}"), "line 9: \"1\": want an integer from 2 to 100"},
		{of() + r("rolling: {of: a, last: 0}"), "line 9: \"0\": want an integer from 2 to 100"},
		{of() + r("rolling: {of: a, last: 101}"), "line 9: \"101\": want an integer from 2 to 100"},
		{of() + r("rolling: {of: a, last: \"7\"}"), "line 9: \"7\": want an integer"},
		{of() + r("rolling: {of: a}"), "line 9: rolling: want both"},
		{of() + r("rolling: {last: 2}"), "line 9: rolling: want both"},
		{of() + r("rolling: {of: c, last: 2}"), "line 7: class \"r\": rolling: \"c\" is no class"},
		{of() + r("rolling: {of: r, last: 2}"), "line 7: class \"r\": rolling: \"r\" is no class, or rolling itself"},
		{of() + r("rolling: {of: a, last: 2}") + entry("s", "s:{zone}:{period}", "rolling: {of: r, last: 2}"), "class \"s\": rolling: \"r\" is no class, or rolling itself"},
		{of() + r("rolling: {of: a, last: 2}", "period: day"), "line 7: class \"r\": rolling: period, starts, tz and grace are those of \"a\": leave them out"},
		{of() + r("rolling: {of: a, last: 2}", "tz: Asia/Tokyo"), "period, starts, tz and grace are those of"},
		{of() + r("rolling: {of: a, last: 2}", "grace: 5s"), "period, starts, tz and grace are those of"},
		{of() + r("rolling: {of: a, last: 2}", "ops: [incr]"), "rolling: leave ops out"},
		{of() + r("rolling: {of: a, last: 2}", "ties: first"), "class r: rolling: ties: first"},
		{of() + r("rolling: {of: a, last: 2}", "starts: 05:00"), "period, starts, tz and grace are those of"},
		{entry("a", "a:{zone}:{period}", "seasons: [{tag: s1, from: 2026-01-01T00:00:00Z, to: 2026-02-01T00:00:00Z}]", onlyIncr) + r("rolling: {of: a, last: 2}"), "rolling: a has seasons"},
		{of() + r("rolling: {of: a, last: 2}", "trim: 5"), "rolling: trim"},
		{of() + r("rolling: {of: a, last: 2}", "order: asc"), "rolling: order: asc"},
		{of("order: asc") + r("rolling: {of: a, last: 2}"), "rolling: a has order: asc"},
		{of() + r("rolling: {of: a, last: 2}", "guard: {members: 5}"), "rolling: guard"},
		{of() + r("rolling: {of: a, last: 2}", "feeds: [a]"), "rolling: feeds"},
		{of() + r("rolling: {of: a, last: 2}", "durable: false"), "class r: durable: false: rolling needs"},
		{of() + r("rolling: {of: a, last: 2}", "orders: 30m"), "rolling: orders are 30m0s, those of a 1h0m0s"},
		{of("durable: false") + r("rolling: {of: a, last: 2}"), "line 2: class a: durable: false: class r sums up this one"},
		{of("orders: 5m") + r("rolling: {of: a, last: 2}", "orders: 1h"), "rolling: a has orders 5m0s: want at least 10m0s"},
		{of("trim: 5") + r("rolling: {of: a, last: 2}"), "rolling: a is trimmed"},
		{a() + r("rolling: {of: a, last: 2}"), "rolling: a has the ops [incr set delete]: want ops: [incr] there"},
		{entry("a", "a:{zone}", "period: none", onlyIncr) + r("rolling: {of: a, last: 2}"), "rolling: a has no periods"},
		{of("keep: 72h") + r("rolling: {of: a, last: 3}"), "rolling: a has keep 72h0m0s: want at least 96h0m0s there, 4 periods"},
		{of() + entry("r", "r:{app}:{period}", "rolling: {of: a, last: 2}"), "rolling: the dimensions are [\"app\"], those of a [\"zone\"]"},
		{of() + entry("r", "r:{zone}", "rolling: {of: a, last: 2}"), "want {period} in it"},
		{of() + entry("r", "a:{zone}:{period}", "rolling: {of: a, last: 2}"), "can have one id"},
		{of() + r("rolling: {of: a, last: 2}") + b(onlyIncr, "feeds: [r]"), "class b: feeds r: its ops are []"},
		{entry("a", "a:{period}", "period: week", onlyIncr, "feeds: [b]") + entry("b", "b:{period}", "period: month"), "class a: feeds b: its period is month, that of this class week"},
	} {
		if _, err := Parse([]byte("classes:\n" + c.classes)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.200s\ngot %v, want %q in it", c.classes, err, c.want)
		}
	}
}

func TestClassByIDs(t *testing.T) {
	f, err := Parse([]byte(sampleClasses))
	if err != nil {
		t.Fatal(err)
	}
	for ids, want := range map[IDs]string{{7, 2}: "gift-half-hour", {7, 1}: "", {2, 7}: "", {}: ""} {
		name := ""
		if c := f.ByIDs(ids); c != nil {
			name = c.Name()
		}
		if name != want {
			t.Errorf("%v: class %q, want %q", ids, name, want)
		}
	}
}

// TestClassesOfTheDocumentation checks that docs/classes/SETTINGS.md has each key of a class,
// and docs/CLASSES.md an example that is good.
func TestClassesOfTheDocumentation(t *testing.T) {
	settings, err := os.ReadFile("../docs/classes/SETTINGS.md")
	if err != nil {
		t.Fatal(err)
	}
	for key := range new(Class).keys(new(classText)) {
		if !strings.Contains(string(settings), "\n| `"+key+"` |") {
			t.Errorf("docs/classes/SETTINGS.md does not describe %s", key)
		}
	}
	doc, err := os.ReadFile("../docs/CLASSES.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(doc), "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	if f, err := Parse([]byte(example)); err != nil || len(f.Classes) != 2 {
		t.Errorf("%v of the example:\n%s", err, example)
	}
}

// values returns n different values of a dimension.
func values(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("\"%d\"", i)
	}
	return strings.Join(all, ", ")
}

// TestFeedsOfManyClasses checks that the search for circles does not follow each of
// 2^100 paths.
func TestFeedsOfManyClasses(t *testing.T) {
	var file strings.Builder
	file.WriteString("classes:\n")
	for i := range 100 {
		for _, side := range []string{"l", "r"} {
			name := fmt.Sprintf("%s%d", side, i)
			file.WriteString(entry(name, name, "period: none", "ops: [incr]", fmt.Sprintf("feeds: [l%d, r%d]", i+1, i+1)))
		}
	}
	file.WriteString(entry("l100", "l100", "period: none") + entry("r100", "r100", "period: none"))
	if _, err := Parse([]byte(file.String())); err != nil {
		t.Error(err)
	}
}

func TestCheckChange(t *testing.T) {
	parse := func(lines ...string) *File {
		f, err := Parse([]byte("classes:\n" + entry("a", "a:{zone}:{period}", append([]string{"ops: [incr]"}, lines...)...) +
			entry("b", "b:{period}", "period: day") + entry("c", "c:{period}", "period: day")))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	old := parse("period: 120m", "feeds: [b, c]")
	for _, c := range []struct {
		file *File
		want string // "" for none
	}{
		{parse("period: 2h", "feeds: [c, b]", "grace: 1s", "keep: 5h", "top: 7"), ""},
		{&File{}, ""},
		{parse("period: 30m", "feeds: [b, c]"), `line 2: class a: period can't change from "2h" to "30m"`},
		{parse("period: 2h", "feeds: [b]"), `feeds can't change from "b, c" to "b"`},
		{parse("period: 2h", "tz: Asia/Tokyo"), `tz can't change from "UTC" to "Asia/Tokyo"`},
		{parse("period: 2h", "feeds: [b, c]", "ties: first"), `ties can't change from "member" to "first"`},
		{parse("period: 2h", "order: asc"), `order can't change from "desc" to "asc"`},
	} {
		if err := c.file.CheckChange(old, time.Now()); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
	other, err := Parse([]byte("classes:\n" + entry("b", "bb:{period}", "period: day")))
	if err != nil {
		t.Fatal(err)
	}
	if err := other.CheckChange(old, time.Now()); err == nil || !strings.Contains(err.Error(), `board can't change from "b:{period}" to "bb:{period}"`) {
		t.Errorf("got %v", err)
	}
}

func TestClassBoards(t *testing.T) {
	f, err := Parse([]byte(sampleClasses + "  - {name: pinned, board: p, period: none, mode: hot}\n"))
	if err != nil {
		t.Fatal(err)
	}
	rule := func(board string, m Mode) Rule { return Rule{Match: board, Mode: m} }
	running := []Rule{rule("gift:1:20261122-35", ModeSuperHot), rule("gift:2:20261122-35", ModeSuperHot)}
	next := []Rule{rule("gift:1:20261122-36", ModeSuperHot), rule("gift:2:20261122-36", ModeSuperHot)}
	pinned := []Rule{rule("p", ModeHot)}
	lingering := func(rules []Rule) (all []Rule) {
		for _, r := range rules {
			all = append(all, Rule{r.Match, r.Mode, true})
		}
		return all
	}
	before := []Rule{rule("gift:1:20261122-34", ModeSuperHot), rule("gift:2:20261122-34", ModeSuperHot)}
	for at, want := range map[string][]Rule{
		"2026-11-22T17:00:03.001+08:00": slices.Concat(running, pinned, lingering(before)),
		"2026-11-22T17:10:03+08:00":     slices.Concat(running, pinned, lingering(before)),
		"2026-11-22T17:10:03.001+08:00": slices.Concat(running, pinned),
		"2026-11-22T17:29:29.999+08:00": slices.Concat(running, pinned),
		"2026-11-22T17:29:30+08:00":     slices.Concat(running, pinned, next),
		"2026-11-22T17:30:00+08:00":     slices.Concat(next, running, pinned),
		"2026-11-22T17:30:03+08:00":     slices.Concat(next, running, pinned),
		"2026-11-22T17:30:03.001+08:00": slices.Concat(next, pinned, lingering(running)),
		"0001-01-01T00:00:00+00:00":     pinned,
	} {
		now, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, f.ClassBoards(now)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", at, diff)
		}
	}
}

// A grace that is longer than several periods keeps no more than some of them.
func TestEndedBoardsKeepTheirMode(t *testing.T) {
	f, err := Parse([]byte(`classes: [{name: c, board: "c:{period}", period: 1m, grace: 1h, lead: 0s, mode: hot}]`))
	if err != nil {
		t.Fatal(err)
	}
	var want []Rule
	for _, tag := range []string{"0011", "0010", "0009", "0008"} {
		want = append(want, Rule{Match: "c:20261122-" + tag, Mode: ModeHot})
	}
	if diff := cmp.Diff(want, f.ClassBoards(time.Date(2026, 11, 22, 0, 10, 30, 0, time.UTC))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLog(t *testing.T) {
	f, err := Parse([]byte(sampleClasses))
	if err != nil {
		t.Fatal(err)
	}
	day := time.Date(2026, 11, 22, 0, 0, 0, 0, time.FixedZone("", 8*3600))
	start := day.Add(17 * time.Hour)
	for id, want := range map[rankcache.BoardID]Log{
		"gift:1:20261122-35":  {"update_class_gift-half-hour.20261122", true, start.Add(-3 * time.Minute), start.Add(30*time.Minute + 3*time.Second), true},
		"giftday:1:20261122":  {"update_cache_giftday.1.20261122", false, day.Add(-3 * time.Minute), day.Add(24*time.Hour + 5*time.Second), false},
		"gifttotal":           {Topic: "update_cache_gifttotal"},
		"gift:1:20261122-135": {Topic: "update_cache_gift.1.20261122-135"},
	} {
		if got := f.Log(wire.DefaultNames(), id); got.Topic != want.Topic || got.Shared != want.Shared || !got.First.Equal(want.First) || !got.Last.Equal(want.Last) || got.Final != want.Final {
			t.Errorf("%s: got %+v, want %+v", id, got, want)
		}
	}
}
