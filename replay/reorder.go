package replay

import (
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"rankcache"
	"rankcache/wire"
)

const (
	maxHeldBytes = 24 << 20 // the largest size of one board's buffer, some 60,000 updates
	maxHeldInAll = 64 << 20 // bounds the bytes that all boards hold
)

// reorderBuffer holds the updates of one board that must not be applied yet. There
// are two reasons, and both may hold at once:
//
//   - The board is read (enabled): it is given its updates in the order of their seqs
//     without holes, because applying one ahead of a missing one would show a board
//     that never was. Updates come out of order when a board has several writers.
//   - Its gate compares it at a seq (Hold): later updates wait.
//
// It belongs to an [intake].
type reorderBuffer struct {
	enabled bool
	limited bool
	limit   uint64 // with limited: later updates are held

	updates map[uint64]wire.Update   // by seq; their strings are their own
	others  map[uint64][]wire.Update // further ones of a seq that is in updates: of another history
	came    map[uint64]time.Time     // by seq: when the last of them came
	lowest  uint64                   // no held seq is below it
	highest uint64                   // seq held since the buffer was empty
	board   rankcache.BoardID        // of all of them, a copy of its own
	bytes   int64                    // about their size
	all     *atomic.Int64            // the bytes of all boards
	ready   []wire.Update            // the result of the last call
}

// Hold keeps updates beyond limit from now on; math.MaxUint64 ends that, but returns nothing: see Raise and Next.
func (b *reorderBuffer) Hold(limit uint64) { b.limit, b.limited = limit, limit != math.MaxUint64 }

// Raise is Hold with a higher limit, and returns the updates that need not be held any more in order of seqs, with
// holes, valid until the next call. Of an enabled buffer it returns nothing: Next has what follows without a hole.
func (b *reorderBuffer) Raise(limit uint64) []wire.Update {
	b.Hold(limit)
	b.reuse()
	if !b.enabled {
		b.take(limit)
	}
	return b.ready
}

// Add takes a batch for a board that has every update up to contiguous, and returns
// what may be applied now, valid until the next call: in order of seqs if the buffer is
// enabled, else as they came. Updates without a seq, and late ones, are returned too.
//
// If an enabled buffer is full, all that is held is dropped, and overflow is set: the board lacks updates that will not
// come again. It has to be filled from Redis, which has them all, because an update is in Redis before it is in the
// log. If another one is full, its hold ends: the gate finds the board beyond its target, and takes another.
func (b *reorderBuffer) Add(batch []wire.Update, contiguous uint64) (ready []wire.Update, overflow bool) {
	b.reuse()
	next := contiguous + 1
	for i := range batch {
		switch u := &batch[i]; {
		case b.limited && u.Seq > b.limit, b.enabled && u.Seq > next:
			switch {
			case b.keep(u):
			case b.enabled:
				b.Clear()
				overflow = true
			default:
				b.Hold(math.MaxUint64)
				b.take(math.MaxUint64)
				b.ready = append(b.ready, *u)
			}
		default:
			b.ready = append(b.ready, *u)
			if b.enabled && u.Seq == next {
				next = b.release(next)
			}
		}
	}
	return b.ready, overflow
}

// Next returns further updates for a board that has all up to contiguous, as after a hole or a load.
func (b *reorderBuffer) Next(contiguous uint64) []wire.Update {
	b.reuse()
	b.take(min(contiguous, b.bound()))
	b.release(contiguous)
	return b.ready
}

// Keep takes back the end of a call's updates that the board could not apply. It returns false on overflow.
func (b *reorderBuffer) Keep(rest []wire.Update) bool {
	for i := range rest {
		if !b.keep(&rest[i]) {
			b.Clear()
			return false
		}
	}
	return true
}

// Flush returns all held updates in order of seqs, valid until the next call, and empties the buffer.
func (b *reorderBuffer) Flush() []wire.Update {
	b.reuse()
	b.take(math.MaxUint64)
	return b.ready
}

