package writer

import (
	"fmt"
	"strings"
	"testing"

	"rankcache"
	"rankcache/class"
	"rankcache/internal/httpserve"
	"rankcache/internal/testkit"
	"rankcache/rooms"
	"rankcache/wire"
)

// TestSplitBoard: each command goes to its member's shard, posted or read from the topic, by class, by the whole board's id, by its
// own shard's, and as what another class feeds; by another shard's it is refused.
func TestSplitBoard(t *testing.T) {
	t.Parallel()
	file, err := rooms.Parse([]byte(`classes:
  - {name: gifts, board: "gifts:{zone}", period: none, shards: 3, ops: [incr], feeds: [total]}
  - {name: total, board: "total:{zone}", period: none, shards: 2, ops: [incr]}
`))
	must(t, err)
	h := newFixture(t, testkit.Kfake(t).Addr(), func(o *Options) { o.Tiers = tiers{all: rooms.ModeSuperHot, file: file} })
	h.run(t)
	zone := h.zone()
	whole := rankcache.BoardID("gifts:" + zone)
	want := make(map[rankcache.BoardID]map[string]float64)
	command := func(n int, target rankcache.BoardID, member string) string {
		address := fmt.Sprintf(`"board":%q`, target)
		if target == "" {
			address = fmt.Sprintf(`"class":"gifts","dims":{"zone":%q}`, zone)
		}
		return fmt.Sprintf(`{"order":"o%d",%s,"member":%q,"op":"incr","delta":%d,"at":%d}`, n, address, member, n, h.at)
	}
	applied := 0
	for n := 1; n <= 12; n++ {
		member := fmt.Sprint("m", n%8)
		home, total := class.ShardID(whole, class.ShardOf(member, 3)), class.ShardID("total:"+rankcache.BoardID(zone), class.ShardOf(member, 2))
		for _, b := range []rankcache.BoardID{home, total} {
			if want[b] == nil {
				want[b] = make(map[string]float64)
			}
			want[b][member] += float64(n)
		}
		target := []rankcache.BoardID{"", whole, home}[n%3]
		if n > 8 {
			h.produce(t, command(n, target, member))
			applied++
			continue
		}
		for _, duplicate := range []string{"false", "true"} {
			status, answer := h.post(t, command(n, target, member))
			if status != 200 || !strings.Contains(answer, fmt.Sprintf(`"board":%q`, home)) || !strings.Contains(answer, fmt.Sprintf(`"fed":[{"board":%q`, total)) || !strings.Contains(answer, `"duplicate":`+duplicate) {
				t.Errorf("%s: %d %s", command(n, target, member), status, answer)
			}
		}
	}
	other := class.ShardID(whole, (class.ShardOf("m1", 3)+1)%3)
	status, answer := h.post(t, command(99, other, "m1"))
	checkProblem(t, "another shard", status, answer, httpserve.Problem{Status: 400, Code: "bad_argument", Argument: "board"})
	testkit.Eventually(t, testTimeout, func() error {
		for board, scores := range want {
			of := *h
			of.board = board
			if got := of.scores(t); fmt.Sprint(got) != fmt.Sprint(scores) {
				return fmt.Errorf("%s: %v, want %v", board, got, scores)
			}
			of.checkSum(t)
		}
		return nil
	})
	if n, err := h.client.Exists(t.Context(), string(whole), wire.DefaultNames().MetaKey(whole)).Result(); err != nil || n != 0 {
		t.Errorf("%d keys of the whole board, %v", n, err)
	}
}
