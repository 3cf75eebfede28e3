package replay

import (
	"errors"
	"fmt"
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
	r.sources.begin(t)
	r.wake.wake()
}

// join is begin for a board that takes part in a reading from where it is.
func (r *replica) join(t *topic) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dropped {
		return
	}
	r.sources.join(t)
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
	r.file.discard()
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

func (r *replica) soundLocked(epoch int) bool {
	return r.epoch == epoch && !r.dropped && r.fault == nil
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
	s := r.file.entries()
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

// startRefill starts a new epoch of a board that has a fault, and returns that; nil if it has none. A board that is
// only suspected keeps its members. Without seqs a load from Redis can't be joined to the log, so the log is read again
// from its beginning.
//
// The board is filled again in place. While it is known to be wrong it is not read, so that a second copy would only
// cost memory; and this one is not seen half full: it is published only with the lock held and the board readable, or
// when the gate opens it.
func (r *replica) startRefill(total TotalSource) *fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	why := r.fault
	if why == nil {
		return nil
	}
	r.closeLocked()
	if !why.suspected {
		if r.file.entries() != nil {
			r.audit.voidFile(why.kind)
		}
		r.resetLocked()
		r.audit.refill()
		if r.sources.isReplica() {
			r.in.reorder.Hold(0) // the log may be ahead of what is loaded from Redis
		}
	}
	if log := r.sources.topic(); total != TotalSeq && log != nil {
		log.rewound.Store(true)
	}
	r.fault = nil
	r.epoch++
	return why
}

// learn takes a total of Redis that was requested in an epoch. It returns false if the epoch has passed.
func (r *replica) learn(t reading, epoch int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.epoch != epoch {
		return false
	}
	if r.lateLocked(t.State) != nil {
		r.sources.learn(t)
		r.wake.wake() // the gate waits for it
		return true
	}
	if !r.readable.Load() {
		r.learnRunLocked(t)
		r.relaxFileLocked()
	}
	if t.Run != 0 && t.Run == r.in.run {
		r.in.counts.foreign.Add(uint64(r.in.reorder.DropLost(t.Run, t.Seq, r.sources.surelyOf(&t))))
	}
	first := r.sources.learn(t)
	r.checkFileLocked(t)
	if first {
		r.wake.wake()
	}
	return true
}

// follow has a board that is read be of the run that Redis has, if that goes on from the board's state.
func (r *replica) follow(t reading, epoch int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	own := r.board.State()
	if r.epoch == epoch && r.visible() && t.Run > own.Run && own.Run != 0 && t.Seq == own.Seq && own.HasSum && t.SameSum(own) {
		r.in.turn(t.Run)
	}
}

// learnRunLocked has the board take updates of Redis's run. Some may be missing if it took a later, lost one's.
func (r *replica) learnRunLocked(t reading) {
	switch {
	case t.Run == 0:
		return
	case t.Run < r.in.run:
		r.reportLocked(faultRunLost(t.Run, r.in.run))
	case t.Run > r.in.run:
		if r.visible() {
			r.closeLocked()
		}
		r.in.setRun(t.Run)
	}
	r.in.ofRedis = true
}

// relaxFileLocked ends the strictness of an unread board from a file: Redis has answered, and compares all.
func (r *replica) relaxFileLocked() {
	if r.file.entries() != nil && !r.visible() && r.board.State().HasSum {
		r.board.Relax()
		r.foundLocked(r.in.flush())
	}
}

var errEpochPassed = errors.New("the board was reset meanwhile")

// load replaces the board by entries that were read from Redis at or after a state, in an epoch.
func (r *replica) load(epoch int, at rankcache.State, pieces [][]rankcache.Entry) error {
	load, err := r.startLoad(epoch, at, pieces)
	if err != nil {
		return err
	}
	err = load()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.epoch != epoch || r.dropped || r.in.run != at.Run {
		return errEpochPassed
	}
	if late := r.lateLocked(at); late != nil {
		r.reportLocked(fault{kind: kindAhead, counted: true, reason: late.Error()}) // it is loaded into an empty board
	} else if have := r.board.Progress().Highest; err != nil && at.Seq < have {
		r.reportLocked(faultAhead(at.Seq, have)) // an older load can be taken by an empty board only
	}
	return err
}

// startLoad returns what loads the board, without the lock, as that may take long. Nobody reads it meanwhile.
func (r *replica) startLoad(epoch int, at rankcache.State, pieces [][]rankcache.Entry) (load func() error, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.epoch != epoch || r.dropped {
		return nil, errEpochPassed
	}
	r.closeStaleLocked()
	if at.Run > r.in.run {
		r.in.setRun(at.Run)
	}
	if at.Run != r.in.run {
		return nil, fmt.Errorf("redis has run %d of the board, the log %d", at.Run, r.in.run)
	}
	return r.board.StartLoad(at.Seq, pieces...), nil
}

var errFileSum = errors.New("its members don't add up")

// restore fills the board from a file: up to its seq all is seen. Without a change it is a place in the log.
func (r *replica) restore(s Saved, entries []rankcache.Entry, now time.Time) error {
	if s.Total == string(TotalSeq) && s.Seq == 0 && len(entries) == 0 {
		r.file.place(&s)
		return nil
	}
	if s.Total != string(TotalSeq) || s.Seq == 0 {
		return fmt.Errorf("its total is %d of kind %q, want seqs", s.Seq, s.Total)
	}
	if err := r.board.StartLoad(s.Seq, entries)(); err != nil {
		return err
	}
	if sum := r.board.Sum(); s.HasSum && sum != s.Sum {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.board.Reset()
		r.board.SetRun(r.in.run) // it may have been read from Redis before
		return fmt.Errorf("%w: they are %012x, want %012x: the file was changed", errFileSum, sum, s.Sum)
	}
	if _, ok := s.age(now); ok {
		r.board.MarkCurrent(s.CurrentAt)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.in.run = s.Run
	r.board.SetRun(s.Run)
	r.file.set(&s)
	r.in.recent = spread(entries)
	latest, _ := r.sources.totals()
	if s.HasSum && latest.requested.IsZero() { // it may have to be read as it is
		r.in.reorder.enabled = r.board.Prove(s.State)
	}
	r.checkFileLocked(latest)
	return nil
}

// checkFileLocked reports a fault if Redis's total shows the file void, uncounted: the board was not open.
func (r *replica) checkFileLocked(t reading) {
	if r.lateLocked(t.State) != nil {
		return
	}
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
	for _, p := range t.parts {
		s.Offsets = append(s.Offsets, p.next.Load())
	}
	return s, r.epoch, true
}
