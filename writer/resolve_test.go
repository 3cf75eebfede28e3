package writer

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"rankcache/internal/httpserve"
	"rankcache/internal/testkit"
	"rankcache/rooms"
)

// classFile has a class of periods that allows increments only, and one without.
func classFile(t testing.TB) *rooms.File {
	t.Helper()
	file, err := rooms.Parse([]byte(`
classes:
  - {name: gift-minute, board: "gift:{zone}:{period}", period: 1m, tz: Asia/Shanghai, ops: [incr]}
  - {name: fans, board: "fans_{app}_{host}", period: none}
  - {name: ladder, board: "ladder:{zone}:{period}", ops: [incr], seasons: [{tag: s1, from: 2026-11-01T00:00:00Z, to: 2026-11-22T00:00:00Z}, {tag: s2, from: 2026-11-23T00:00:00Z, to: 2026-12-22T00:00:00Z}]}
  - {name: cup, board: "cup:{zone}:{period}", ops: [incr], seasons: [{tag: c1, from: 2020-11-01T00:00:00Z, to: 2020-11-22T00:00:00Z}]}
`))
	must(t, err)
	return file
}

// withClasses has the classes of classFile.
func withClasses(t testing.TB) func(*Options) {
	return func(o *Options) { o.Tiers = tiers{file: classFile(t)} }
}

// inClass is the JSON of an incr by one in class gift-minute.
func (h *fixture) inClass(order, zone string, at int64) string {
	return fmt.Sprintf(`{"order":%q,"class":"gift-minute","dims":{"zone":%q},"member":"a","op":"incr","delta":1,"at":%d}`, order, zone, at)
}

// zone is a dimension value that no other test uses.
func (h *fixture) zone() string {
	return strings.NewReplacer("_", "", "-", "", ".", "").Replace(lastPart(string(h.board)))
}

func TestResolve(t *testing.T) {
	at := time.Date(2026, 11, 22, 9, 20, 30, 0, time.UTC).UnixMilli()
	for data, want := range map[string]string{
		`"class":"gift-minute","dims":{"zone":"7"},"op":"incr","delta":1`:                               "gift:7:20261122-1041",
		`"class":"fans","dims":{"app":"7","host":"88"},"op":"delete"`:                                   "fans_7_88",
		`"board":"gift:7:20261122-1041","op":"incr","delta":1`:                                          "gift:7:20261122-1041",
		`"board":"gift:7:20261122","op":"delete"`:                                                       "gift:7:20261122", // of no class
		`"class":"gift","dims":{"zone":"7"},"op":"incr","delta":1`:                                      "unknown_class",
		`"class":"gift-minute","op":"incr","delta":1`:                                                   "bad_dims",
		`"class":"gift-minute","dims":{"zone":""},"op":"incr","delta":1`:                                "bad_dims",
		`"class":"gift-minute","dims":{"zone":"a:b"},"op":"incr","delta":1`:                             "bad_dims",
		`"class":"gift-minute","dims":{"zone":"7","app":"1"},"op":"incr","delta":1`:                     "bad_dims",
		`"class":"gift-minute","dims":{"zone":"7"},"op":"set","score":1`:                                "op_not_allowed",
		`"board":"gift:7:20261122-1041","op":"delete"`:                                                  "op_not_allowed",
		`"class":"gift-minute","dims":{"zone":"7"},"op":"incr","delta":1,"at":-1`:                       "at",
		`"class":"ladder","dims":{"zone":"7"},"op":"incr","delta":1`:                                    "no_period",
		`"class":"ladder","dims":{"zone":"7"},"op":"incr","delta":1,"at":1`:                             "no_period",
		`"class":"ladder","dims":{"zone":"7"},"op":"incr","delta":1,"at":` + fmt.Sprint(at-24*3600_000): "ladder:7:s1", // late, if it is not a repeat
		`"class":"ladder","dims":{"zone":"7"},"op":"incr","delta":1,"at":` + fmt.Sprint(at+24*3600_000): "ladder:7:s2", // early
		`"board":"ladder:7:s1","op":"incr","delta":1`:                                                   "ladder:7:s1",
		`"board":"ladder:7:s1","op":"delete"`:                                                           "op_not_allowed",
		`"board":"ladder:7:s3","op":"delete"`:                                                           "ladder:7:s3", // of no class
	} {
		if !strings.Contains(data, `"at"`) {
			data += `,"at":` + fmt.Sprint(at)
		}
		c, err := DecodeCommand([]byte(`{"order":"o","member":"m",`+data+`}`), 1)
		if err == nil {
			_, _, err = resolve(c, classFile(t), time.UnixMilli(at))
		}
		got := ""
		if refusal, ok := errors.AsType[*Refusal](err); ok {
			got = refusal.Reason
		} else {
			got = string(c.Board)
		}
		equal(t, data, got, want)
	}
}

