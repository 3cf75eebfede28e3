package replay

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"rankcache"
)

// recentMembers is how many of the members last written to are remembered, to be
// compared with Redis: a removed member is not among Redis's random ones.
const recentMembers = 16

// follower is one followed board.
type follower struct {
	id    rankcache.BoardID
	topic string // where its updates come from
	board Board

	// readable says that the pump shall publish it.
	readable atomic.Bool
	// overdue is a total of Redis that the board had not reached when it was
	// read. Whoever sees that it has marks the board as current at that time.
	overdue atomic.Pointer[reading]
	tally   tally
	// wake tells the gate to look again.
	wake chan struct{}

	audit audit              // belongs to the totals
	batch []rankcache.Update // the pump's own
	dirty bool               // the pump's own: has updates to be published

	mu sync.Mutex // may be held when the board's methods are called
	// reading is the topic as it is being read, nil before Kafka has shown it.
	reading *topic
	// absent says that Kafka has answered that there is no such topic.
	absent bool
	// epoch rises whenever what was found out about the board becomes void.
	epoch int
	// dropped says that the board is not followed any more.
	dropped bool
	// total is the newest that Redis said, and want the first of this epoch.
	total  reading
	want   uint64
	fault  *fault
	recent []string // oldest first
	status status
	// Why Kafka or Redis has not answered, if so.
	kafkaTrouble, redisTrouble string
}

// reading is an answer of Redis: it speaks of a moment after asked.
type reading struct {
	seq     uint64
	members int
	asked   time.Time // zero before the first
}

// fault is a reason to fill an open board again.
type fault struct {
	reason string
	// void says that the board's own seqs can't be trusted either.
	void bool
}

// tally counts what became of a board's updates.
type tally struct {
	applied, duplicate, stale atomic.Uint64
	// counted is the number of different updates since the board was last empty.
	counted atomic.Uint64
}

func newFollower(id rankcache.BoardID, topic string, b Board, now time.Time) *follower {
	f := &follower{id: id, topic: topic, board: b, wake: make(chan struct{}, 1)}
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
	if t.anew {
		f.shut(boards)
		f.empty()
		f.epoch++
	}
	f.nudge()
}

// open makes the board readable if nothing has happened since the epoch.
func (f *follower) open(epoch int, boards Boards) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.epoch != epoch || f.dropped {
		return false
	}
	f.readable.Store(true) // first: else what is applied in between stays unpublished
	boards.Open(f.id)
	return true
}

// shut makes the board unreadable. The lock is held.
func (f *follower) shut(boards Boards) {
	f.readable.Store(false)
	f.overdue.Store(nil)
	boards.Close(f.id)
}

// empty forgets all updates. The lock is held.
func (f *follower) empty() {
	f.board.Reset()
	f.tally.counted.Store(0)
	f.want, f.total = 0, reading{}
}

// refill begins a new epoch of a board that has a fault.
func (f *follower) refill(why *fault, boards Boards) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shut(boards)
	if why.void {
		f.empty()
	}
	f.want = f.total.seq
	f.fault = nil
	f.epoch++
}

// flush applies the updates that the pump has gathered.
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

// publish shows readers what was applied, and how old it is now.
func (f *follower) publish() {
	if !f.readable.Load() {
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

// observe returns what Kafka and Redis have said of the board.
func (f *follower) observe() observation {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.reading
	o := observation{
		kafkaKnown: t != nil || f.absent, redisKnown: !f.total.asked.IsZero(),
		want: f.want, members: f.total.members,
		kafkaTrouble: f.kafkaTrouble, redisTrouble: f.redisTrouble,
	}
	if t != nil && !t.gone.Load() {
		o.topicKnown, o.ended, o.cut, o.compacted = true, t.ended(), t.cut(), t.compacted
	}
	return o
}

// learn takes a total that Redis said.
func (f *follower) learn(r reading) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.total = r
	if f.want == 0 && r.seq != 0 {
		f.want = r.seq
		f.nudge()
	}
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

// report asks the gate to fill the board again.
func (f *follower) report(why fault) {
	f.mu.Lock()
	f.fault = &why
	f.mu.Unlock()
	f.nudge()
}

func (f *follower) takeFault() *fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	why := f.fault
	f.fault = nil
	return why
}

func (f *follower) recentMembers() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.recent)
}

// topicAbsent notes that Kafka has no topic for the board.
func (f *follower) topicAbsent() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.absent, f.kafkaTrouble = true, ""
}

func (f *follower) kafkaFailed(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kafkaTrouble = err.Error()
}

func (f *follower) redisFailed(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.redisTrouble = err.Error()
}

func (f *follower) topicNow() *topic {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reading
}

// dry says that since asked the log has nothing more to give.
func (f *follower) dry(asked time.Time) bool {
	t := f.topicNow()
	return t == nil || t.gone.Load() || t.dry(asked)
}

// currentByLog marks a board without a total by the end of its log.
func (f *follower) currentByLog() {
	t := f.topicNow()
	if t == nil || t.gone.Load() {
		return
	}
	if end := t.end.Load(); end != nil && t.dry(end.asked.Add(-1)) {
		f.board.Publish()
		f.board.MarkCurrent(end.asked)
	}
}

func (f *follower) drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dropped = true
	f.readable.Store(false)
}

func (f *follower) settled() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.status.settled
}
