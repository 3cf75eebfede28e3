package replay

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"rankcache/wire"
)

// maxBuffered bounds the updates buffered per board, about 15 MB. Beyond it updates
// are applied as they come: an update that is missing for so long closes the board
// soon anyway (lagWatch).
const maxBuffered = 64 << 10

// reorderBuffer puts the updates of one board in the order of their seqs. Updates
// come out of order when a board has several partitions or writers, and applying
// those ahead of a missing one would show a board that never was. So a board that
// is read, or about to be, is given its updates without holes; early ones wait here
// for the missing one. The replica owns it: its lock guards it.
type reorderBuffer struct {
	enabled bool                   // otherwise updates are applied as they come
	updates map[uint64]wire.Update // by seq; their strings are their own
	highest uint64                 // seq buffered since the buffer was empty
	limited bool                   // updates beyond limit wait, and no others
	limit   uint64
	ready   []wire.Update // what the last call returned
}

// Add takes a batch for a board that has every update up to contiguous, and returns
// what may be applied now, in order of seqs, valid until the next call. Updates
// without a seq, and late ones, are returned too: the board ignores what it has.
func (b *reorderBuffer) Add(batch []wire.Update, contiguous uint64) []wire.Update {
	b.reuse()
	if b.limited {
		for i := range batch {
			if u := &batch[i]; u.Seq > b.limit {
				b.keep(u)
			} else {
				b.ready = append(b.ready, *u)
			}
		}
		return b.ready
	}
	next := contiguous + 1
	for i := range batch {
		switch u := &batch[i]; {
		case u.Seq > next && len(b.updates) < maxBuffered:
			b.keep(u)
		case u.Seq > next:
			b.ready = append(append(b.ready, b.Flush()...), *u)
		default:
			b.ready = append(b.ready, *u)
			if u.Seq == next {
				next = b.release(next + 1)
			}
		}
	}
	return b.ready
}

// Next returns what else may be applied to a board that now has every update up to
// contiguous: one that skips a hole of its log releases what waits behind it.
func (b *reorderBuffer) Next(contiguous uint64) []wire.Update {
	b.reuse()
	if b.limited {
		return nil
	}
	if b.highest <= contiguous { // what is left are repeats
		b.Clear()
		return nil
	}
	b.release(contiguous + 1)
	return b.ready
}

// Hold makes updates beyond a seq wait, and no others, until Raise.
func (b *reorderBuffer) Hold(limit uint64) { b.limited, b.limit = true, limit }

// Raise raises the limit of Hold and returns what waited up to it, in order of seqs. A
// limit of math.MaxUint64 ends it: from then on updates wait for missing ones.
func (b *reorderBuffer) Raise(limit uint64) []wire.Update {
	b.reuse()
	if limit == math.MaxUint64 {
		b.limited = false
		return nil
	}
	b.Hold(limit)
	for seq, u := range b.updates {
		if seq <= limit {
			b.ready = append(b.ready, u)
			delete(b.updates, seq)
		}
	}
	slices.SortFunc(b.ready, func(a, b wire.Update) int { return cmp.Compare(a.Seq, b.Seq) })
	return b.ready
}

// Flush returns all buffered updates, in no order, and empties the buffer.
func (b *reorderBuffer) Flush() []wire.Update {
	all := make([]wire.Update, 0, len(b.updates))
	for _, u := range b.updates {
		all = append(all, u)
	}
	b.Clear()
	return all
}

// Clear drops what is buffered.
func (b *reorderBuffer) Clear() { b.updates, b.highest, b.limited = nil, 0, false }

func (b *reorderBuffer) keep(u *wire.Update) {
	if b.updates == nil {
		b.updates = make(map[uint64]wire.Update)
	}
	own := *u
	own.Member, own.OrderID = strings.Clone(u.Member), strings.Clone(u.OrderID)
	b.updates[u.Seq] = own
	b.highest = max(b.highest, u.Seq)
}

// release moves to ready what follows from next on without a hole, and returns the
// seq that is missing then.
func (b *reorderBuffer) release(next uint64) uint64 {
	for {
		u, ok := b.updates[next]
		if !ok {
			return next
		}
		delete(b.updates, next)
		b.ready = append(b.ready, u)
		next++
	}
}

func (b *reorderBuffer) reuse() {
	clear(b.ready) // releases the records' memory
	b.ready = b.ready[:0]
}
