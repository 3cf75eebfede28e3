package replay

import (
	"slices"
	"strings"
)

// recentMembers is how many of the members last written to are remembered, to be
// compared with Redis: a removed member is not among Redis's random ones.
const recentMembers = 16

// flush applies the updates that the pump has gathered; it alone calls it.
func (f *follower) flush() {
	done := f.board.Apply(f.batch)
	f.tally.applied.Add(uint64(done.Applied))
	f.tally.duplicate.Add(uint64(done.Duplicate))
	f.tally.stale.Add(uint64(done.Stale))
	f.tally.counted.Add(uint64(done.Applied + done.Stale))
	f.remember(f.batch[len(f.batch)-1].Member)
	clear(f.batch) // the records' memory
	f.batch = f.batch[:0]
}

func (f *follower) remember(member string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.recent) == recentMembers {
		f.recent = slices.Delete(f.recent, 0, 1)
	}
	f.recent = append(f.recent, strings.Clone(member))
}

// shown says that readers find the board, and want what is applied.
func (f *follower) shown() bool { return f.readable.Load() || f.stale.Load() }

// publish shows readers what was applied, and how old it is now.
func (f *follower) publish() {
	if !f.shown() {
		return
	}
	due := f.overdue.Load()
	caughtUp := due != nil && f.board.Progress().Total() >= due.seq
	f.board.Publish()
	if caughtUp {
		f.board.MarkCurrent(due.asked)
		f.overdue.CompareAndSwap(due, nil)
	}
}

func (f *follower) recentMembers() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.recent)
}
