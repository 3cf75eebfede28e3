package replay

import (
	"fmt"
	"time"
)

// Kinds of differences between an open board and Redis, as metrics count them.
const (
	kindScore   = "score"   // a member has another score
	kindMissing = "missing" // a member of Redis's is not here
	kindExtra   = "extra"   // a member is here and not in Redis
	kindMembers = "members" // another number of members
	kindRank    = "rank"    // a member with the right score has another rank
	kindHole    = "hole"    // an update does not come
	kindAhead   = "ahead"   // Redis's total fell below what was applied
	kindGone    = "gone"    // Redis has no such board any more
	kindReused  = "reused"  // a seq came again as another update
)

var kinds = []string{kindScore, kindMissing, kindExtra, kindMembers, kindRank, kindHole, kindAhead, kindGone, kindReused}

// fault is a reason to fill a board again.
type fault struct {
	kind, reason string
	// void says that the board's own seqs can't be trusted either: they count
	// what Redis has lost.
	void bool
	// counted says that the differences behind it have been counted.
	counted bool
}

func gone(what string) fault {
	return fault{kind: kindGone, reason: "Redis has no " + what + " of the board any more", void: true}
}

func aheadOf(redis, board uint64) fault {
	return fault{kind: kindAhead, void: true,
		reason: fmt.Sprintf("Redis is at update %d, the board at %d: Redis has lost writes or began anew", redis, board)}
}

func reused(seq uint64) fault {
	return fault{kind: kindReused, void: true,
		reason: fmt.Sprintf("update %d came again as another order: Redis has lost writes or began anew", seq)}
}

// report closes the board at once, because it is known to be wrong, and has its
// gate fill it again. What was found out about an epoch that has passed is void.
func (f *follower) report(epoch int, why fault, boards Boards) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.epoch == epoch && !f.dropped {
		f.accuse(why, boards)
	}
}

// accuse is report with the lock held.
func (f *follower) accuse(why fault, boards Boards) {
	if f.shown() {
		f.shut(boards)
	}
	if f.fault == nil || why.void {
		f.fault = &why
	}
	if !why.counted {
		f.differs(why.kind, why.reason, time.Now())
	}
	f.nudge()
}

// heal begins a new epoch of a board that has a fault, and returns that; nil if
// it has none. Where no seq tells what comes after a snapshot, the log is read
// again from its beginning.
//
// The board is filled again in place. While it is known to be wrong nobody may
// read it anyway, so that a second copy would only cost its memory; and nobody
// sees this one half full: a view is published only with the lock held and the
// board readable (show), or when the gate opens it.
func (f *follower) heal(total Total, boards Boards) *fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	why := f.fault
	if why == nil {
		return nil
	}
	f.shut(boards)
	if why.void || total != TotalSeq {
		f.empty()
	}
	if total != TotalSeq && f.reading != nil {
		f.reading.torn.Store(true)
	}
	f.want, f.fault = f.total.seq, nil
	f.ledger.Rebuilds++
	f.epoch++
	return why
}
