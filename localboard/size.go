package localboard

import (
	"unsafe"

	"rankcache"
)

// Bytes returns how much heap the board holds, in bytes, estimated from its
// structure. What only slow readers still hold is not counted.
func (b *Board) Bytes() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.members.bytes() + b.seen.bytes() + b.orders.bytes()
	n += cap(b.changes) * int(unsafe.Sizeof(change{}))
	if b.order != nil {
		n += b.order.bytes()
	}
	if v := b.view.Load(); v != nil {
		n += v.ownBytes()
		if b.moved {
			n += v.members.bytes() + v.spine.bytes()
		}
	}
	return n
}

func (o *order) bytes() int {
	return o.spine.bytes() + o.spares.bytes() + cap(o.shelves)*8 + cap(o.heads)*int(unsafe.Sizeof(mark{})) + cap(o.counts)*4
}

// bytes is what the shelves hold.
func (s *spine) bytes() int {
	n := len(s.shelves) * int(unsafe.Sizeof(shelf{}))
	for range s.chunks {
		n += int(unsafe.Sizeof(chunk{}))
	}
	return n
}

// ownBytes is what a view holds that it shares with nobody.
func (v *view) ownBytes() int {
	return int(unsafe.Sizeof(view{})) + v.room.ownBytes() + v.head.bytes()
}

// ownBytes leaves out the shelves.
func (r *room) ownBytes() int {
	return cap(r.shelves)*8 + cap(r.heads)*int(unsafe.Sizeof(mark{})) + cap(r.starts)*4
}

func (h *head) bytes() int {
	return cap(h.entries)*int(unsafe.Sizeof(rankcache.Entry{})) + cap(h.handles)*4 + cap(h.parts)*int(unsafe.Sizeof(part{}))
}
