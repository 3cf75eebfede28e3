package replay

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"rankcache"
	"rankcache/rooms"
	"rankcache/wire"
)

// feed is one followed board: the parts that work on it, set when it is made. Each type has its owner and lock.
type feed struct {
	id        rankcache.BoardID
	key       uint64    // in a keeper's states
	log       rooms.Log // where its updates are
	replica   *replica
	sources   sources
	file      fileState
	status    status
	audit     *auditStats
	restoring atomic.Bool // set while the board's file is to be loaded or looked for. The gate's goroutine clears it.

	whole *topic        // the topic watcher's alone: the reading of which it has all since the beginning, or its file's end
	batch []wire.Update // the dispatcher's alone: gathered, to be applied
	dirty bool          // the publisher's alone: to be published
	lag   lagWatch      // the totals poller's alone
	late  lateWatch     // the totals poller's alone
	rest  rest          // the totals poller's alone
	known known         // the totals poller's alone
	lost  atomic.Bool   // set while the board is kept though Redis lacks it. The totals poller writes it.
	// begunAgain is how many members the board had before Redis lost it and it began again; 0: it has not. Likewise.
	begunAgain atomic.Int64
}

// newFeed returns a feed; held are the bytes that wait on all boards.
func newFeed(id rankcache.BoardID, log rooms.Log, boards Boards, held *atomic.Int64, m *metrics, now time.Time) *feed {
	f := &feed{id: id, key: wire.StateKey(string(id)), log: log, audit: newAuditStats(id, m)}
	f.replica = newReplica(f, boards, held)
	f.status.set(rankcache.StateWaiting, "just named", now)
	return f
}

// feeds is the set of followed boards, read without a lock: the membership replaces its map.
type feeds struct {
	m atomic.Pointer[feedMaps]
}

// feedMaps are the followed boards by their ids, and those that read a log by its topic.
type feedMaps struct {
	byID    map[rankcache.BoardID]*feed
	byTopic map[string][]*feed
}

func (s *feeds) maps() feedMaps {
	if m := s.m.Load(); m != nil {
		return *m
	}
	return feedMaps{}
}

func (s *feeds) current() map[rankcache.BoardID]*feed { return s.maps().byID }

func (s *feeds) byTopic() map[string][]*feed { return s.maps().byTopic }

func (s *feeds) replace(all map[rankcache.BoardID]*feed) {
	m := feedMaps{all, make(map[string][]*feed)}
	for _, f := range all {
		if !f.sources.alone {
			m.byTopic[f.log.Topic] = append(m.byTopic[f.log.Topic], f)
		}
	}
	s.m.Store(&m)
}

// sorted returns the followed boards in the order of their ids.
func (s *feeds) sorted() []*feed {
	return slices.SortedFunc(maps.Values(s.current()), func(a, b *feed) int {
		return strings.Compare(string(a.id), string(b.id))
	})
}

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
