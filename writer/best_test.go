package writer

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/rooms"
	"rankcache/wire"
)

// TestBest: a member keeps its best, on the board and on those that it feeds, and each command is an
// order of its own, whether it is better or not. The board's topic has sets, the ledger's the numbers.
func TestBest(t *testing.T) {
	file, err := rooms.Parse([]byte(`
classes:
  - {name: laps, board: "laps:{zone}:{x}", period: none, order: asc, ledger: true, ops: [best], feeds: [ever]}
  - {name: ever, board: "ever:{zone}", period: none, order: asc, ops: [best, delete]}
  - {name: plain, board: "plain:{zone}", period: none}
`))
	must(t, err)
	h := newFixture(t, testkit.Kfake(t).Addr(), func(o *Options) {
		o.Tiers, o.Names.Ledger = tiers{all: rooms.ModeSuperHot, file: file}, testkit.Name(t)
	})
	h.run(t)
	zone := h.zone()
	h.makeCommandTopicFor(t)
	post := func(order, x string, number float64, status int, wants ...string) {
		t.Helper()
		got, answer := h.post(t, fmt.Sprintf(`{"order":%q,"class":"laps","dims":{"zone":%q,"x":%q},"member":"a","op":"best","score":%v,"at":%d}`, order, zone, x, number, h.at))
		for _, want := range wants {
			if got != status || !strings.Contains(answer, want) {
				t.Errorf("%s: %d %s, want %d %s", order, got, answer, status, want)
			}
		}
	}
	board := rankcache.BoardID("laps:" + zone + ":1")
	for _, duplicate := range []string{`"duplicate":false`, `"duplicate":true`} {
		post("o1", "1", 72.5, 200, `"op":"best","delta":72.5,"score":72.5,"raw":-72.5,`, `"seq":1,`, fmt.Sprintf(`{"board":"ever:%s","score":72.5,"seq":1}`, zone), duplicate)
		post("o2", "1", 80, 200, `"delta":80,"score":72.5,"raw":-72.5,`, `"seq":2,`, `"score":72.5,"seq":2}`, duplicate)
		post("o3", "1", 71, 200, `"delta":71,"score":71,`, `"seq":3,`, `"score":71,"seq":3}`, duplicate)
		post("p1", "2", 71.5, 200, `"delta":71.5,"score":71.5,`, `"seq":1,`, `"score":71,"seq":4}`, duplicate)
	}
	post("o2", "1", 79, 409, `"order_conflict"`)
	for _, c := range []string{`"board":"other:` + zone + `"`, `"class":"plain","dims":{"zone":"` + zone + `"}`} {
		if status, answer := h.post(t, `{"order":"r",`+c+`,"member":"a","op":"best","score":1}`); status != 422 || !strings.Contains(answer, `"op_not_allowed"`) {
			t.Errorf("%s: %d %s", c, status, answer)
		}
	}
	if status, answer := h.post(t, `{"order":"r","board":"`+string(board)+`","member":"a","op":"best","delta":1}`); status != 400 || !strings.Contains(answer, "best without score") {
		t.Errorf("no score: %d %s", status, answer)
	}
	kept, seen := make(map[uint64]string), make(map[uint64]string) // by seq, as repeats are published, too
	for _, r := range h.changes(t, 8) {
		var u wire.LedgerUpdate
		if must(t, wire.DecodeLedgerUpdate(r.Value, &u)); u.Board == board {
			kept[u.Seq] = fmt.Sprint(u.Op, " ", u.Delta, " ", u.Form.Shown(u.Score))
		}
	}
	for _, r := range testkit.Records(t, h.kafka, h.opts.Names.Topic(board), 6) {
		var u wire.Update
		must(t, wire.DecodeUpdate(r.Value, &u))
		seen[u.Seq] = fmt.Sprint(u.Op, " ", u.Delta, " ", u.Score)
	}
	if want := map[uint64]string{1: "best 72.5 72.5", 2: "best 80 72.5", 3: "best 71 71"}; !maps.Equal(kept, want) {
		t.Errorf("ledger's topic: %v, want %v", kept, want)
	}
	if want := map[uint64]string{1: "set 0 -72.5", 2: "set 0 -72.5", 3: "set 0 -71"}; !maps.Equal(seen, want) {
		t.Errorf("board's topic: %v, want %v", seen, want)
	}
}
