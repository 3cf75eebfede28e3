package replay

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"rankcache"
	"rankcache/rooms"
)

// membership is which boards are wanted and followed, and whether those awaited are done. mu is above a replica's.
type membership struct {
	feeds   *feeds
	changed signal // wakes Runner.keepMembership

	mu     sync.Mutex
	wanted []rankcache.BoardID
	named  bool // want was called
	boards map[rankcache.BoardID]*followed
	// atStart are the boards wanted when the first were followed: readiness waits for them, and once it came it stays.
	atStart []rankcache.BoardID
	started bool
	ready   bool
}

// followed is a feed whose gate is running.
type followed struct {
	feed *feed
	stop context.CancelFunc
	done chan struct{} // closed when the gate has ended
}

func newMembership(f *feeds) *membership {
	return &membership{feeds: f, changed: newSignal(), boards: make(map[rankcache.BoardID]*followed)}
}

func (m *membership) want(boards []rankcache.BoardID) {
	m.mu.Lock()
	m.wanted, m.named = slices.Clone(boards), true
	m.mu.Unlock()
	m.changed.wake()
}

// update starts wanted boards, and removes and returns unwanted ones and those whose updates are elsewhere now.
func (m *membership) update(log func(rankcache.BoardID) rooms.Log, start func(rankcache.BoardID) *followed) (gone []*followed) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.named {
		return nil
	}
	next := make(map[rankcache.BoardID]*feed, len(m.wanted))
	for _, id := range m.wanted {
		b := m.boards[id]
		if b == nil {
			b = start(id)
			m.boards[id] = b
		}
		if b.feed.sources.alone || b.feed.log.Topic == log(id).Topic {
			next[id] = b.feed
		} else {
			m.changed.wake()
		}
	}
	for id, b := range m.boards {
		if next[id] == nil {
			gone = append(gone, b)
			delete(m.boards, id)
		}
	}
	m.feeds.replace(next)
	if !m.started {
		m.atStart, m.started = m.wanted, true
	}
	return gone
}

func (m *membership) readiness() (ready bool, reason string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ready {
		return true, ""
	}
	if !m.started {
		return false, "the boards to follow are not known yet"
	}
	missing := m.missingLocked()
	if m.ready = len(missing) == 0; m.ready {
		return true, ""
	}
	return false, fmt.Sprintf("%d of %d boards are not open: %s", len(missing), len(m.atStart), firstFew(missing))
}

// missingLocked describes each board that readiness waits for. One that is not followed any more is not waited for.
func (m *membership) missingLocked() (missing []string) {
	for _, id := range m.atStart {
		if b := m.boards[id]; b != nil && !b.feed.status.wasReady() {
			s := b.feed.describe()
			missing = append(missing, fmt.Sprintf("%s is %s %d/%d (%s)", s.Board, s.State, s.Have, s.Want, s.Reason))
		}
	}
	return missing
}

func firstFew(all []string) string {
	const few = 3
	if len(all) > few {
		return strings.Join(all[:few], "; ") + "; …"
	}
	return strings.Join(all, "; ")
}

// A board whose period has ended lingers: a closed one never changes, so an equal copy needs no look at Redis and takes
// no update; one named for the first time comes from Redis alone, as its log has hardly anything.

// closes reports whether nothing new arrives for the board any more, so that it is not worth reading its log.
func closes(log rooms.Log, total TotalSource, now time.Time) bool {
	return total == TotalSeq && !log.Last.IsZero() && now.After(log.Last)
}
