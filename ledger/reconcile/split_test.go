package reconcile

import (
	"fmt"
	"testing"
	"time"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/ledger"
	"rankcache/wire"
)

// TestBooksNameTheWholeBoard: orders of a split board, which the ledger has on its shards, are found by the id of the whole board
// and by class; a missing one is posted for the whole board, and an extra one is found on its shard.
func TestBooksNameTheWholeBoard(t *testing.T) {
	s := newScene(t, testkit.SQLKinds[0])
	s.shards = 4
	at := now.Add(-5 * time.Minute).UnixMilli()
	for i := range 40 {
		e := entry{order: fmt.Sprint("o", i), class: i%2 == 0, member: fmt.Sprint("m", i), op: wire.OpIncr, number: 1, at: at}
		if i != 7 {
			s.apply(e)
		}
		if i != 9 {
			s.write(e)
		}
	}
	var posted []*wire.LedgerUpdate
	r := s.compare(s.reconciler(&posted))
	wantCounts(t, r, map[string]int{Missing: 1, Extra: 1})
	if len(posted) != 1 || posted[0].Board != board || posted[0].OrderID != "o7" {
		t.Errorf("%+v", posted)
	}
	for _, d := range r.Differences {
		if d.Kind == Extra && (d.Order != "o9" || d.Board != s.on("m9")) {
			t.Errorf("%+v", d)
		}
	}
}

// TestBoardsThatEndAsShards: an order of one board is not taken for that of another whose id ends as that of a shard.
func TestBoardsThatEndAsShards(t *testing.T) {
	c := &comparison{r: new(Reconciler), report: newReport(0, 1)}
	c.orders = []uint64{orderHash("game.s1", ledger.BoardClass{}, "m", "bonus")}
	if err := c.change(&wire.Update{Board: "game.s2", Member: "m", OrderID: "bonus"}, ledger.BoardClass{}); err != nil || c.report.Counts[Extra] != 1 {
		t.Errorf("%v: an order that the books have on another board is no extra one: %+v", err, c.report)
	}
}

// TestWholeBoardIsNoSplitOne: a board that the ledger has by its own id has no shards, whatever others are called.
func TestWholeBoardIsNoSplitOne(t *testing.T) {
	c := &comparison{boards: map[ledger.BoardClass][]rankcache.BoardID{{Name: "ever"}: {"lb"}, {Name: "season"}: {"lb.s1", "lb.s2"}, {Name: "split"}: {"wide.s0", "wide.s1"}}}
	c.findShards()
	for board, want := range map[rankcache.BoardID]int{"lb": 1, "lb.s1": 1, "wide": 3} {
		if got := c.boardsOf(&Row{Board: board}); len(got) != want {
			t.Errorf("%s: %v, want %d", board, got, want)
		}
	}
}
