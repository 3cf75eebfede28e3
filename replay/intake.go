package replay

import (
	"math"
	"slices"
	"strings"
	"sync/atomic"

	"rankcache"
	"rankcache/wire"
)

// intake gives a board its run's updates in order, under its replica's lock. What shows a fault is returned.
type intake struct {
	board  Board
	file   *fileState
	counts updateCounts

	// run is that of the updates that are applied; those of another are not. 0 before the first, and for boards whose
	// producer keeps none. ofRedis is set once it was read from Redis.
	run     uint64
	ofRedis bool
	reorder reorderBuffer
	recent  recentMembers
	oldest  int64  // the time of the first command since the last publication, in Unix milliseconds; 0: none
	fault   *fault // found by the call in hand
}

// updateCounts counts a board's updates by outcome. They are counted with the replica's lock held and read without.
type updateCounts struct {
	applied, duplicate, stale atomic.Uint64
	// foreign are updates of another history than the board's: of another run, or refuted by the board's sum.
	foreign  atomic.Uint64
	distinct atomic.Uint64 // the number of different updates since the board was last empty
}

func (c *updateCounts) add(done rankcache.ApplyResult) {
	c.applied.Add(uint64(done.Applied))
	c.duplicate.Add(uint64(done.Duplicate))
	c.stale.Add(uint64(done.Stale))
	c.distinct.Add(uint64(done.Applied + done.Stale))
}

// apply applies a batch, not empty. An early update waits if the board is read, or being compared with Redis.
func (in *intake) apply(batch []wire.Update, visible bool) *fault {
	in.recent.add(batch[len(batch)-1].Member)
	if batch = in.ofRun(batch, visible); len(batch) == 0 {
		return in.found()
	}
	if !in.waits() {
		in.give(batch)
		return in.found()
	}
	ready, overflow := in.reorder.Add(batch, in.board.Progress().Contiguous)
	in.give(ready)
	in.giveNext()
	if overflow {
		in.fail(faultOverflow(in.board.Progress().Contiguous + 1))
	}
	return in.found()
}

// waits returns whether there are updates that have to wait.
func (in *intake) waits() bool { return in.reorder.enabled || in.reorder.limited }

// ofRun returns the updates of the board's run, or that may follow on it. Another later run begins the board anew,
// unless it was read from Redis: that is read again. A board opened empty has its first update's run.
func (in *intake) ofRun(batch []wire.Update, visible bool) []wire.Update {
	if leading(batch, func(u *wire.Update) bool { return u.Run == in.run }) == len(batch) {
		return batch
	}
	kept := make([]wire.Update, 0, len(batch))
	for i := range batch {
		switch u := &batch[i]; {
		case u.Run == in.run, u.Run > in.run && visible && in.follows(u):
			kept = append(kept, *u)
		case u.Run > in.run && (in.ofRedis || visible && in.run != 0):
			in.counts.foreign.Add(1)
			in.fail(faultRun(u.Run, in.run))
		case u.Run > in.run:
			kept = append(kept[:0], *u)
			in.setRun(u.Run)
		default:
			in.counts.foreign.Add(1)
		}
	}
	return kept
}

// follows reports whether an update of a later run may be of the history that the board has: a durable
// board goes on from the same state in a new run. Its sum decides when it is applied. A run that had the board's sum
// at an earlier seq is no proof: it went on from there, with other changes than the board has had since.
func (in *intake) follows(u *wire.Update) bool {
	own := in.board.State()
	return in.run != 0 && own.HasSum && u.HasSum && (u.Seq > own.Seq || u.Seq == own.Seq && u.Sum == own.Sum)
}

// turn has the board be of a later run, without a change.
func (in *intake) turn(run uint64) {
	in.run = run
	in.board.SetRun(run)
}

