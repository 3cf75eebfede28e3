package ledger

import (
	"rankcache"
	"rankcache/wire"
)

// masters are the eras of the servers that writers named last, by partition.
type masters map[int32]string

// head returns the run that led to the board in Redis, nil if there is none: the highest of those that were found on a
// server which was named last. If none was, what stood before stays. There runs of which nobody told where they are, as
// writers of earlier versions, count as found.
func (r runsOf) head(board rankcache.BoardID, named masters) (head *boardRun) {
	var stood *boardRun
	known := false
	for _, b := range r[board] {
		list := named[b.part]
		is := b.isOnOne(list)
		if known = known || is; is || !known && (list == "" || b.eras == "") {
			head = b
		}
		if b.end > 0 && !b.added {
			stood = b
		}
	}
	if !known && stood != nil && (head == nil || head.run < stood.run) {
		return stood
	}
	if head == nil && len(r[board]) > 0 {
		return r[board][len(r[board])-1]
	}
	return head
}

// meet reports whether changes are not simply the next of their board's head, which needs a look at the rows.
func (r runsOf) meet(updates []*wire.LedgerUpdate, named masters) bool {
	for _, u := range updates {
		runs, h := r[u.Board], r.head(u.Board, named)
		if h != nil && (u.Run != h.run || u.Seq < h.begin || !h.isOn(u.Era) || h != runs[len(runs)-1]) {
			return true
		}
	}
	return false
}

// chain returns, for a run, those that it continues, each with the first seq that is not part of what led to it: end
// for itself, the beginning of the next one for the others. The last one, root, continues none.
func (r runsOf) chain(of *boardRun, end uint64) (ends map[uint64]uint64, root *boardRun) {
	ends = make(map[uint64]uint64)
	for ; of != nil; of = r.before(of) {
		ends[of.run], root = end, of
		end = min(end, of.begin)
	}
	return ends, root
}

// before returns the run that another continues, nil: a new life; if changes are missing, the latest that far.
func (r runsOf) before(of *boardRun) (before *boardRun) {
	if of.begin == 1 || of.after != 0 {
		return r.find(of.last.Board, of.after)
	}
	for _, b := range r[of.last.Board] {
		if b.run < of.run && (before == nil || b.last.Seq+1 >= of.begin || before.last.Seq+1 < of.begin) {
			before = b
		}
	}
	return before
}

// forget has it found out anew what the runs continue that a change may have led to.
func (r runsOf) forget(u *wire.LedgerUpdate) {
	for _, of := range r[u.Board] {
		if of.run > u.Run && of.begin == u.Seq+1 {
			if of.after != 0 {
				of.was = of.after
			}
			of.after, of.changed = 0, true
		}
	}
}

// cut tells that other changes of a run stand than before: those before is, and not those before was.
type cut struct {
	*boardRun
	was, is uint64
}

// relate finds out which changes of a board stand: those of its head, what led to it, and earlier lives.
func (r runsOf) relate(board rankcache.BoardID, named masters) (cuts []cut) {
	runs := r[board]
	for n, head := len(runs), r.head(board, named); n > 0; head = runs[max(0, n-1)] {
		ends, root := r.chain(head, noEnd)
		for ; n > 0 && runs[n-1].run >= root.run; n-- {
			of := runs[n-1]
			end := ends[of.run] // else 0: nothing of it stands
			if of.base != root.run {
				of.base, of.changed = root.run, true
			}
			if of.end != end {
				cuts = append(cuts, cut{of, of.end, end})
				of.end, of.changed = end, true
			}
		}
	}
	return cuts
}

// continues reports whether a run's first change makes its score and checksum of those at a place of another run.
func (r runsOf) continues(first, place *wire.Update, of []*wire.Update) bool {
	ends, _ := r.chain(r.find(place.Board, place.Run), first.Seq)
	var before *wire.Update
	for _, u := range of {
		if memberOf(u) == memberOf(first) && u.Seq < ends[u.Run] && (before == nil || later(u, before)) {
			before = u
		}
	}
	return place.HasSum && first.HasSum && leadsTo(place.Sum, before, first)
}

// leadsTo reports whether a change makes its sum and score of the sum before and the member's change before, nil: none.
func leadsTo(sum uint64, before, u *wire.Update) bool {
	return addsUp(sum, before, u) && goesOn(before, u)
}

// addsUp reports whether the checksum of u is that of a board whose member had before.
func addsUp(sum uint64, before, u *wire.Update) bool {
	return (sum-shareOf(before)+shareOf(u))&wire.SumMask == u.Sum
}

// goesOn reports whether the score of an increment is that of the change from which it goes on, and the increment.
func goesOn(from, u *wire.Update) bool {
	score, form := 0.0, u.Form
	if from != nil && from.Scored() {
		form |= from.Form // that of a score of 0 tells nothing
		score = form.Shown(from.Score)
	}
	return u.Op != wire.OpIncr || form.Shown(u.Score) == score+u.Delta
}

// shareOf returns the share of the checksum that a change's member has after it; nil: none.
func shareOf(u *wire.Update) uint64 {
	if u == nil || !u.Seen() {
		return 0
	}
	return wire.Hash(rankcache.JoinData(u.Member, u.Data), u.Score)
}

// cutOff reports whether retention has removed rows of a board.
func (r runsOf) cutOff(board rankcache.BoardID) bool {
	base := uint64(0)
	for _, of := range r[board] {
		base = max(base, of.base)
	}
	for _, of := range r[board] {
		if of.run >= base && of.end > 0 && of.first > of.begin {
			return true
		}
	}
	return false
}
