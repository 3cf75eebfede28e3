package ledger

import (
	"testing"

	"rankcache/wire"
)

// TestScoreOfAHiddenMember: of a board whose class keeps its best members alone by now, a member that it still hides has no score that
// the ledger would tell.
func TestScoreOfAHiddenMember(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		h := newHistory("b", 1)
		feed(t, s, 0, h.incr("a", 10), h.incr("b", 20), h.change(wire.OpHide, "a", 7, "hide/7/a"), h.incr("a", 5), h.change(wire.OpTrim, "b", 0, "o"))
		must(t, s.Snapshot(t.Context(), "b", func(v *Snapshot) error {
			if row, has, known, err := v.Score("b"); err != nil || !has || !known || row.Score != 20 {
				t.Errorf("trimmed: %v %t %t %v", row, has, known, err)
			}
			row, has, known, err := v.Score("a")
			if has && known || row.Score != 0 {
				t.Errorf("hidden: %v %t %t", row, has, known)
			}
			return err
		}))
	})
}
