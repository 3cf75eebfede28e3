package localboard

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"rankcache"
)

// Board is one leaderboard in memory. Its writing methods may be called by any
// goroutine and wait for each other; its reading methods take no lock and wait
// for nobody. Until the first Publish there is nothing to read.
type Board struct {
	id   rankcache.BoardID
	view atomic.Pointer[view]
	// current is when the copy was last known to equal the origin.
	current atomic.Pointer[time.Time]
	// handover is that of every top, apart from the board, which a top is not to keep.
	handover *atomic.Value

	// mu serialises the writers and guards what follows. It is the last lock
	// taken: nothing is called with it held that takes another.
	mu      sync.Mutex
	members members
	order   *order // nil until the first publication since New or Reset
	seen    seen
	orders  orders
	changes []change
	live    int // members on the board, changes counted
	// moved says that members is no longer the storage that readers use.
	moved bool
	// unforgotten is how many removed members the last move had to keep, and
	// movedAt how many members there were.
	unforgotten, movedAt int
	// forgotten is the seq up to which a member that is not known may have been
	// removed: the highest of the removals forgotten, or of a snapshot's.
	forgotten uint64
	// settled is the seq up to which updates count as seen that may not have been.
	settled uint64
	giveWay func() // see GivingWay; nil: there is none
	pause   func() // see paused; nil outside tests
}

// New returns an empty board.
func New(id rankcache.BoardID) *Board {
	b := &Board{id: id, handover: new(atomic.Value)}
	b.clear()
	return b
}

// ID returns the board's id.
func (b *Board) ID() rankcache.BoardID { return b.id }

// Reset empties the board for a fill from the beginning. Readers keep the last
// view, until the next Publish.
func (b *Board) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clear()
}

// clear begins with new storage; readers may still be in the old.
func (b *Board) clear() {
	b.members = newMembers(maphash.MakeSeed(), 0)
	b.order, b.changes, b.live = nil, nil, 0
	b.seen, b.orders = seen{}, newOrders()
	b.moved, b.unforgotten, b.movedAt, b.forgotten, b.settled = true, 0, 0, 0, 0
}

// Progress returns how far the board has come, unpublished changes included.
func (b *Board) Progress() rankcache.Progress {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.progress()
}

func (b *Board) progress() rankcache.Progress {
	return rankcache.Progress{
		Contiguous: b.seen.contiguous,
		Highest:    b.seen.highest,
		OrderIDs:   uint64(len(b.orders.seen)),
		Members:    b.live,
	}
}

// Score returns the member's score, unpublished changes included, and the
// highest seq applied to it. ok is false if it is not on the board; memberSeq
// then is its removal's or, if that is not remembered, the seq up to which it may
// have been.
func (b *Board) Score(member string) (score float64, memberSeq uint64, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, r := b.members.find(member)
	if r == nil {
		return 0, b.forgotten, false
	}
	if score = b.score(r); isAbsent(score) {
		return 0, r.seq, false
	}
	return score, r.seq, true
}

// MarkCurrent says that the copy was known to equal the origin at t. It only
// moves forward. It takes no lock.
func (b *Board) MarkCurrent(t time.Time) {
	for {
		before := b.current.Load()
		if before != nil && !t.After(*before) || b.current.CompareAndSwap(before, &t) {
			return
		}
	}
}

// CurrentAt returns when the copy was last known to equal the origin, and the
// zero time if it never was.
func (b *Board) CurrentAt() time.Time {
	if t := b.current.Load(); t != nil {
		return *t
	}
	return time.Time{}
}
