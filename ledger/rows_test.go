package ledger

import (
	"reflect"
	"testing"

	"rankcache/wire"
)

// A batch may have updates of two runs, and those of the later run have the lower seqs.
func TestLatestStateInABatch(t *testing.T) {
	update := func(run, seq uint64, score float64) *wire.Update {
		return &wire.Update{Board: "b", Member: "a", Op: wire.OpIncr, Run: run, Seq: seq, Score: score}
	}
	old, seq, run := update(5, 90, 1), update(5, 91, 2), update(6, 1, 3)
	for _, c := range []struct {
		updates []*wire.Update
		want    *wire.Update
	}{{[]*wire.Update{old, seq, run}, run}, {[]*wire.Update{run, seq, old}, run}, {[]*wire.Update{seq, old}, seq}} {
		got, want := scoreColumns(c.updates), scoreColumns([]*wire.Update{c.want})
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%v gives columns %+v, want %+v", c.updates, got, want)
		}
	}
}
