package writer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/rooms"
	"rankcache/wire"
)

// TestWhoPostsIsGivenTheScoreThatIsShown: answers to posts, those for fed boards and repeats included, and the records of
// the ledger's topic have it, with the raw one beside it. The board's own topic has the raw one alone, which sidecars add up.
func TestWhoPostsIsGivenTheScoreThatIsShown(t *testing.T) {
	file, err := rooms.Parse([]byte(`
classes:
  - {name: race, board: "race:{zone}", period: none, ties: first, ledger: true, ops: [incr], feeds: [total]}
  - {name: total, board: "total:{zone}", period: none, ties: last}
`))
	must(t, err)
	h := newFixture(t, testkit.Kfake(t).Addr(), func(o *Options) {
		o.Tiers, o.Names.Ledger = tiers{all: rooms.ModeSuperHot, file: file}, testkit.Name(t)
	})
	h.run(t)
	zone := h.zone()
	h.makeCommandTopicFor(t)
	var answers []string
	for _, order := range []string{"o1", "o1"} {
		status, answer := h.post(t, fmt.Sprintf(`{"order":%q,"class":"race","dims":{"zone":%q},"member":"a","op":"incr","delta":10,"at":%d}`, order, zone, h.at))
		equal(t, answer, status, 200)
		answers = append(answers, answer)
	}
	board := rankcache.BoardID("race:" + zone)
	raw, err := h.client.ZScore(t.Context(), string(board), "a").Result()
	must(t, err)
	for _, answer := range answers {
		var got struct {
			V          int
			Score, Raw float64
			Fed        []struct{ Score float64 }
		}
		must(t, json.Unmarshal([]byte(answer), &got))
		if got.V != 2 || got.Score != 10 || got.Raw != raw || len(got.Fed) != 1 || got.Fed[0].Score != 10 {
			t.Errorf("answer %s, want the scores 10, and raw %v", answer, raw)
		}
	}
	for _, r := range h.changes(t, 2) {
		if want := fmt.Sprintf(`"score":10,"raw":%v,`, raw); !strings.HasPrefix(string(r.Value), `{"v":3,`) || !strings.Contains(string(r.Value), want) {
			t.Errorf("ledger's topic: %s, want %s", r.Value, want)
		}
	}
	for _, r := range testkit.Records(t, h.kafka, h.opts.Names.Topic(board), 2) {
		var u wire.Update
		if must(t, wire.DecodeUpdate(r.Value, &u)); u.Score != raw || strings.Contains(string(r.Value), "raw") {
			t.Errorf("board's topic: %s, want the raw score %v alone", r.Value, raw)
		}
	}
}

// TestLowestIsBest: where the lowest score is the best, whoever posts or reads the ledger's topic has the numbers as they are
// meant, repeats included; Redis and the board's own topic have the negative.
func TestLowestIsBest(t *testing.T) {
	file, err := rooms.Parse([]byte(`
classes:
  - {name: laps, board: "laps:{zone}", period: none, ledger: true, order: asc, ops: [set, incr], ties: first}
  - {name: seconds, board: "seconds:{zone}", period: none, order: asc}
  - {name: moves, board: "moves:{zone}", period: none, order: asc, ops: [incr], feeds: [allmoves]}
  - {name: allmoves, board: "allmoves:{zone}", period: none, order: asc, ops: [incr], trim: 5}
`))
	must(t, err)
	h := newFixture(t, testkit.Kfake(t).Addr(), func(o *Options) {
		o.Tiers, o.Names.Ledger = tiers{all: rooms.ModeSuperHot, file: file}, testkit.Name(t)
	})
	h.run(t)
	zone := h.zone()
	h.makeCommandTopicFor(t)
	post := func(body, want string) {
		t.Helper()
		if status, answer := h.post(t, fmt.Sprintf(`{"dims":{"zone":%q},"at":%d,`, zone, h.at)+body+"}"); status != 200 || !strings.Contains(answer, want) {
			t.Errorf("%s: %d %s, want %s", body, status, answer, want)
		}
	}
	for range 2 {
		post(`"order":"s1","class":"seconds","member":"a","op":"set","score":72.5`, `"score":72.5,"raw":-72.5,`)
		post(`"order":"s2","class":"seconds","member":"a","op":"incr","delta":-72.5`, `"delta":-72.5,"score":0,`)
		post(`"order":"s3","class":"seconds","member":"b","op":"set","score":-0.0`, `"score":0,`)
		post(`"order":"l1","class":"laps","member":"a","op":"set","score":10`, `"score":10,"raw":-9.`)
		post(`"order":"l2","class":"laps","member":"a","op":"incr","delta":3`, `"delta":3,"score":13,"raw":-12.`)
	}
	post(`"order":"m1","class":"moves","member":"a","op":"incr","delta":-5`, `"score":-5,"raw":5,`)
	post(`"order":"m2","class":"moves","member":"a","op":"incr","delta":-5`, fmt.Sprintf(`"fed":[{"board":"allmoves:%s","score":-10,`, zone))
	if status, answer := h.post(t, fmt.Sprintf(`{"dims":{"zone":%q},"order":"m3","class":"moves","member":"a","op":"incr","delta":5}`, zone)); status != 422 || !strings.Contains(answer, "5 makes the score worse") {
		t.Errorf("a worse score on a board that keeps its best: %d %s", status, answer)
	}
	raw, err := h.client.ZScore(t.Context(), "laps:"+zone, "a").Result()
	must(t, err)
	var seen []string
	for _, r := range h.changes(t, 4)[:4] {
		var u wire.LedgerUpdate
		must(t, wire.DecodeLedgerUpdate(r.Value, &u))
		seen = append(seen, fmt.Sprint(u.Op, u.Delta, u.Form.Shown(u.Score), strings.HasPrefix(string(r.Value), `{"v":3,`)))
	}
	if want := []string{"set 0 10 true", "incr 3 13 true", "set 0 10 true", "incr 3 13 true"}; !slices.Equal(seen, want) {
		t.Errorf("ledger's topic: %q, want %q", seen, want)
	}
	records := testkit.Records(t, h.kafka, h.opts.Names.Topic(rankcache.BoardID("laps:"+zone)), 2)
	var u wire.Update
	if must(t, wire.DecodeUpdate(records[1].Value, &u)); u.Score != raw || raw >= 0 || u.Delta != -3 {
		t.Errorf("board's topic: %s, want the raw score %v and -3", records[1].Value, raw)
	}
}
