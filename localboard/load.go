package localboard

import (
	"fmt"
	"slices"

	"rankcache"
)

// loading replaces a board's members by a snapshot's, some at a time under the lock: later updates stay.
type loading struct {
	*Board
	seq    uint64
	pieces [][]rankcache.Entry
	resets int    // of the board, when it began
	table  *table // with room for all, so that none has to grow with the lock held
	listed [][]uint32
}

const loadPiece = 256 // how many members are loaded with the lock held: some 0.2 ms

func (l *loading) run() error {
	members := 0
	for _, es := range l.pieces {
		members += len(es)
		for i := range es {
			if err := checkEntry(&es[i]); err != nil {
				return fmt.Errorf("board %s: snapshot: %w", l.id, err)
			}
		}
	}
	l.whole.Lock()
	defer l.whole.Unlock()
	l.table = newTable(members)
	if err := l.locked(l.begin); err != nil {
		return err
	}
	for _, es := range l.pieces {
		for piece := range slices.Chunk(es, loadPiece) {
			if err := l.locked(func() error { l.load(piece); return nil }); err != nil {
				return err
			}
		}
	}
	if err := l.removeOthers(); err != nil {
		return err
	}
	return l.locked(l.end)
}

// locked takes a step with the lock held, unless the board was reset.
func (l *loading) locked(step func() error) error {
	l.paused()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Board.resets != l.resets {
		return fmt.Errorf("board %s: %w", l.id, ErrReset)
	}
	return step()
}

func (l *loading) begin() error {
	if l.seq < l.forgottenSeq {
		return fmt.Errorf("board %s: %w: read a snapshot after seq %d; this one is of %d", l.id, ErrOldSnapshot, l.forgottenSeq, l.seq)
	}
	l.numbered, l.strict, l.ring = true, false, sumRing{}
	l.seqs.acceptTo(l.seq) // what the snapshot has is not applied after it
	l.forgottenSeq = max(l.forgottenSeq, l.seq)
	if t := l.members.table; t.size < l.table.size && t.used < l.table.size/2 {
		l.members.table = t.copyTo(l.table)
	}
	return nil
}

func (l *loading) load(es []rankcache.Entry) {
	listed := make([]uint32, 0, len(es))
	for i := range es {
		id, data := rankcache.SplitData(es[i].Member)
		if m := l.findOrAdd(id); m.record != nil {
			listed = append(listed, m.handle)
			l.setAsOf(l.seq, m, es[i].Score+0, data)
		}
	}
	l.listed = append(l.listed, listed)
}

// removeOthers removes the members that the snapshot lacks.
func (l *loading) removeOthers() error {
	var keep bitset
	if err := l.locked(func() error { keep = newBitset(l.members.endHandle); return nil }); err != nil {
		return err
	}
	for _, handles := range l.listed {
		for _, h := range handles {
			keep.put(h)
		}
	}
	for next := uint32(0); next != allHandles; {
		err := l.locked(func() error {
			next = l.members.some(next, loadPiece, func(h uint32, r *record) {
				if !keep.has(h) {
					l.setAsOf(l.seq, l.members.of(h, r), absent, "")
				}
			})
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *loading) end() error {
	l.numbered = false
	maybeCompact(&l.writerState)
	return nil
}

func checkEntry(e *rankcache.Entry) error {
	if member, _ := rankcache.SplitData(e.Member); len(member) > maxMember {
		return fmt.Errorf("member %.40q has %d bytes, want at most %d", e.Member, len(e.Member), maxMember)
	}
	if isAbsent(e.Score) {
		return fmt.Errorf("member %.40q: score is not a number", e.Member)
	}
	return nil
}

// setAsOf gives a member the state that it had at seq, unless it has a later one, and reports whether that changed it.
func (s *writerState) setAsOf(seq uint64, m member, score float64, data string) (changed bool) {
	if m.seq > seq {
		return false
	}
	m.seq = seq
	before := s.score(m)
	if (before == score || isAbsent(before) && isAbsent(score)) && (s.data == nil && data == "" || s.data.Of(m.id()) == data) {
		return false
	}
	s.set(m, before, score, data)
	return true
}
