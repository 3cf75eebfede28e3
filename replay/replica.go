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
	// proving is set while the gate compares the board with a state of Redis.
	proving atomic.Bool
	// awaited is a total of Redis that the board had not reached when it was read.
	// The totals poller sets it. When the board has reached it, the dispatcher or the
	// poller clears it and marks the board as current at that time.
	awaited atomic.Pointer[reading]

	mu sync.Mutex
	// epoch rises whenever findings about the board become void.
	epoch   int
	dropped bool   // not followed any more
	fault   *fault // why the board is to be filled again; nil if it is sound
	// run is that of the updates that are applied; those of another are not. 0 before
	// the first, and for boards whose producer keeps none. ofRedis is set once it
	// was read from Redis.
	run     uint64
	ofRedis bool
	reorder reorderBuffer
	recent  recentMembers
	// oldest is the time of the first command whose change readers don't see yet, in Unix
	// milliseconds; 0: there is none. Filling a board sets none.
	oldest int64
}

func newReplica(f *feed, boards Boards) *replica {
	return &replica{id: f.id, board: boards.Create(f.id), boards: boards, sources: &f.sources, file: &f.file, audit: f.audit, wake: newSignal()}
}

// updateCounts counts a board's updates by outcome. They are counted with the
// replica's lock held and read without.
type updateCounts struct {
	applied, duplicate, stale atomic.Uint64
	// foreign are updates of another history than the board's: of another run, or
	// refuted by the board's sum.
	foreign atomic.Uint64
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
// buffer if the board is read, or is being compared with Redis. Only the dispatcher
// calls it.
func (r *replica) apply(batch []wire.Update) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recent.add(batch[len(batch)-1].Member)
	if batch = r.ofRun(batch); len(batch) == 0 {
		return
	}
	if !r.reorder.enabled && !r.reorder.limited {
		r.applyLocked(batch)
		return
	}
	ready, overflow := r.reorder.Add(batch, r.board.Progress().Contiguous)
	r.applyLocked(ready)
	r.applyNext()
	if overflow {
		r.reportLocked(faultOverflow(r.board.Progress().Contiguous + 1))
	}
	if !r.readable.Load() {
		r.wake.wake() // the gate may be waiting for one of them
	}
}

// applyNext applies the waiting updates that can be applied now.
func (r *replica) applyNext() {
	for {
		ready := r.reorder.Next(r.board.Progress().Contiguous)
		if len(ready) == 0 {
			return
		}
		r.applyLocked(ready)
	}
}

// applyLocked applies updates. One that is refuted by the board's sum is not applied
// and closes the board until Redis was asked. What follows it waits for the board's own
// update of that seq, which may be the next one.
func (r *replica) applyLocked(us []wire.Update) {
	for len(us) > 0 {
		done := r.board.Apply(us)
		r.counts.add(done)
		if r.oldest == 0 && done.Applied > 0 && done.Duplicate+done.Stale == 0 && r.readable.Load() {
			r.oldest = us[0].At
		}
		if !done.Refuted {
			return
		}
		us = us[done.Applied+done.Duplicate+done.Stale:]
		r.counts.foreign.Add(1)
		if r.visible() { // otherwise the gate is asking already
			r.reportLocked(faultRefuted(us[0].Seq))
		}
		us = r.keepBeyond(us[1:], r.board.Progress().Contiguous+1)
	}
}

// keepBeyond has updates beyond a seq wait and returns the others.
func (r *replica) keepBeyond(us []wire.Update, seq uint64) []wire.Update {
	n := slices.IndexFunc(us, func(u wire.Update) bool { return u.Seq > seq })
	if n < 0 {
		return us
	}
	if !r.reorder.Keep(us[n:]) {
		r.reportLocked(faultOverflow(seq))
	}
	return us[:n]
}

// ofRun returns the updates that are of the board's run. A later run begins the board
// anew, unless the run was read from Redis: then it must be read again. A board that was
// opened empty has the run of its first update.
func (r *replica) ofRun(batch []wire.Update) []wire.Update {
	other := func(u wire.Update) bool { return u.Run != r.run }
	if !slices.ContainsFunc(batch, other) {
		return batch
	}
	kept := make([]wire.Update, 0, len(batch))
	for i := range batch {
		switch u := &batch[i]; {
		case u.Run == r.run:
			kept = append(kept, *u)
		case u.Run > r.run && (r.ofRedis || r.visible() && r.run != 0):
			r.counts.foreign.Add(1)
			r.reportLocked(faultRun(u.Run, r.run))
		case u.Run > r.run:
			kept = append(kept[:0], *u)
			r.setRunLocked(u.Run)
		default:
			r.counts.foreign.Add(1)
		}
	}
	return kept
}

// setRunLocked begins the board anew, for the updates of a run.
func (r *replica) setRunLocked(run uint64) {
	if r.run != 0 {
		r.emptyLocked()
	}
	r.run = run
	r.board.SetRun(run)
}

// visible returns whether readers find the board, open or stale.
func (r *replica) visible() bool { return r.readable.Load() || r.stale.Load() }

// publish makes applied updates visible to readers, with the copy's age. It returns the time
// of the oldest command among them in Unix milliseconds, 0 if it is not known. It does nothing
// to a closed board: that may be half full.
func (r *replica) publish() (oldest int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	oldest, r.oldest = r.oldest, 0
	if !r.visible() {
		return 0
	}
	due := r.awaited.Load()
	reached := due != nil && r.board.Progress().Applied() >= due.Seq
	r.board.Publish()
	if reached {
		r.board.MarkCurrent(due.requested)
		r.awaited.CompareAndSwap(due, nil)
	}
	return oldest
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
	r.oldest = 0
	r.board.MarkCurrent(t)
	return true
}

// startOrdering makes early updates wait from now on.
func (r *replica) startOrdering() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reorder.enabled = true
}

// stopOrdering applies the waiting updates, and from now on all as they come, unless
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
	r.endHoldLocked()
	if early := r.reorder.Flush(); len(early) > 0 {
		r.applyLocked(early)
	}
}

// progress is the board's, with the updates in the reorder buffer counted as come.
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

// dropHeld drops the held updates, because all boards hold too much. The board has to be
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
