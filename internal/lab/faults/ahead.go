package faults

// aheadSpan is how many seqs an answer may be ahead of its own.
const aheadSpan = 300

// ahead reports whether the answer differs from the board at its seq by nothing
// but updates with later seqs, which reached the sidecar before an earlier one.
// Such an answer is of no one moment, but each of its rows is of a moment that was.
func (j *judged) ahead(h *history) bool {
	to := min(h.known(), j.Seq+aheadSpan)
	later := map[string][]place{}
	for _, c := range h.changes[j.Seq:to] {
		later[c.member] = append(later[c.member], c.after)
	}
	me := j.meAgainst(h)
	h.walk(j.Seq)
	valid := func(r Row) bool {
		is := place{r.Score, r.Rank != 0}
		score, on := h.scores[r.Member]
		if is == (place{score, on}) {
			return true
		}
		for _, p := range later[r.Member] {
			if is == p {
				return true
			}
		}
		return false
	}
	rows := append(append(append([]Row{}, j.Rows...), j.Near...), j.Places...)
	if me != "" {
		rows = append(rows, *j.Me)
	}
	if j.Kind == KindMember {
		rows = append(rows, Row{Rank: j.Rank, Member: j.Member, Score: j.Score})
	}
	for _, r := range rows {
		if !valid(r) || r.badProfile() {
			return false
		}
	}
	return len(later) > 0 && inOrder(j.Rows, j.Start) && inOrder(j.Near, max(j.Rank-1-j.Limit, 0))
}

// inOrder reports whether rows are ranked one after the other, best first.
func inOrder(rows []Row, start int) bool {
	for i, r := range rows {
		if r.Rank != start+i+1 || i > 0 && !before(rows[i-1].entry(), r.entry()) {
			return false
		}
	}
	return true
}
