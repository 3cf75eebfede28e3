package replay

import (
	"context"
	"time"

	"rankcache"
)

// known is the replication id under which a board was last seen, as it was told up to 10 s before: one that is deleted
// within that time after a failover counts as lost. It belongs to the totals poller.
type known struct {
	history string // "": Redis does not tell
	run     uint64 // of the board at the last look
	members int
}

// histories returns the histories of the servers that have the boards, nil if none needs it, or Redis does not answer.
// They are asked for before the boards are looked at: a board that is there then was not lost before.
func (t *totalsPoller) histories(ctx context.Context, all []probe, ids []rankcache.BoardID) []string {
	for i := range all {
		if all[i].feed.sources.isReplica() {
			return nil // its history is its own
		}
		if f := all[i].feed; f.replica.readable.Load() && !f.replica.settled() {
			names, err := t.origin.Histories(ctx, ids, false)
			if err != nil {
				return nil // the look itself will tell
			}
			return names
		}
	}
	return nil
}

// mayBeLost reports whether Redis lacks a board that is open here with members.
func (t *totalsPoller) mayBeLost(p *probe, r reading) bool {
	f := p.feed
	return t.total == TotalSeq && r.Run == 0 && r.members == 0 && p.run != 0 && p.before.Members > 0 && f.known.history != "" && f.replica.readable.Load()
}

// seemsBegunAgain reports whether a board has another life than at the last look, with fewer than half of the members.
func (t *totalsPoller) seemsBegunAgain(f *feed, r reading) bool {
	return t.total == TotalSeq && f.known.history != "" && r.Run != f.known.run && (r.Run != 0 || r.members > 0) && fewer(r, f.known.members)
}

func fewer(r reading, members int) bool { return 2*r.members < members }

// tellBegunAgain tells of lost boards that others have begun again, and reports whether that could be judged.
func (t *totalsPoller) tellBegunAgain(ctx context.Context, again []probe) bool {
	ids := make([]rankcache.BoardID, len(again))
	for i := range again {
		ids[i] = again[i].feed.id
	}
	names, err := t.origin.Histories(ctx, ids, true)
	if err != nil {
		t.failed(err, again)
		return false
	}
	for i := range again {
		f := again[i].feed
		if names[i] == "" || names[i] == f.known.history {
			continue
		}
		f.begunAgain.Store(int64(f.known.members))
		t.log.Error("redis has lost a board, and it has begun again: what it had is not on it", "board", f.id, "members", f.known.members)
	}
	return true
}

// tell decides for boards that Redis lacks whether it has lost them: its history is another one than the one in which
// they were there. Those are kept as they were, until Redis has them again or they are too old. Any other was deleted.
func (t *totalsPoller) tell(ctx context.Context, missing []probe, looks []reading) {
	if len(missing) == 0 {
		return
	}
	ids := make([]rankcache.BoardID, len(missing))
	for i := range missing {
		ids[i] = missing[i].feed.id
	}
	names, err := t.origin.Histories(ctx, ids, true)
	if err != nil {
		t.failed(err, missing)
		return // it is decided at the next look
	}
	for i := range missing {
		f := missing[i].feed
		switch lost := names[i] != "" && names[i] != f.known.history && time.Since(f.replica.board.CurrentAt()) < t.maxStale; {
		case !lost:
			f.lost.Store(false)
			t.judge(&missing[i], looks[i])
		case !f.lost.Swap(true):
			t.log.Error("redis has lost a board: it is kept as it was", "board", f.id, "members", missing[i].before.Members, "until_age", t.maxStale)
		}
	}
}
