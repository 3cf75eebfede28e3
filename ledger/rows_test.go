package ledger

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"rankcache"
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
		if !slices.EqualFunc(got, want, func(a, b column) bool { return a.name == b.name && reflect.DeepEqual(a.values, b.values) }) {
			t.Errorf("%v gives columns %+v, want %+v", c.updates, got, want)
		}
	}
}

// TestScoresAreThoseThatAreShown: whatever version of a writer has published the changes of a board that ranks ties, all
// tables have the scores that members were given, and the raw ones that checksums are over beside them: also where Redis
// has lost changes, and members go back to what they had.
func TestScoresAreThoseThatAreShown(t *testing.T) {
	for name, encode := range map[string]func(*wire.LedgerUpdate) []byte{
		"now":     func(u *wire.LedgerUpdate) []byte { return wire.AppendLedgerUpdate(nil, u) },
		"earlier": func(u *wire.LedgerUpdate) []byte { return wire.AppendUpdate(nil, &u.Update) },
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, s *Store) {
				read := func(u *wire.LedgerUpdate) *wire.LedgerUpdate {
					got := new(wire.LedgerUpdate)
					must(t, wire.DecodeLedgerUpdate(encode(u), got))
					return got
				}
				h := newHistory("b", 1)
				next, _ := feed(t, s, 0, read(h.tie("a", 10, false)), read(h.tie("b", -3, true)))
				replica := h.clone()
				next, _ = feed(t, s, next, read(h.tie("a", 12, false)))
				feed(t, s, next, read(replica.tie("c", 5, false)))
				a, b, c := wire.TieScore(10, 1, false), wire.TieScore(-3, 2, true), wire.TieScore(5, 3, false)
				for table, want := range map[string]string{
					"rank_score": fmt.Sprint("b a 10 ", a, "|b b -3 ", b, "|b c 5 ", c),
					"rank_log":   fmt.Sprint("b a 10 ", a, "|b b -3 ", b, "|b c 5 ", c),
					"rank_lost":  fmt.Sprint("b a 12 ", wire.TieScore(12, 3, false)),
				} {
					if got := scoresIn(t, s, table, "member, seq"); !slices.Equal(got, strings.Split(want, "|")) {
						t.Errorf("%s has %q, want %q", table, got, want)
					}
				}
				wantProved(t, s, []*history{replica})
				must(t, s.Snapshot(t.Context(), "b", func(v *Snapshot) error {
					rows, err := v.Ranks(rankcache.Descending, rankcache.ScoreInteger).Rows(0, 2)
					if want := []Row{{"a", 10, a, ""}, {"c", 5, c, ""}}; !slices.Equal(rows, want) {
						t.Errorf("best rows %v, want %v", rows, want)
					}
					return err
				}))
			})
		})
	}
}

// TestRepeatOfAnotherVersion: a change that writers of two versions have published is one change.
func TestRepeatOfAnotherVersion(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		h := newHistory("b", 1)
		u := h.tie("a", 10, false)
		unmarked := *u
		unmarked.Form = rankcache.ScoreNumber
		next, _ := feed(t, s, 0, u)
		if _, done := feed(t, s, next, &unmarked, u); done != (Result{Repeats: 2}) {
			t.Errorf("%+v, want two repeats", done)
		}
	})
}
