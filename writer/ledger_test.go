package writer

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/rooms"
	"rankcache/wire"
)

// Changes of classes with ledger: true are in the ledger's topic when they are answered,
// whether they came from Kafka or by post, repeats included; those of other boards are not.
func TestLedgerClassesArePublished(t *testing.T) {
	t.Parallel()
	file, err := rooms.Parse([]byte(`
classes:
  - {name: money, board: "money:{zone}", period: none, ops: [incr], ledger: true}
  - {name: fans, board: "fans_{host}", period: none}
`))
	must(t, err)
	h := newFixture(t, testkit.Kfake(t).Addr(), func(o *Options) {
		o.Tiers, o.Names.Ledger = tiers{file: file}, testkit.Name(t)
	})
	h.run(t)
	zone := h.zone()
	money := func(order string) string {
		return fmt.Sprintf(`{"order":%q,"class":"money","dims":{"zone":%q},"member":"a","op":"incr","delta":1,"at":%d}`, order, zone, h.at)
	}
	h.produce(t, money("o1"))
	h.await(t, "applied", 1)
	for _, command := range []string{money("o2"), fmt.Sprintf(`{"order":"o3","board":"fans_%s","member":"a","op":"incr","delta":1}`, zone), money("o1")} {
		if status, answer := h.post(t, command); status != 200 {
			t.Fatalf("%d %s", status, answer)
		}
	}
	// The posts are in the command topic too, from which they are met as repeats.
	var got []wire.LedgerUpdate
	for _, r := range h.changes(t, 5) {
		var u wire.LedgerUpdate
		must(t, wire.DecodeLedgerUpdate(r.Value, &u))
		if string(r.Key) != string(u.Board) {
			t.Errorf("key %s, want the board %s", r.Key, u.Board)
		}
		if !slices.ContainsFunc(got, func(before wire.LedgerUpdate) bool { return before.Update == u.Update }) {
			got = append(got, u)
		}
	}
	record := func(seq uint64, order string) wire.LedgerUpdate {
		return wire.LedgerUpdate{Update: wire.Update{Board: rankcache.BoardID("money:" + zone), Member: "a", Op: wire.OpIncr, Delta: 1, Score: float64(seq), Seq: seq,
			HasSum: true, Members: 1, OrderID: order, At: h.at}, Class: "money", Dims: map[string]string{"zone": zone}}
	}
	want := []wire.LedgerUpdate{record(1, "o1"), record(2, "o2")}
	for i := range got {
		want[min(i, 1)].Era = h.rewinds.round.Load().list
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(wire.Update{}, "Run", "Sum")); diff != "" {
		t.Errorf("ledger's topic (-want +got):\n%s", diff)
	}
}

// changes returns the first records of the ledger's topic, without those that name the masters.
func (h *fixture) changes(t *testing.T, n int) (all []*kgo.Record) {
	t.Helper()
	for read := n; len(all) < n; read += n - len(all) {
		all = nil
		for _, r := range testkit.Records(t, h.kafka, h.opts.Names.Ledger, read) {
			_, is := wire.DecodeEras(r.Value)
			if !is {
				all = append(all, r)
			}
			if !is && r.Offset == 0 {
				t.Error("a change was published before the server on which it was found was named")
			}
		}
	}
	return all
}
