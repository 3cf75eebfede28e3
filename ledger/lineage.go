package ledger

import (
	"math"

	"rankcache"
	"rankcache/wire"
)

// noEnd is the end of a run all of whose changes stand.
const noEnd = math.MaxInt64

// chain returns, for a run, those that it continues, each with the first seq that is not part of
// what led to it: end for itself, the beginning of the next one for the others. The last
// one, root, continues none.
func (r runsOf) chain(of *boardRun, end uint64) (ends map[uint64]uint64, root *boardRun) {
	ends = make(map[uint64]uint64)
	for ; of != nil; of = r.before(of) {
		ends[of.run], root = end, of
		end = min(end, of.begin)
	}
	return ends, root
}

// before returns the run that another one continues, nil if that is a life of its own. If it is
// unknown, as changes are missing, that is the latest one that has come as far.
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
			of.after, of.changed = 0, true
		}
	}
}

// cut tells that other changes of a run stand than before: those before is, and not those before was.
type cut struct {
	*boardRun
	was, is uint64
}

// relate finds out which changes of a board stand: those of its latest run, and what led to it.
// Below the run with which that life began are earlier ones, each of which ended with its latest run.
func (r runsOf) relate(board rankcache.BoardID) (cuts []cut) {
	runs := r[board]
	for n := len(runs); n > 0; {
		ends, root := r.chain(runs[n-1], noEnd)
		for ; n > 0 && runs[n-1].run >= root.run; n-- {
			of := runs[n-1]
			end, on := ends[of.run] // else 0: nothing of it stands
			if on && of.base != root.run {
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

// continues reports whether a run's first change follows a place of another run: it makes its score and
// its checksum of those there. of are changes of its member before that, in any run.
func (r runsOf) continues(first, place *wire.Update, of []*wire.Update) bool {
	ends, _ := r.chain(r.find(place.Board, place.Run), first.Seq)
	var before *wire.Update
	for _, u := range of {
		if memberOf(u) == memberOf(first) && u.Seq < ends[u.Run] && (before == nil || later(u, before)) {
			before = u
		}
	}
	sum, score, form := place.Sum, 0.0, first.Form
	if before != nil && before.Scored() {
		form |= before.Form // that of a score of 0 tells nothing
		score = form.Shown(before.Score)
	}
	if before != nil && before.Seen() {
		sum -= shareOf(before)
	}
	if first.Seen() {
		sum += shareOf(first)
	}
	follows := first.Op != wire.OpIncr || form.Shown(first.Score) == score+first.Delta
	return follows && place.HasSum && first.HasSum && sum&wire.SumMask == first.Sum
}

// shareOf returns the share of the checksum that a change's member has after it.
func shareOf(u *wire.Update) uint64 {
	return wire.Hash(rankcache.JoinData(u.Member, u.Data), u.Score)
}

// cutOff reports whether retention has removed rows of a board.
func (r runsOf) cutOff(board rankcache.BoardID) bool {
	h := r.highest(board)
	for _, of := range r[board] {
		if of.run >= h.base && of.end > 0 && of.first > of.begin {
			return true
		}
	}
	return false
}
