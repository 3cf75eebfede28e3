package rebuild

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"rankcache"
	"rankcache/ledger"
	"rankcache/wire"
)

// errLogShort reports a topic that does not have all of a board.
var errLogShort = errors.New("the update topic does not have all of the board")

// place is the state of a member after its latest change.
type place struct {
	run, seq uint64
	score    float64 // of one that was trimmed: before
	gone     bool
	trimmed  bool
	absolute bool // a change of it was no increment, so that what it had in an earlier life does not count
}

// life is one life of a board, folded from its changes: of a member the one with the highest seq counts.
type life struct {
	members map[string]place
	last    wire.Update
	changes uint64 // read; one that comes again counts again
}

func newLife() *life { return &life{members: make(map[string]place)} }

func (l *life) apply(u *wire.Update, s *stretch) {
	if u.Seq >= s.limit {
		return
	}
	l.changes++
	if compareStates(u.Run, u.Seq, l.last.Run, l.last.Seq) > 0 {
		l.last = *u
		l.last.Member, l.last.OrderID, l.last.Board, l.last.By = "", "", "", "" // their memory is the record's
	}
	was, known := l.members[u.Member]
	absolute := was.absolute || u.Op != wire.OpIncr
	if known && compareStates(u.Run, u.Seq, was.run, was.seq) <= 0 {
		was.absolute = absolute
		l.members[strings.Clone(u.Member)] = was // a map keeps the last string that is equal
		return
	}
	now := place{u.Run, u.Seq, u.Score, u.Op.Removes(), u.Op == wire.OpTrim, absolute}
	if now.trimmed {
		now.score = was.score
	}
	l.members[strings.Clone(u.Member)] = now
}

func compareStates(run, seq, otherRun, otherSeq uint64) int {
	return cmp.Or(cmp.Compare(run, otherRun), cmp.Compare(seq, otherSeq))
}

func (l *life) state() rankcache.State {
	return rankcache.State{Run: l.last.Run, Seq: l.last.Seq, Sum: l.last.Sum, HasSum: l.last.HasSum}
}

// prove compares the members with the last sum, perhaps without those of earlier runs where changes were compacted.
func (l *life) prove() error {
	runs := map[uint64]bool{}
	for _, m := range l.members {
		runs[m.run] = true
	}
	if !l.last.HasSum {
		return fmt.Errorf("%w: its last change has no checksum, so nothing proves that", errLogShort)
	}
	var sum uint64
	var count int
	for _, from := range slices.Sorted(maps.Keys(runs)) {
		sum, count = 0, 0
		for member, m := range l.members {
			if m.run >= from && !m.gone {
				sum, count = (sum+wire.Hash(member, m.score))&wire.SumMask, count+1
			}
		}
		if sum == l.last.Sum && count == l.last.Members {
			maps.DeleteFunc(l.members, func(_ string, m place) bool { return m.run < from })
			return nil
		}
	}
	return fmt.Errorf("%w: the %d changes that it has give %d members, and after change %d there were %d, or other scores (checksum %012x, want %012x)",
		errLogShort, l.changes, count, l.last.Seq, l.last.Members, sum, l.last.Sum)
}

// add adds an earlier life, as if there had been no new beginning: increments change its scores.
func (l *life) add(earlier *life) {
	for member, was := range earlier.members {
		now, known := l.members[member]
		switch {
		case was.gone:
		case !known:
			l.members[member] = place{run: l.last.Run, score: was.score}
		case !now.absolute:
			now.score += was.score
			l.members[member] = now
		}
	}
}

// earlier describes the life as one that has ended.
func (l *life) earlier() *ledger.Earlier {
	return &ledger.Earlier{Run: l.last.Run, Changes: l.last.Seq, Members: l.last.Members, At: l.last.At}
}

// each calls fn for each member on the board, or of a trimmed one driven out, in the order of their bytes.
func (l *life) each(trimmed bool, fn func(rankcache.Entry) error) error {
	for _, member := range slices.Sorted(maps.Keys(l.members)) {
		if m := l.members[member]; m.trimmed == trimmed && (trimmed || !m.gone) {
			if err := fn(rankcache.Entry{Member: member, Score: m.score}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *life) Members(fn func(rankcache.Entry) error) error { return l.each(false, fn) }
func (l *life) Trimmed(fn func(rankcache.Entry) error) error { return l.each(true, fn) }

// Hidings has none: boards that hide members, or have, are not rebuilt from the topic of their updates.
func (l *life) Hidings(func(member, veil string) error) error { return nil }
