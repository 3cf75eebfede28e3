package replay

import (
	"errors"
	"fmt"
	"time"

	"rankcache"
)

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
		if r.file.entries.Load() != nil {
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
	if r.file.entries.Load() != nil && !r.visible() && r.board.State().HasSum {
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
		r.file.resume.Store(&s)
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
