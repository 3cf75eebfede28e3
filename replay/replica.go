package replay

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"rankcache"
	"rankcache/wire"
)

// replica is the local copy of one board, and whether it may be read. This file has
// the path of an update: apply and publish; replica_state.go has epochs, opening,
// closing, faults and filling.
//
// The dispatcher applies and publishes. The gate opens the replica, fills it and
// starts a new epoch after a fault. Any goroutine may report a fault, which closes it
// at once. All of them lock mu: after the membership's lock, before those of sources,
// file and audit, and around calls of the board. Nothing waits for the network with it
// held.
type replica struct {
	id      rankcache.BoardID
	board   Board
	boards  Boards // opens and closes the board for readers
	sources *sources
	file    *fileState
	audit   *auditStats
	wake    signal // wakes the gate
	counts  updateCounts

	// readable is set while the board is open, stale while it is answered from its
	// file and was not compared. They are written with mu held.
	readable, stale atomic.Bool
	// awaited is a total of Redis that the board had not reached when it was read.
	// The totals poller sets it. When the board has reached it, the dispatcher or the
	// poller clears it and marks the board as current at that time.
	awaited atomic.Pointer[reading]

	mu sync.Mutex
	// epoch rises whenever what was found out about the board becomes void.
	epoch   int
	dropped bool   // not followed any more
	fault   *fault // why the board is to be filled again; nil if it is sound
	reorder reorderBuffer
	ring    seqRing
	recent  recentMembers
}

func newReplica(f *feed, boards Boards) *replica {
	return &replica{id: f.id, board: boards.Create(f.id), boards: boards, sources: &f.sources, file: &f.file, audit: f.audit, wake: newSignal()}
}

// updateCounts counts what became of a board's updates. They are counted with the
// replica's lock held and read without.
type updateCounts struct {
	applied, duplicate, stale atomic.Uint64
	// distinct is the number of different updates since the board was last empty.
	distinct atomic.Uint64
}

func (c *updateCounts) add(done rankcache.ApplyResult) {
	c.applied.Add(uint64(done.Applied))
	c.duplicate.Add(uint64(done.Duplicate))
	c.stale.Add(uint64(done.Stale))
	c.distinct.Add(uint64(done.Applied + done.Stale))
}

// apply applies a batch, which is not empty. An early update waits in the reorder
// buffer if the board is read. Only the dispatcher calls it.
func (r *replica) apply(batch []wire.Update) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recent.add(batch[len(batch)-1].Member)
	r.checkSeqs(batch)
	if !r.reorder.enabled && !r.reorder.limited {
		r.counts.add(r.board.Apply(batch))
		return
	}
	ready, overflow := r.reorder.Add(batch, r.board.Progress().Contiguous)
	for more := true; more; more = len(ready) > 0 {
		r.counts.add(r.board.Apply(ready))
		ready = r.reorder.Next(r.board.Progress().Contiguous)
	}
	if overflow {
		r.reportLocked(faultOverflow(r.board.Progress().Contiguous + 1))
	}
}

// checkSeqs closes the board if a seq is used again, before anything of the new
// count can be read. mu is held.
func (r *replica) checkSeqs(batch []wire.Update) {
	for i := range batch {
		if u := &batch[i]; r.ring.Add(u) {
			r.reportLocked(faultReused(u.Seq))
			r.ring.Clear() // every update from here on would differ
		}
	}
}

// visible returns whether readers find the board, open or stale.
func (r *replica) visible() bool { return r.readable.Load() || r.stale.Load() }

// publish shows readers what was applied, and how old it is now. It does nothing to
// a closed board: that may be half full.
func (r *replica) publish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.visible() {
		return
	}
	due := r.awaited.Load()
	reached := due != nil && r.board.Progress().Applied() >= due.seq
	r.board.Publish()
	if reached {
		r.board.MarkCurrent(due.requested)
		r.awaited.CompareAndSwap(due, nil)
	}
}

// publishCurrent is publish for an open board that is known to have been current
// at t. It returns false if the board is not open.
func (r *replica) publishCurrent(t time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.readable.Load() {
		return false
	}
	r.board.Publish() // usually nothing to do; then readers have all that is counted
	r.board.MarkCurrent(t)
	return true
}

// startOrdering makes early updates wait from now on.
func (r *replica) startOrdering() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reorder.enabled = true
}

// stopOrdering applies what waits, and from now on all updates as they come, unless
// the board is read.
func (r *replica) stopOrdering() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.visible() {
		r.flushLocked()
	}
}

func (r *replica) flushLocked() {
	r.reorder.enabled = false
	if early := r.reorder.Flush(); len(early) > 0 {
		r.counts.add(r.board.Apply(early))
	}
}

// progress is the board's, with what waits in the reorder buffer counted as come.
func (r *replica) progress() rankcache.Progress {
	_, p := r.position()
	return p
}

// position returns the progress and the epoch that it belongs to.
func (r *replica) position() (epoch int, p rankcache.Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p = r.board.Progress()
	p.Highest = max(p.Highest, r.reorder.highest)
	return r.epoch, p
}

// waitsFor returns the seq after which updates are held, and whether the gate has them
// held.
func (r *replica) waitsFor() (after uint64, gate bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if after = r.board.Progress().Contiguous + 1; !r.reorder.enabled {
		after = r.reorder.limit
	}
	return after, r.reorder.limited
}

// dropHeld drops what is held, because all boards hold too much. The board has to be
// filled again.
func (r *replica) dropHeld() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reorder.Clear()
	r.reportLocked(faultOverflow(r.board.Progress().Contiguous + 1))
}

func (r *replica) recentMembers() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.recent)
}

// maxRecent is how many of the members last written to are remembered, to be
// compared with Redis: a removed member is not among Redis's random ones.
const maxRecent = 16

// recentMembers are the members last written to, oldest first.
type recentMembers []string

func (m *recentMembers) add(member string) {
	if len(*m) == maxRecent {
		*m = slices.Delete(*m, 0, 1)
	}
	*m = append(*m, strings.Clone(member))
}
