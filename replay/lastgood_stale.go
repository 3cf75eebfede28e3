package replay

import (
	"fmt"
	"time"

	"rankcache"
)

// A board that was filled from a file may be read before the gate has opened it,
// as a stale copy with the age that the file says, but only while Redis can't
// answer: a copy that nobody has compared is better than a failed read, and worse
// than Redis. It never counts as open: nothing marks it as current, nothing saves
// it, and once Redis answers it is compared at once and opened, or closed.

// fallBack makes the stale copy readable or not. checking says that the board is
// about to be compared, which is soon over: it is left as it is until then.
func (g *gate) fallBack(checking bool, now time.Time) {
	wanted := g.f.staleWanted(now, g.cfg.StaleMost)
	switch {
	case wanted && g.f.openStale(g.epoch, g.boards):
		g.metrics.stales.Inc()
		g.log.Warn("board is answered from its file: Redis does not answer", "board", g.f.id)
	case !wanted && !checking && g.f.closeStale(g.boards):
		g.log.Info("board is not answered from its file any more", "board", g.f.id)
	}
}

// staleWanted says whether the file is all there is to answer from.
func (f *follower) staleWanted(now time.Time, most time.Duration) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.saved == nil || !f.redisAway {
		return false
	}
	age, ok := f.saved.age(now)
	return ok && age <= most
}

// openStale makes the copy readable, unless it is already or something has
// happened since the epoch.
func (f *follower) openStale(epoch int, boards Boards) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stale.Load() || f.epoch != epoch || f.dropped || f.fault != nil {
		return false
	}
	f.stale.Store(true) // first: else what is applied in between stays unpublished
	f.holding = true
	boards.Open(f.id)
	return true
}

func (f *follower) closeStale(boards Boards) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.stale.Load() {
		return false
	}
	f.shut(boards)
	return true
}

// staleStep tells of a step of a board that is answered from its file.
func (f *follower) staleStep(s step, now time.Time) step {
	if saved := f.savedNow(); saved != nil {
		age, _ := saved.age(now)
		s.reason = fmt.Sprintf("answered from its file, %s old, because Redis does not answer: %s", age.Round(time.Second), s.reason)
	}
	s.state = rankcache.StateStale
	return s
}