// DropLost drops the updates of a run beyond a seq that had come before a time, and returns how many. If Redis had only
// that seq of the run then, it has lost them: an update is in Redis before it is in the log.
func (b *reorderBuffer) DropLost(run, seq uint64, at time.Time) int {
	b.reuse()
	for s, u := range b.updates {
		if s > seq && u.Run == run && b.came[s].Before(at) {
			b.move(s)
		}
	}
	return len(b.ready)
}

// Clear drops the held updates.
func (b *reorderBuffer) Clear() {
	b.updates, b.others, b.came, b.lowest, b.highest = nil, nil, nil, 0, 0
	b.count(-b.bytes)
}

func (b *reorderBuffer) count(more int64) {
	b.bytes += more
	b.all.Add(more)
}

func (b *reorderBuffer) bound() uint64 {
	if b.limited {
		return b.limit
	}
	return math.MaxUint64
}

// keep holds a copy of u, unless it is a repeat of one that is held. It returns false if there is no room.
func (b *reorderBuffer) keep(u *wire.Update) bool {
	first, taken := b.updates[u.Seq]
	if taken && (first == *u || slices.Contains(b.others[u.Seq], *u)) {
		return true
	}
	if size := heldSize(u); b.bytes+size > maxHeldBytes || b.all.Load()+size > maxHeldInAll {
		return false
	}
	if b.board != u.Board {
		b.board = rankcache.BoardID(strings.Clone(string(u.Board)))
	}
	own := *u
	own.Board, own.Member, own.OrderID = b.board, strings.Clone(u.Member), strings.Clone(u.OrderID)
	b.put(own, taken)
	return true
}

func (b *reorderBuffer) put(u wire.Update, taken bool) {
	if b.updates == nil {
		b.updates, b.others, b.lowest = make(map[uint64]wire.Update), make(map[uint64][]wire.Update), u.Seq
		b.came = make(map[uint64]time.Time)
	}
	b.came[u.Seq] = time.Now()
	if taken {
		b.others[u.Seq] = append(b.others[u.Seq], u)
	} else {
		b.updates[u.Seq] = u
	}
	b.lowest, b.highest = min(b.lowest, u.Seq), max(b.highest, u.Seq)
	b.count(heldSize(&u))
}

// release moves to ready the updates from seq next on without a hole, and returns the seq that is missing then, or is
// beyond the limit. A board that just got next may have another update of that seq here.
func (b *reorderBuffer) release(next uint64) uint64 {
	for b.move(next); next < b.bound() && b.move(next+1); {
		next++
	}
	return next + 1
}

// take moves to ready the updates held up to limit, in order of seqs.
func (b *reorderBuffer) take(limit uint64) {
	if len(b.updates) == 0 || b.lowest > limit {
		return
	}
	var seqs []uint64
	for seq := range b.updates {
		if seq <= limit {
			seqs = append(seqs, seq)
		}
	}
	slices.Sort(seqs)
	for _, seq := range seqs {
		b.move(seq)
	}
	b.lowest = limit + 1
}

// move moves to ready the updates held of seq, and returns whether anything is.
func (b *reorderBuffer) move(seq uint64) bool {
	u, ok := b.updates[seq]
	if !ok {
		return false
	}
	from := len(b.ready)
	b.ready = append(append(b.ready, u), b.others[seq]...)
	delete(b.updates, seq)
	delete(b.others, seq)
	delete(b.came, seq)
	for i := range b.ready[from:] {
		b.count(-heldSize(&b.ready[from+i]))
	}
	if len(b.updates) == 0 {
		b.Clear()
	}
	return true
}

func (b *reorderBuffer) reuse() {
	clear(b.ready) // releases the records' memory
	b.ready = b.ready[:0]
}

// heldSize returns about how many bytes u takes while it is held.
func heldSize(u *wire.Update) int64 {
	const inMap = 2 // a map that has grown is half empty
	return int64(inMap*int(unsafe.Sizeof(*u)+unsafe.Sizeof(time.Time{})) + len(u.Member) + len(u.OrderID))
}
