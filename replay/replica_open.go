package replay

import (
	"time"

	"rankcache"
)

// begin is called before the first record of t. If t replaces an earlier log of the topic, the board starts from
// nothing: it is closed before it is emptied, so that it is not read half full.
//
// Its gate may just have found the old board good and be about to open it. Both hold the lock, so either open comes
// first and is undone here, or it sees that the epoch has passed.
func (r *replica) begin(t *topic) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dropped {
		return
	}
	another := r.file.isOfAnother(t)
	if another {
		r.audit.voidFile(kindTopic)
	}
	if t.reset || another {
		r.closeLocked()
		r.resetLocked()
		r.fault = nil
		r.epoch++
	}
	r.sources.begin(t, t.isStream() && !r.file.isOf(t)) // what is before, Redis alone has
	r.wake.wake()
}

// join is begin for a board that takes part in a reading from where it is.
func (r *replica) join(t *topic) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dropped {
		return
	}
	r.sources.begin(t, true)
	r.wake.wake()
}

// opening is the result of the comparison by which a board is opened.
type opening struct {
	equalAt time.Time        // when the board equalled Redis
	equalTo *rankcache.State // of Redis, if the board is proved to be equal; nil: a sample agrees
	life    rankcache.Life   // that it had there
}

// open makes the board readable; false if anything happened since the epoch, or it is not equal to its aim.
func (r *replica) open(epoch int, o opening) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.soundLocked(epoch) || o.equalTo != nil && !r.board.Prove(*o.equalTo) {
		return false
	}
	r.board.SetLife(o.life)
	r.readableLocked(o.equalAt)
	if o.equalTo != nil {
		r.sources.proved(*o.equalTo, o.equalAt)
	}
	r.foundLocked(r.in.endHold())
	return true
}

func (r *replica) readableLocked(equalAt time.Time) {
	r.board.MarkCurrent(equalAt) // so that the first answer knows its age
	r.readable.Store(true)       // first: what is applied from now on must be published
	r.stale.Store(false)
	r.in.reorder.enabled, r.in.oldest = true, 0 // filling it counts as no change
	r.file.entries.Store(nil)
	r.boards.Open(r.id)
}

// reopen makes a board that was closed for a refuted update readable, if its sum at Redis's seq is Redis's.
func (r *replica) reopen(epoch int, origin rankcache.State, equalAt time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	sum, known := r.board.SumAt(origin.Run, origin.Seq)
	if !r.soundLocked(epoch) || !known || sum != origin.Sum {
		return false
	}
	r.readableLocked(equalAt)
	r.sources.proved(origin, equalAt)
	return true
}

// rise has readers see the life that Redis has, if the board has the state that it had there.
func (r *replica) rise(t reading, epoch int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.epoch == epoch && r.readable.Load() && t.life > r.board.Life() && t.HasSum && r.board.State() == t.State {
		r.board.SetLife(t.life)
		r.board.Publish()
	}
}

func (r *replica) soundLocked(epoch int) bool {
	return r.epoch == epoch && !r.dropped && r.fault == nil
}

// sound returns whether nothing was found wrong since the epoch.
func (r *replica) sound(epoch int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.soundLocked(epoch)
}

func (r *replica) currentEpoch() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.epoch
}

// hold makes updates beyond those that the board has wait, and returns its run and the highest seq that it has.
func (r *replica) hold() (run, highest uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	highest = r.board.Progress().Highest
	r.in.reorder.Hold(highest)
	return r.in.run, highest
}

// holdBeyond applies the waiting updates up to a seq, and has those beyond it wait.
func (r *replica) holdBeyond(seq uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.foundLocked(r.in.hold(seq))
}

func (r *replica) startOrdering() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.in.reorder.enabled = true
}

// stopOrdering applies the waiting updates, and from now on all as they come, unless the board is read.
func (r *replica) stopOrdering() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.visible() {
		r.foundLocked(r.in.flush())
	}
}

// openStale makes a board filled from its file readable, unless it is or anything happened since the epoch.
func (r *replica) openStale(epoch int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.file.entries.Load()
	if s == nil || r.stale.Load() || !r.soundLocked(epoch) {
		return false
	}
	if p := r.board.Progress(); !r.board.State().HasSum && !r.board.Prove(s.State) && p.Contiguous < p.Highest {
		return false // updates were applied ahead of others: it would show a state that never was
	}
	r.stale.Store(true) // first: what is applied from now on must be published
	r.in.reorder.enabled = true
	r.boards.Open(r.id)
	return true
}

// closeStale closes a stale board, which the log fills from now on; false if it is not stale.
func (r *replica) closeStale() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closeStaleLocked()
}

func (r *replica) closeStaleLocked() bool {
	if !r.stale.Load() {
		return false
	}
	r.closeLocked()
	r.board.Relax()
	r.foundLocked(r.in.flush())
	return true
}

// resetLocked empties the board and forgets all that is known about it.
func (r *replica) resetLocked() {
	r.in.empty()
	r.in.run, r.in.ofRedis = 0, false
	r.sources.reset()
}

// drop ends the use of the board: it is not followed any more.
func (r *replica) drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropped = true
	r.in.reorder.Clear()
	r.readable.Store(false)
	r.stale.Store(false)
}

// late returns by how much a state of Redis is behind the board, nil if it is not. Updates that wait don't count.
func (r *replica) late(t rankcache.State) *lateError {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lateLocked(t)
}

func (r *replica) lateLocked(t rankcache.State) *lateError {
	have := r.board.Progress().Highest
	if !r.sources.isReplica() || t.Run > r.in.run || t.Run == r.in.run && t.Seq >= have {
		return nil
	}
	return &lateError{t, r.in.run, have}
}
