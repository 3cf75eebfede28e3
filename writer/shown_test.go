package writer

import (
	"encoding/json"
	"fmt"
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
	for _, r := range testkit.Records(t, h.kafka, h.opts.Names.Ledger, 2) {
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
