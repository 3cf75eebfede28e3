package replay

import (
	"context"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"rankcache"
	"rankcache/wire"
)

// replica is the local copy of one board, and whether it may be read. This file has the path of an update, apply and
// publish, and faults; replica_open.go has epochs, opening and closing, and replica_fill.go filling.
//
// The dispatcher applies and publishes. The gate opens the replica, fills it and starts a new epoch after a fault. Any
// goroutine may report a fault, which closes it at once. All of them lock mu: after the membership's lock, before those
// of sources, file and audit, and around calls of the board. Nothing waits for the network with it held.
type replica struct {
	id      rankcache.BoardID
	board   Board
	boards  Boards // opens and closes the board for readers
	sources *sources
	file    *fileState
	audit   *auditStats
	wake    signal // wakes the gate

	// readable is set while the board is open, stale while only its file answers. They are written with mu held.
	readable, stale atomic.Bool
	// awaited is a total of Redis that the board had not reached when it was read. The totals poller sets it. When the
	// board has reached it, the dispatcher or the poller clears it and marks the board as current at that time.
	awaited atomic.Pointer[reading]

	mu      sync.Mutex
	in      intake
	epoch   int    // rises whenever findings about the board become void
	dropped bool   // not followed any more
	fault   *fault // why the board is to be filled again; nil if it is sound
}

// apply applies a batch, which is not empty. Only the dispatcher calls it.
func (r *replica) apply(batch []wire.Update) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dropped || r.settled() {
		return
	}
	r.foundLocked(r.in.apply(batch, r.visible()))
	if r.in.waits() && !r.readable.Load() {
		r.wake.wake() // the gate may be waiting for one of them
	}
}

// visible returns whether readers find the board, open or stale.
func (r *replica) visible() bool { return r.readable.Load() || r.stale.Load() }

// settled reports whether the board is open, and equal to a closed one.
func (r *replica) settled() bool {
	return r.readable.Load() && r.board.Life() >= rankcache.LifeClosed
}

// publish makes applied updates visible to readers, with the copy's age. It returns the time of the oldest command
// among them in Unix milliseconds, 0 if it is not known. It does nothing to a closed board: that may be half full.
func (r *replica) publish() (oldest int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.visible() {
		return 0
	}
	oldest, r.in.oldest = r.in.oldest, 0
	due := r.awaited.Load()
	reached := due != nil && r.board.Progress().Applied() >= due.Seq
	r.board.Publish()
	if reached {
		r.board.MarkCurrent(due.current)
		r.awaited.CompareAndSwap(due, nil)
	}
	if !r.readable.Load() {
		return 0
	}
	return oldest
}

// publishCurrent is publish for a board known to have been current at t; false if it is not open.
func (r *replica) publishCurrent(t time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.readable.Load() {
		return false
	}
	r.board.Publish() // usually nothing to do; then readers have all that is counted
	r.in.oldest = 0
	r.board.MarkCurrent(t)
	return true
}

// snapshot publishes the board and returns that, and whether members have data; false if it is not open.
func (r *replica) snapshot() (at rankcache.Stamp, pieces iter.Seq[[]rankcache.Entry], data, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.readable.Load() {
		return at, nil, false, false
	}
	r.board.Publish()
	r.in.oldest = 0
	at, pieces = r.board.Snapshot()
	return at, pieces, rankcache.One(context.Background(), r.board, rankcache.Query{}).Data != nil, true
}

// report closes a board that is known to be wrong, to be filled again. A fault of a past epoch is ignored.
func (r *replica) report(epoch int, why fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.epoch == epoch && !r.dropped {
		r.reportLocked(why)
	}
}

// foundLocked reports what an update has shown. If the board is suspected and unread, Redis is being asked.
func (r *replica) foundLocked(why *fault) {
	if why != nil && (!why.suspected || r.visible()) {
		r.reportLocked(*why)
	}
}

func (r *replica) reportLocked(why fault) {
	if r.visible() {
		r.closeLocked()
	}
	if r.fault == nil || r.fault.suspected && !why.suspected {
		r.fault = &why
	}
	if !why.counted {
		r.audit.difference(why.kind, why.reason, time.Now())
	}
	r.wake.wake()
}

func (r *replica) closeLocked() {
	r.readable.Store(false)
	r.stale.Store(false)
	r.awaited.Store(nil)
	r.boards.Close(r.id)
}

// progress is the board's, with the waiting updates counted as come.
func (r *replica) progress() rankcache.Progress {
	_, p := r.position()
	return p
}

// position returns the progress and the epoch that it belongs to.
func (r *replica) position() (epoch int, p rankcache.Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.epoch, r.in.progress()
}

// proving returns whether the gate compares the board with a state of Redis.
func (r *replica) proving() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.in.reorder.limited
}

func (r *replica) recentMembers() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.in.recent)
}
