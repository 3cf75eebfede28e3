package localboard

// Repair gives one member the state that the origin had when the board's seq was
// seq: score, or not on the board if there is false. A member that has, or may
// have had, an update beyond seq keeps what it has, so that a repair never
// overwrites a newer state, and updates up to seq that come after it change
// nothing. It says whether the board was changed; readers see it after the next
// Publish. The id is not kept.
func (b *Board) Repair(member string, score float64, there bool, seq uint64) (changed bool) {
	if isAbsent(score) && there {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	h, r := b.members.find(member)
	if r == nil {
		if !there || seq < b.forgotten {
			return false
		}
		h, r = b.member(member)
	}
	if r == nil || r.seq > seq {
		return false
	}
	if score += 0; !there {
		score = absent
	}
	before := b.score(r)
	b.settle(h, r, seq, score)
	b.tidy()
	return before != score && !(isAbsent(before) && isAbsent(score))
}