// give applies updates, each run's apart. A refuted one is not applied; what follows waits for the right one.
func (in *intake) give(us []wire.Update) {
	for len(us) > 0 {
		before, run := in.run, us[0].Run
		part := us[:leading(us, func(u *wire.Update) bool { return u.Run == run })]
		if run < before { // it waited, and a later run has taken its place
			in.counts.foreign.Add(uint64(len(part)))
			us = us[len(part):]
			continue
		}
		if run > before && !in.follows(&part[0]) { // what came before it has made it differ
			in.counts.foreign.Add(uint64(len(part)))
			in.fail(faultRun(run, before))
			us = us[len(part):]
			continue
		}
		if run > before {
			in.turn(run)
		}
		done := in.board.Apply(part)
		in.counts.add(done)
		if in.oldest == 0 && done.Applied > 0 && done.Duplicate+done.Stale == 0 {
			in.oldest = part[0].At
		}
		if !done.Refuted {
			us = us[len(part):]
			continue
		}
		given := done.Applied + done.Duplicate + done.Stale
		if us = us[given:]; given == 0 && run > before {
			in.turn(before)
		}
		in.counts.foreign.Add(1)
		in.fail(faultRefuted(us[0].Seq))
		us = in.keepBeyond(us[1:], in.board.Progress().Contiguous+1)
	}
}

// leading returns how many updates there are before the first that is not so.
func leading(us []wire.Update, so func(*wire.Update) bool) int {
	for i := range us {
		if !so(&us[i]) {
			return i
		}
	}
	return len(us)
}

// giveNext applies the waiting updates that can be applied now.
func (in *intake) giveNext() {
	for {
		ready := in.reorder.Next(in.board.Progress().Contiguous)
		if len(ready) == 0 {
			return
		}
		in.give(ready)
	}
}

// keepBeyond has updates beyond a seq wait and returns the others.
func (in *intake) keepBeyond(us []wire.Update, seq uint64) []wire.Update {
	n := leading(us, func(u *wire.Update) bool { return u.Seq <= seq })
	if !in.reorder.Keep(us[n:]) {
		in.fail(faultOverflow(seq))
	}
	return us[:n]
}

// fail notes a fault. The first one counts, unless it is suspected only.
func (in *intake) fail(why fault) {
	if in.fault == nil || in.fault.suspected && !why.suspected {
		in.fault = &why
	}
}

func (in *intake) found() (why *fault) {
	why, in.fault = in.fault, nil
	return why
}

// hold has updates beyond a seq wait, and applies those up to it that waited.
func (in *intake) hold(seq uint64) *fault {
	in.give(in.reorder.Raise(seq))
	in.giveNext()
	return in.found()
}

func (in *intake) endHold() *fault {
	in.reorder.Hold(math.MaxUint64)
	in.giveNext()
	return in.found()
}

// flush applies all waiting updates, and from now on all as they come.
func (in *intake) flush() *fault {
	in.reorder.enabled = false
	in.reorder.Hold(math.MaxUint64)
	in.give(in.reorder.Flush())
	return in.found()
}

// setRun begins the board anew, for the updates of a run.
func (in *intake) setRun(run uint64) {
	if in.run != 0 {
		in.empty()
	}
	in.run = run
	in.board.SetRun(run)
}

func (in *intake) empty() {
	in.board.Reset()
	in.reorder.Clear()
	in.reorder.enabled = false
	in.reorder.Hold(math.MaxUint64)
	in.counts.distinct.Store(0)
	in.file.entries.Store(nil)
}

// progress is the board's, with the waiting updates counted as come.
func (in *intake) progress() rankcache.Progress {
	p := in.board.Progress()
	p.Highest = max(p.Highest, in.reorder.highest)
	return p
}

const maxRecent = 16 // how many members last written to are compared with Redis: its random ones lack removed ones

type recentMembers []string // the members last written to, oldest first

func (m *recentMembers) add(member string) {
	if len(*m) == maxRecent {
		*m = slices.Delete(*m, 0, 1)
	}
	*m = append(*m, strings.Clone(member))
}

// spread returns some members of a file for the first comparison: Redis's random ones lack the file's alone.
func spread(entries []rankcache.Entry) (some recentMembers) {
	for i := range min(maxRecent, len(entries)) {
		member, _ := rankcache.SplitData(entries[i*len(entries)/maxRecent].Member)
		some = append(some, strings.Clone(member))
	}
	return some
}
