package writer

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"rankcache"
	"rankcache/internal/httpserve"
	"rankcache/internal/testkit"
	"rankcache/rooms"
	"rankcache/wire"
)

// guildClasses have gifts that count for their member's guild, too, and for the member among those of the guild.
const guildClasses = `
  - {name: fans, board: "fans:{zone}", period: none, ops: [incr], feeds: [{class: guilds, by: guild}, {class: mates, dims: {guild: guild}}]}
  - {name: guilds, board: "guilds:{zone}", period: none, ops: [incr]}
  - {name: mates, board: "mates:{zone}:{guild}", period: none, ops: [incr]}
`

// TestGroups: a gift counts for its member and for the guild that the command names, on each board once under its order id.
// The first board decides: the same order id for another guild, or for none, is a conflict, and changes no board.
func TestGroups(t *testing.T) {
	t.Parallel()
	file, err := rooms.Parse([]byte("classes:" + strings.Replace(guildClasses, "feeds:", "ledger: true, feeds:", 1)))
	must(t, err)
	h := newFixture(t, testkit.Kfake(t).Addr(), func(o *Options) {
		o.Tiers, o.Names.Ledger = tiers{all: rooms.ModeSuperHot, file: file}, testkit.Name(t)
	})
	h.run(t)
	zone := h.zone()
	gift := func(order, member, by string, delta int) string {
		return fmt.Sprintf(`{"order":%q,"class":"fans","dims":{"zone":%q},%s"member":%q,"op":"incr","delta":%d,"at":%d}`, order, zone, by, member, delta, h.at)
	}
	in := func(guild string) string { return fmt.Sprintf(`"by":{"guild":%q},`, guild) }
	fedBoards := func(seq int, guild string, score int) string {
		return fmt.Sprintf(`"fed":[{"board":"guilds:%s","score":%d,"seq":%d},{"board":"mates:%[1]s:%[4]s","score":`, zone, score, seq, guild)
	}
	for _, duplicate := range []string{"false", "true"} {
		for _, c := range []struct{ command, want string }{
			{gift("o1", "a", in("g1"), 5), fedBoards(1, "g1", 5) + `5,"seq":1}]`},
			{gift("o2", "b", in("g1"), 7), fedBoards(2, "g1", 12) + `7,"seq":2}]`},
			{gift("o3", "a", in("g2"), 1), fedBoards(3, "g2", 1) + `1,"seq":1}]`}, // it has changed its guild: what it gave stays with the first
			{gift("o4", "a", "", 2), `"score":8,`},                                // in none
		} {
			if status, answer := h.post(t, c.command); status != 200 || !strings.Contains(answer, c.want) || !strings.Contains(answer, `"duplicate":`+duplicate) {
				t.Errorf("%s: %d %s, want %s", c.command, status, answer, c.want)
			}
		}
	}
	if status, answer := h.post(t, gift("o4", "a", `"by":{},`, 2)); status != 200 || strings.Contains(answer, `"fed"`) {
		t.Errorf("without guild: %d %s", status, answer)
	}
	for _, other := range []string{in("g2"), ""} {
		status, answer := h.post(t, gift("o1", "a", other, 5))
		checkProblem(t, "other guild", status, answer, httpserve.Problem{Status: 409, Code: "order_conflict"})
	}
	for _, bad := range []string{`"by":{"team":"g1"},`, `"by":{"guild":""},`, `"by":{"guild":"a-b"},`, `"by":{"guild":"g\n1"},`, `"by":{"guild":"` + strings.Repeat("g", 129) + `"},`} {
		status, answer := h.post(t, gift("o9", "a", bad, 5))
		checkProblem(t, bad, status, answer, httpserve.Problem{Status: 422, Code: "bad_by"})
	}
	for _, by := range []string{"o1 a g1 5", "o5 c g1 3"} { // by the topic
		var order, member, guild string
		var delta int
		_, err := fmt.Sscan(by, &order, &member, &guild, &delta)
		must(t, err)
		h.produce(t, gift(order, member, in(guild), delta))
	}
	h.await(t, "applied", 5)
	for board, want := range map[string]map[string]float64{"fans:" + zone: {"a": 8, "b": 7, "c": 3}, "guilds:" + zone: {"g1": 15, "g2": 1},
		"mates:" + zone + ":g1": {"a": 5, "b": 7, "c": 3}, "mates:" + zone + ":g2": {"a": 1}} {
		of := *h
		of.board = rankcache.BoardID(board)
		testkit.Eventually(t, testTimeout, func() error {
			if got := of.scores(t); !maps.Equal(got, want) {
				return fmt.Errorf("%s: %v, want %v", board, got, want)
			}
			return nil
		})
		of.checkSum(t)
	}
	groups := make(map[string]string)
	for _, r := range h.changes(t, 5) {
		var u wire.LedgerUpdate
		must(t, wire.DecodeLedgerUpdate(r.Value, &u))
		groups[u.OrderID] = u.By
	}
	if groups["o1"] != `{"guild":"g1"}` || groups["o4"] != "" {
		t.Errorf("the ledger's topic has %v", groups)
	}
	if status, answer := h.post(t, fmt.Sprintf(`{"order":"x","board":%q,"by":{"guild":"g1"},"member":"a","op":"delete"}`, h.board)); status != 422 || !strings.Contains(answer, `"bad_by"`) {
		t.Errorf("of no class: %d %s", status, answer)
	}
}
