package writer

import (
	"fmt"
	"testing"

	"rankcache/internal/masters"
	"rankcache/internal/testkit"
	"rankcache/rooms"
	"rankcache/writer/internal/rewind"
)

// In a cluster the index of ends is on one master, and most boards are on others: what it has lost, with its positions, is
// put back, as nobody would close these boards else.
func TestIndexIsPutBack(t *testing.T) {
	t.Parallel()
	file, err := rooms.Parse([]byte(`
classes:
  - {name: gift, board: "gift:{zone}:{period}", period: day, ops: [incr], feeds: [sum]}
  - {name: sum, board: "sum:{zone}:{period}", period: week, ops: [incr]}
`))
	must(t, err)
	h := newFixture(t, testkit.Kfake(t).Addr(), func(o *Options) { o.Tiers = tiers{all: rooms.ModeNone, file: file} })
	h.run(t)
	status, answer := h.post(t, fmt.Sprintf(`{"order":"o","class":"gift","dims":{"zone":%q},"member":"m","op":"incr","delta":1,"at":%d}`, h.zone(), h.at))
	equal(t, answer, status, 200)
	hash := positions{h.applier.adopter}.keys(rewind.Master(masters.Tag(0)))[0]
	awaitIndex := func() {
		t.Helper()
		testkit.Eventually(t, testTimeout, func() error {
			fields, boards := h.client.HLen(t.Context(), hash).Val(), h.client.ZCard(t.Context(), h.opts.Names.Ends).Val()
			if fields < 3 || boards != 2 {
				return fmt.Errorf("%d fields of positions, %d boards in the index", fields, boards)
			}
			return nil
		})
	}
	awaitIndex()
	must(t, h.client.Del(t.Context(), hash, h.opts.Names.Ends).Err())
	awaitIndex()
}
