package replay

import (
	"slices"
	"strings"
	"time"

	"rankcache"
)

// recentMembers is how many of the members last written to are remembered, to be
// compared with Redis: a removed member is not among Redis's random ones.
const recentMembers = 16

// flush applies the updates that the pump has gathered; it alone calls it.
func (f *follower) flush(boards Boards) {
	f.note(boards)
	f.apply()
	clear(f.batch) // the records' memory
	f.batch = f.batch[:0]
}

func (f *follower) count(done rankcache.ApplyResult) {
	f.tally.applied.Add(uint64(done.Applied))
	f.tally.duplicate.Add(uint64(done.Duplicate))
	f.tally.stale.Add(uint64(done.Stale))
	f.tally.counted.Add(uint64(done.Applied + done.Stale))
}

// note takes down what is about to be applied. A seq that is used again closes
// the board before anything of the new count can be read.
func (f *follower) note(boards Boards) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.remember(f.batch[len(f.batch)-1].Member)
	for i := range f.batch {
		if u := &f.batch[i]; f.history.clashes(u) {
			f.accuse(reused(u.Seq), boards)
			f.history.clear() // every order from here on would clash
		}
	}
}

func (f *follower) remember(member string) {
	if len(f.recent) == recentMembers {
		f.recent = slices.Delete(f.recent, 0, 1)
	}
	f.recent = append(f.recent, strings.Clone(member))
}

// shown says that readers find the board, and want what is applied.
func (f *follower) shown() bool { return f.readable.Load() || f.stale.Load() }

// publish shows readers what was applied, and how old it is now.
func (f *follower) publish() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.shown() {
		return
	}
	due := f.overdue.Load()
	caughtUp := due != nil && f.board.Progress().Applied() >= due.seq
	f.board.Publish()
	if caughtUp {
		f.board.MarkCurrent(due.asked)
		f.overdue.CompareAndSwap(due, nil)
	}
}

// show is publish for a board that is known to have been current at t. Like it, it
// does nothing to a board that is closed: it may be half full.
func (f *follower) show(t time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.readable.Load() {
		return false
	}
	f.board.Publish() // usually nothing to do; then readers have all that is counted
	f.board.MarkCurrent(t)
	return true
}

func (f *follower) recentMembers() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.recent)
}
