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
			n += v.members.bytes() + len(v.chunks)*int(unsafe.Sizeof(chunk{}))
		}
	}
	return n
}

func (o *order) bytes() int {
	return len(o.chunks)*int(unsafe.Sizeof(chunk{})) + cap(o.chunks)*8 +
		cap(o.heads)*int(unsafe.Sizeof(mark{})) + cap(o.counts)*4
}

// ownBytes is what a view holds that it shares with nobody.
func (v *view) ownBytes() int {
	perChunk := 8 + int(unsafe.Sizeof(mark{})) + 4
	return int(unsafe.Sizeof(view{})) + cap(v.chunks)*perChunk +
		cap(v.top.Entries)*int(unsafe.Sizeof(rankcache.Entry{}))
}
