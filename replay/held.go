package replay

import (
	"strings"

	"rankcache"
	"rankcache/wire"
)

// An answer is of one moment: the board as it was at its seq. Updates come out of
// that order when a board has several partitions or writers, and those ahead of a
// missing one would show a board that never was. So a board that is read, or about
// to be, is given its updates without holes; what comes early is held until the
// missing one is there.

// heldMost bounds what is held, about 15 MB of one board. Beyond it updates are
// applied as they come: an update that stays away for so long closes the board
// before long (watch).
const heldMost = 64 << 10

// held is the updates of one board that came before an earlier one.
type held struct {
	updates map[uint64]wire.Update // by seq; their strings are their own
	highest uint64
}

// arrange appends to ready what may be applied now to a board that has every
// update up to contiguous, in the order of seqs, and keeps the rest of the batch.
// Updates without a seq, and those that are late, are for the board to judge.
func (h *held) arrange(ready, batch []wire.Update, contiguous uint64) []wire.Update {
	next := contiguous + 1
	for i := range batch {
		switch u := &batch[i]; {
		case u.Seq > next && len(h.updates) < heldMost:
			h.keep(u)
		case u.Seq > next:
			ready = append(h.giveUp(ready), *u)
		default:
			ready = append(ready, *u)
			if u.Seq == next {
				next++
				ready, next = h.release(ready, next)
			}
		}
	}
	return ready
}

func (h *held) keep(u *wire.Update) {
	if h.updates == nil {
		h.updates = make(map[uint64]wire.Update)
	}
	mine := *u
	mine.Member, mine.OrderID = strings.Clone(u.Member), strings.Clone(u.OrderID)
	h.updates[u.Seq] = mine
	h.highest = max(h.highest, u.Seq)
}

// release appends those that follow without a hole from next on, and returns the
// seq that is missing then.
func (h *held) release(ready []wire.Update, next uint64) ([]wire.Update, uint64) {
	for {
		u, ok := h.updates[next]
		if !ok {
			return ready, next
		}
		delete(h.updates, next)
		ready = append(ready, u)
		next++
	}
}

// giveUp appends all, in no order, and holds nothing any more.
func (h *held) giveUp(ready []wire.Update) []wire.Update {
	for _, u := range h.updates {
		ready = append(ready, u)
	}
	*h = held{}
	return ready
}

// apply applies the batch that the pump has gathered, as far as the board may have
// it. A board whose log has a hole that was filled before it was read jumps over
// what it had already; what is held behind that is released in a second round.
func (f *follower) apply() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.holding {
		f.count(f.board.Apply(f.batch))
		return
	}
	f.ready = f.held.arrange(f.ready[:0], f.batch, f.board.Progress().Contiguous)
	for {
		f.count(f.board.Apply(f.ready))
		clear(f.ready)
		contiguous := f.board.Progress().Contiguous
		if f.held.highest <= contiguous { // what is left are repeats of what it had
			f.held = held{}
			return
		}
		if f.ready, _ = f.held.release(f.ready[:0], contiguous+1); len(f.ready) == 0 {
			return
		}
	}
}

// hold begins to hold what comes early. The lock is not held.
func (f *follower) hold() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.holding = true
}

// letGo applies what is held, and from now on all updates as they come. The lock
// is not held.
func (f *follower) letGo() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.shown() {
		f.spill()
	}
}

// spill is letGo with the lock held.
func (f *follower) spill() {
	f.holding = false
	if len(f.held.updates) > 0 {
		f.count(f.board.Apply(f.held.giveUp(nil)))
	}
}

// progress is the board's, with what is held counted as come.
func (f *follower) progress() rankcache.Progress {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.progressLocked()
}

func (f *follower) progressLocked() rankcache.Progress {
	p := f.board.Progress()
	p.Highest = max(p.Highest, f.held.highest)
	return p
}
