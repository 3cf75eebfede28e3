package ledger

import (
	"testing"

	"rankcache"
	"rankcache/wire"
)

// TestContinuesAtZero: a score of 0 does not tell whether scores are shown negated; that before it does, so
// that the run that begins with it is found to continue the one before.
func TestContinuesAtZero(t *testing.T) {
	for _, form := range []rankcache.ScoreForm{rankcache.ScoreNumber, rankcache.ScoreLowest} {
		before := &wire.Update{Board: "b", Member: "a", Op: wire.OpSet, Form: form, Run: 1, Seq: 1, Score: form.Raw(5), HasSum: true}
		before.Sum = wire.Hash("a", before.Score)
		first := &wire.Update{Board: "b", Member: "a", Op: wire.OpIncr, Delta: -5, Run: 2, Seq: 2, Sum: wire.Hash("a", 0), HasSum: true}
		runs := runsOf{"b": {{run: 1, begin: 1, last: before}, {run: 2, begin: 2, last: first}}}
		if !runs.continues(first, before, []*wire.Update{before}) {
			t.Errorf("form %d: 5 less 5 is not found to be 0", form)
		}
		if first.Delta = -4; runs.continues(first, before, []*wire.Update{before}) {
			t.Errorf("form %d: 5 less 4 is found to be 0", form)
		}
	}
}
