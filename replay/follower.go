package replay

import (
	"sync"
	"sync/atomic"
	"time"

	"rankcache"
	"rankcache/wire"
)

// follower is one followed board.
type follower struct {
	id      rankcache.BoardID
	topic   string // where its updates come from
	board   Board
	metrics *metrics

	// readable says that the pump shall publish it.
	readable atomic.Bool
	// restoring says that the board's file, if there is one, is still to be loaded,
	// and stale that the board is answered from it though nobody has compared it.
	restoring, stale atomic.Bool
	// overdue is a total of Redis that the board had not reached when it was
	// read. Whoever sees that it has marks the board as current at that time.
	overdue atomic.Pointer[reading]
	tally   tally
	// wake tells the gate to look again.
	wake chan struct{}

	watch watch         // belongs to the totals
	batch []wire.Update // the pump's own
	dirty bool          // the pump's own: has updates to be published

	mu sync.Mutex // may be held when the board's methods are called
	// reading is the topic as it is being read, nil before Kafka has shown it.
	reading *topic
	// absent says that Kafka has answered that there is no such topic.
	absent bool
	// epoch rises whenever what was found out about the board becomes void.
	epoch int
	// saved is the file that the board was filled from. It is nil if there is none,
	// if it has become void, and once the board was opened. place is the same file
	// as a place in the log, which it remains when its entries are void.
	saved, place *Saved
	// redisAway says that Redis did not answer the last time.
	redisAway bool
	// dropped says that the board is not followed any more.
	dropped bool
	// total is the newest that Redis said, and want the first of this epoch.
	total reading
	want  uint64
	fault *fault
	// holding says that updates which come early are held.
	holding bool
	held    held
	ready   []wire.Update // the pump's own, used again
	// history is of the updates applied since the board was last empty.
	history history
	ledger  ledger
	recent  []string // oldest first
	status  status
	// Why Kafka or Redis has not answered, if so.
	kafkaTrouble, redisTrouble string
}

// reading is an answer of Redis: it speaks of a moment after asked.
type reading struct {
	seq     uint64
	members int
	asked   time.Time // zero before the first
}

// tally counts what became of a board's updates.
type tally struct {
	applied, duplicate, stale atomic.Uint64
	// counted is the number of different updates since the board was last empty.
	counted atomic.Uint64
}

func newFollower(id rankcache.BoardID, topic string, b Board, m *metrics, now time.Time) *follower {
	f := &follower{id: id, topic: topic, board: b, metrics: m, wake: make(chan struct{}, 1)}
	f.status = status{state: rankcache.StateWaiting, reason: "just named", since: now}
	return f
}

// nudge wakes the gate. It may be called with or without the lock.
func (f *follower) nudge() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// begin says that the records of t follow. If they replace what was read of the
// topic before, the board begins anew: it is closed before it is emptied, so
// that nobody reads it half full.
//
// Its gate may just have found the old board good and be about to open it. Both
// hold the lock, so either open comes first and is undone here, or it sees that
// the epoch has passed.
func (f *follower) begin(t *topic, boards Boards) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dropped {
		return
	}
	f.reading, f.absent = t, false
	if t.anew || f.outdates(t) {
		f.shut(boards)
		f.empty()
		f.fault = nil
		f.epoch++
	}
	f.nudge()
}

// open makes the board readable if nothing has happened since the epoch.
func (f *follower) open(epoch int, boards Boards) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.epoch != epoch || f.dropped || f.fault != nil {
		return false
	}
	f.readable.Store(true) // first: else what is applied in between stays unpublished
	f.stale.Store(false)
	f.holding = true
	f.saved = nil
	boards.Open(f.id)
	return true
}

// shut makes the board unreadable. The lock is held.
func (f *follower) shut(boards Boards) {
	f.readable.Store(false)
	f.stale.Store(false)
	f.overdue.Store(nil)
	boards.Close(f.id)
	f.spill()
}

// empty forgets all updates. The lock is held.
func (f *follower) empty() {
	f.board.Reset()
	f.held = held{}
	f.tally.counted.Store(0)
	f.saved = nil
	f.history.clear()
	f.want, f.total = 0, reading{}
}

func (f *follower) drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dropped = true
	f.readable.Store(false)
	f.stale.Store(false)
}

func (f *follower) settled() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.status.settled
}

func (f *follower) setStatus(state rankcache.BoardState, reason string, now time.Time) (before rankcache.BoardState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.status.set(state, reason, now)
}

func (f *follower) epochNow() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.epoch
}
