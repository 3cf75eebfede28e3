package localboard

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"rankcache"
	"rankcache/wire"
)

// ErrOldSnapshot is returned by Load for a snapshot that was read before one that is loaded already, or before a
// removal whose tombstone is gone: loading it could bring a removed member back. Read a new snapshot.
var ErrOldSnapshot = errors.New("snapshot is older than the state of the board")

// ErrReset is returned by Load if the board was reset since it began: the board has nothing of the snapshot.
var ErrReset = errors.New("the board was reset meanwhile")

// Board is one leaderboard in memory. Any goroutine may call its methods. Those that write exclude each other by a
// lock, which none of them holds for long: Load, Sum and the first Publish, which take a second for 2,000,000 members,
// let others in between. Read and Snapshot take no lock and never block, and find nothing before the first Publish.
type Board struct {
	id      rankcache.BoardID
	view    atomic.Pointer[view]      // the current one; nil before the first
	current atomic.Pointer[time.Time] // when the copy was last known to equal the origin
	// primed is the earliest known state of this run at which the origin had the board marked primed; nil: none.
	primed atomic.Pointer[rankcache.State]
	depth  depth

	whole sync.Mutex // held by Load and Publish, which are not to see each other's half, before mu
	mu    sync.Mutex // guards the fields below. It is the last lock taken: no code that holds it takes another.
	writerState
	resets int    // how often the board was emptied
	pause  func() // test hook between the steps of Publish and Load; nil outside tests

	changed func() // called without the lock when readers see another state; nil: not wanted
}

// New returns an empty board.
func New(id rankcache.BoardID) *Board {
	b := &Board{id: id, depth: newDepth()}
	b.clear()
	return b
}

// ID returns the board's id.
func (b *Board) ID() rankcache.BoardID { return b.id }

// Reset empties the board, which is closed, to be filled anew. Until the next Publish it answers as before the first:
// without a time, so that readers ask the origin. The last view would be a second board in memory.
func (b *Board) Reset() {
	b.empty()
	b.notify()
}

func (b *Board) empty() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clear()
	b.resets++
	b.view.Store(nil)
	b.current.Store(nil) // what comes next may be older
}

func (b *Board) notify() {
	if b.changed != nil {
		b.changed()
	}
}

// Apply applies a batch of the board's updates and counts the outcomes. Readers see them after the next Publish. us is
// not retained. An update that no board can hold (a NaN score, an id of 64 KiB) changes nothing and counts as stale.
func (b *Board) Apply(us []wire.Update) rankcache.ApplyResult {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.applyAll(us)
}

// Load replaces the board's state by a snapshot of the origin that was read after the origin had reached seq. A member
// whose own seq is higher keeps its state, also if that is removed; every other member takes the snapshot's state, or
// is removed if the snapshot lacks it. All updates up to seq then count as seen. Members with data are given as
// [rankcache.JoinData] joins them. The snapshot may come in pieces; they are not retained. Updates may be applied
// meanwhile. The strict mode that Prove began ends.
//
// The error wraps ErrOldSnapshot or names an entry that no board can hold, and the
// board is then unchanged; or it wraps ErrReset.
func (b *Board) Load(seq uint64, pieces ...[]rankcache.Entry) error {
	return b.StartLoad(seq, pieces...)()
}

// StartLoad returns a function that does what Load does, unless the board is reset after StartLoad.
func (b *Board) StartLoad(seq uint64, pieces ...[]rankcache.Entry) func() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := loading{Board: b, seq: seq, pieces: pieces, resets: b.resets}
	return l.run
}

// Sum returns the checksum over all members, unpublished changes included. The first call since [New] or Reset adds
// them up in pieces, so that others wait 0.25 ms at most; from then on each change keeps it.
func (b *Board) Sum() uint64 {
	for {
		b.mu.Lock()
		done, sum := b.sumMore(&b.members, b.score, sumPiece), b.sum
		b.mu.Unlock()
		if done {
			return sum
		}
	}
}

// SetRun records of which run the board's updates are.
func (b *Board) SetRun(run uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.run = run
}

// SetLife records how far the life has come; it goes back at Reset only. Readers see it after the next Publish.
func (b *Board) SetLife(life rankcache.Life) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.life = max(b.life, life)
}

// Life returns the life that was recorded.
func (b *Board) Life() rankcache.Life {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.life
}

// Prove compares the board with the state that Redis had. If run and sum are the same and the board has no update
// beyond the state's seq, it is equal to Redis there: holes up to the seq are accepted, Prove returns true, and from
// now on Apply is strict. Otherwise nothing changes.
func (b *Board) Prove(state rankcache.State) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !state.HasSum || b.run != state.Run || b.summedTo != allHandles || b.sum != state.Sum || b.seqs.highest > state.Seq {
		return false
	}
	b.seqs.acceptTo(state.Seq)
	b.strict = true
	b.ring = newSumRing(state.Seq, state.Sum)
	return true
}

// Relax ends the strict mode that Prove began: updates are applied in any order, unproved.
func (b *Board) Relax() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.strict, b.ring = false, sumRing{}
}

// Publish makes applied updates visible to readers; without any it returns at once. The first Publish sorts the board,
// and from then on the index is kept up to date: do not publish a board that is still being filled.
//
// Scores are in the hash table, which successive views share, so that a standing costs one lookup. (When the table
// grows, older views keep the old one, which is no longer written.) This protocol keeps scores and view consistent:
//
//	writer                                reader
//	w1 set old view's overwritten         r1 load view
//	w2 overwrite scores                   r2 load scores
//	w3 set new view                       r3 load view's overwritten: nil? done
//	w4 clear the records' changeNo        r4 load the records' changeNo, restore
//	                                      r5 load view: unchanged? done, else retry
//
// If r3 loads nil, w1 had not happened, so all scores of r2 are the view's. If r5 finds the same view, w3 had not
// happened: the scores are the view's or of this one publication, and r4 restores the latter, because w4 had not
// happened either. Otherwise a publication has completed and the reader retries with a newer view. A reader never waits
// for a writer that was suspended between two steps.
func (b *Board) Publish() {
	if b.publish() {
		b.notify()
	}
}

func (b *Board) publish() bool {
	b.whole.Lock()
	defer b.whole.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.index == nil {
		b.sortLocked()
	}
	old := b.view.Load()
	if !b.freshStorage && len(b.changes) == 0 && old.state == b.state() && old.life == b.life && old.data == b.data {
		return false
	}
	next, changes := b.buildView(old), b.changes
	if !b.freshStorage { // else no reader uses this storage yet
		old.overwritten.Store(&changes) // w1
	}
	b.paused()
	b.storeScores(changes) // w2
	b.paused()
	b.view.Store(next) // w3
	b.paused()
	b.resetChanges(changes) // w4
	return true
}

func (b *Board) paused() {
	if b.pause != nil {
		b.pause()
	}
}

// buildView returns the view with all changes applied.
func (b *Board) buildView(old *view) *view {
	v := &view{id: b.id, depth: &b.depth, most: b.depth.next()}
	if len(b.changes) == 0 && !b.freshStorage {
		v.ranking = old.ranking
	} else {
		b.updateIndex()
		v.ranking = b.index.freeze()
	}
	v.members, v.state, v.life, v.data, v.since = b.members, b.state(), b.life, b.data, time.Now()
	return v
}