// A command that names class and dims, and one that names the board which they make, are
// commands of one board: an order id of the one is known to the other.
func TestClassAndBoardShareOrders(t *testing.T) {
	h := quiet(t, withClasses(t))
	zone := h.zone()
	first := h.do1(t, h.inClass("o1", zone, h.at))
	board, err := classFile(t).Class("gift-minute").At(map[string]string{"zone": zone}, time.UnixMilli(h.at))
	must(t, err)
	equal(t, "board", first.Update.Board, board.ID)
	h.board = board.ID
	again := h.do1(t, h.command("o1", "a"))
	equal(t, "repeat", []any{again.Duplicate, again.Update}, []any{true, first.Update})
	equal(t, "scores", h.scores(t), map[string]float64{"a": 1})
	status, answer := h.post(t, strings.Replace(h.inClass("o1", zone, h.at), `"delta":1`, `"delta":2`, 1))
	checkProblem(t, "conflict", status, answer, httpserve.Problem{Status: 409, Code: "order_conflict"})
}

// What is wrong with a class is 422 for posts, counted, and kept.
func TestClassRefusals(t *testing.T) {
	h := newFixture(t, testkit.Kfake(t).Addr(), withClasses(t))
	h.run(t)
	with := func(old, replacement string) string {
		return strings.Replace(h.inClass("o1", "7", h.at), old, replacement, 1)
	}
	want := map[string]string{
		"unknown_class":   with("gift-minute", "gift-hour"),
		"bad_dims":        with(`"zone"`, `"area"`),
		"board_and_class": with(`{`, `{"board":"1_2_3",`),
		"op_not_allowed":  with(`"incr"`, `"delete"`),
		"no_period":       with("gift-minute", "cup"),
	}
	for code, body := range want {
		status, answer := h.post(t, body)
		checkProblem(t, code, status, answer, httpserve.Problem{Status: 422, Code: code})
	}
	h.produce(t, slices.Collect(maps.Values(want))...)
	h.await(t, "refused", 10)
	kept := map[string][]refusedRecord{}
	for _, record := range testkit.Records(t, h.kafka, h.opts.Names.Refused, 10) {
		var r refusedRecord
		must(t, json.Unmarshal(record.Value, &r))
		kept[r.Reason] = append(kept[r.Reason], r)
	}
	for code, body := range want {
		equal(t, code+" counted", testutil.ToFloat64(h.metrics.refused.WithLabelValues(code)), 2.0)
		for _, r := range kept[code] {
			equal(t, code+" kept", string(r.Command), body)
			equal(t, code+" board", strings.HasPrefix(string(r.Board), "gift:7:"), code == "op_not_allowed")
		}
		equal(t, code+" records", len(kept[code]), 2)
	}
	equal(t, "lost", testutil.ToFloat64(h.metrics.refusedLost), 0.0)
	equal(t, "board", h.scores(t), map[string]float64{})
}
