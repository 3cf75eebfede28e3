package replay

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"rankcache"
	"rankcache/rooms"
	"rankcache/wire"
)

// common is what all parts of a Runner share.
type common struct {
	cfg     Config
	boards  Boards
	origin  Origin
	log     *slog.Logger
	metrics *metrics
	feeds   feeds
	backlog atomic.Int64 // how many records the logs held when their reading began
	held    atomic.Int64 // bytes of updates that wait on all boards

	topicsWake, totalsWake signal // wake the topic watcher and the totals poller
	written                *writtenHere
}

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
	seen  lastSeen      // the totals poller's alone
	lost  atomic.Bool   // set while the board is kept though Redis lacks it. The totals poller writes it.
	// begunAgain is how many members the board had before Redis lost it and it began again; 0: it has not. Likewise.
	begunAgain atomic.Int64
}

// newFeed returns a feed; held are the bytes that wait on all boards.
func newFeed(id rankcache.BoardID, log rooms.Log, boards Boards, held *atomic.Int64, m *metrics, now time.Time) *feed {
	f := &feed{id: id, key: wire.StateKey(string(id)), log: log, audit: newAuditStats(id, m)}
	b := boards.Create(id)
	f.replica = &replica{id: id, board: b, boards: boards, sources: &f.sources, file: &f.file, audit: f.audit, wake: newSignal(),
		in: intake{board: b, file: &f.file, reorder: reorderBuffer{all: held}}}
	f.status.set(rankcache.StateWaiting, "just named", now)
	return f
}

// lacks returns whether the board has missed something of a reading.
func (f *feed) lacks(t *topic) bool { return f.whole != t }

// rests marks a settled board as current; false for others, and where a final is to come: these are looked at.
func (f *feed) rests(now time.Time) bool {
	if !f.replica.settled() || !f.replica.publishCurrent(now) {
		return false
	}
	return !f.log.Final || f.replica.board.Life() == rankcache.LifeFinal
}

// measure updates the board's rates.
func (f *feed) measure(now time.Time) {
	f.status.observe(now, f.replica.in.counts.applied.Load(), f.sources.topic())
}

// describe returns the board as operators see it. Where Redis's seq is unknown, so
// is the number of updates that the board lacks.
func (f *feed) describe() rankcache.BoardStatus {
	p, now := f.replica.board.Progress(), time.Now()
	f.measure(now)
	latest, target := f.sources.totals()
	known := f.sources.redisKnown(now)
	s := rankcache.BoardStatus{Board: f.id, Have: max(p.Applied(), f.replica.in.counts.distinct.Load()), Want: target,
		Members: p.Members, Audit: f.audit.status()}
	if at := f.replica.board.CurrentAt(); !at.IsZero() {
		s.Age = max(now.Sub(at), 0)
	}
	s.Proof = rankcache.ProofStatus{State: f.replica.board.State(), Origin: latest.State, OriginAt: latest.requested}
	s.Proof.Proved, s.Proof.ProvedAt = f.sources.proof()
	readRate := f.status.fill(&s)
	if s.State == rankcache.StateOpen && f.lost.Load() && f.replica.readable.Load() {
		s.State, s.Reason = rankcache.StateLost, "Redis has lost the board: it is answered as it was; rankcache rebuild writes it anew from the ledger, or with --from log from its updates"
		s.LostMembers = s.Members
	} else if s.State == rankcache.StateOpen && f.replica.settled() {
		s.Have, s.Want, known = p.Applied(), p.Applied(), true
		s.Reason = "closed: it does not change any more, so it is not compared"
	} else if s.State == rankcache.StateOpen {
		s.Have, s.Want = p.Applied(), max(latest.Seq, target)
		s.Reason = openReason(&s, latest, known)
	} else if log := f.sources.topic(); log != nil && readRate > 0 {
		s.ETA = time.Duration(float64(log.left()) / readRate * float64(time.Second))
	}
	if n := f.begunAgain.Load(); n > 0 && s.LostMembers == 0 {
		s.LostMembers = int(n)
		s.Reason = fmt.Sprintf("Redis has lost an earlier life with %d members, and the board has begun again: rankcache rebuild puts back what the ledger, or with --from log its topic, has of it. %s", n, s.Reason)
	}
	if !known {
		s.Want = 0
	}
	return s
}

// openReason returns the reason of an open board now: the one that its gate gave when it opened it may be out of date.
func openReason(s *rankcache.BoardStatus, latest reading, known bool) string {
	switch {
	case !known && latest.requested.IsZero():
		return "its total in Redis is not read yet"
	case !known:
		return "not compared with Redis since " + latest.requested.UTC().Format(time.RFC3339)
	case s.Have < s.Want:
		return "behind Redis"
	}
	return s.Reason
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
