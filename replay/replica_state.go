package replay

import (
	"errors"
	"fmt"
	"time"

	"rankcache"
)

// begin is called before the first record of t. If t replaces what was read of the
// topic before, the board starts from nothing: it is closed before it is emptied,
// so that it is not read half full.
//
// Its gate may just have found the old board good and be about to open it. Both
// hold the lock, so either open comes first and is undone here, or it sees that
// the epoch has passed.
func (r *replica) begin(t *topic) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dropped {
		return
	}
	if t.reset || r.file.isOfAnother(t) {
		r.closeLocked()
		r.resetLocked()
		r.fault = nil
		r.epoch++
	}
	r.sources.begin(t)
	r.wake.wake()
}

// opening is what a comparison has found out about a board that is opened.
type opening struct {
	equalAt     time.Time // when the board equalled Redis
	acceptHoles uint64    // the seq up to which holes are accepted; 0: there are none
}

// open makes the board readable. It returns false if anything has happened since
// the epoch.
func (r *replica) open(epoch int, o opening) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.soundLocked(epoch) {
		return false
	}
	if o.acceptHoles > 0 {
		r.board.AcceptHoles(o.acceptHoles)
	}
	r.board.MarkCurrent(o.equalAt) // so that the first answer knows its age
	r.readable.Store(true)         // first: what is applied from now on must be published
	r.stale.Store(false)
	r.reorder.enabled = true
	r.file.discard()
	r.boards.Open(r.id)
	return true
}

func (r *replica) soundLocked(epoch int) bool {
	return r.epoch == epoch && !r.dropped && r.fault == nil
}

// openStale makes a board readable that was filled from its file, unless it is
// already or anything has happened since the epoch.
func (r *replica) openStale(epoch int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stale.Load() || !r.soundLocked(epoch) {
		return false
	}
	r.stale.Store(true) // first: what is applied from now on must be published
	r.reorder.enabled = true
	r.boards.Open(r.id)
	return true
}

// closeStale closes a stale board. It returns false if the board is not stale.
func (r *replica) closeStale() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stale.Load() {
		return false
	}
	r.closeLocked()
	return true
}

func (r *replica) closeLocked() {
	r.readable.Store(false)
	r.stale.Store(false)
	r.awaited.Store(nil)
	r.boards.Close(r.id)
	r.flushLocked()
}

// resetLocked empties the board and forgets all its updates.
func (r *replica) resetLocked() {
	r.board.Reset()
	r.reorder.Clear()
	r.counts.distinct.Store(0)
	r.file.discard()
	r.ring.Clear()
	r.sources.reset()
}

// drop ends the use of the board: it is not followed any more.
func (r *replica) drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropped = true
	r.readable.Store(false)
	r.stale.Store(false)
}

func (r *replica) currentEpoch() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.epoch
}

// report closes the board at once, because it is known to be wrong, and has its
// gate fill it again. A fault found in an epoch that has passed is ignored.
func (r *replica) report(epoch int, why fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.epoch == epoch && !r.dropped {
		r.reportLocked(why)
	}
}

func (r *replica) reportLocked(why fault) {
	if r.visible() {
		r.closeLocked()
	}
	if r.fault == nil || why.void {
		r.fault = &why
	}
	if !why.counted {
		r.audit.difference(why.kind, why.reason, time.Now())
	}
	r.wake.wake()
}

// startRefill starts a new epoch of a board that has a fault, and returns that; nil
// if it has none. Without seqs a load from Redis can't be joined to the log, so the
// log is read again from its beginning.
//
// The board is filled again in place. While it is known to be wrong it is not read,
// so that a second copy would only cost memory; and this one is not seen half full:
// it is published only with the lock held and the board readable, or when the gate
// opens it.
func (r *replica) startRefill(total TotalSource) *fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	why := r.fault
	if why == nil {
		return nil
	}
	r.closeLocked()
	if why.void || total != TotalSeq {
		r.resetLocked()
	}
	if log := r.sources.topic(); total != TotalSeq && log != nil {
		log.rewound.Store(true)
	}
	r.sources.retarget()
	r.fault = nil
	r.audit.refill()
	r.epoch++
	return why
}

// learn takes a total of Redis that was requested in an epoch. It returns false if
// the epoch has passed.
func (r *replica) learn(t reading, epoch int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.epoch != epoch {
		return false
	}
	first := r.sources.learn(t)
	r.checkFileLocked(t)
	if first {
		r.wake.wake()
	}
	return true
}

var errEpochPassed = errors.New("the board was reset meanwhile")

// load replaces the board by entries that were read from Redis after seq, in an
// epoch.
func (r *replica) load(epoch int, seq uint64, es []rankcache.Entry) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.epoch != epoch || r.dropped {
		return errEpochPassed
	}
	return r.board.Load(seq, es)
}

// restore fills the board from a file. All updates up to its seq count as seen;
// those that follow come from the log.
func (r *replica) restore(s Saved, entries []rankcache.Entry, now time.Time) error {
	if s.Total != string(TotalSeq) || s.Seq == 0 {
		return fmt.Errorf("its total is %d of kind %q, want seqs", s.Seq, s.Total)
	}
	if err := r.board.Load(s.Seq, entries); err != nil {
		return err
	}
	if _, ok := s.age(now); ok {
		r.board.MarkCurrent(s.CurrentAt)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.file.set(&s)
	r.recent = spread(entries)
	latest, _ := r.sources.totals()
	r.checkFileLocked(latest)
	return nil
}

// checkFileLocked reports a fault if a total of Redis shows that the file is void.
// It is not counted as a difference: the board was not open.
func (r *replica) checkFileLocked(t reading) {
	if why := r.file.disprovedBy(t); why != nil {
		r.fault = why
		r.wake.wake()
	}
}

// resumePoint returns the place in the log that an open board has reached.
func (r *replica) resumePoint() (s Saved, epoch int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.sources.topic()
	if !r.readable.Load() || r.dropped || t == nil || t.gone.Load() || t.rewound.Load() {
		return s, 0, false
	}
	s = Saved{Board: r.id, Total: string(TotalSeq), Topic: t.name, TopicID: t.id}
	for _, p := range t.partitions() {
		s.Offsets = append(s.Offsets, p.next.Load())
	}
	return s, r.epoch, true
}

// repair gives members the state that was observed in Redis in an epoch, and
// publishes that. The board keeps members that were updated since.
func (r *replica) repair(epoch int, wrong []difference) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.epoch != epoch || !r.readable.Load() {
		return
	}
	for i := range wrong {
		if d := &wrong[i]; r.board.Repair(d.member, d.score, d.there, d.seq) {
			r.audit.repair()
		}
	}
	r.board.Publish()
}
