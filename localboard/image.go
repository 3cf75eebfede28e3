package localboard

import (
	"iter"

	"rankcache"
)

// Image returns the whole board as last published, best first and in pieces,
// and the moment that it is of. It may be read at any pace, by one goroutine at
// a time, while the board goes on; a piece is valid until the next. Before the
// first Publish there is nothing.
func (b *Board) Image() (rankcache.Stamp, iter.Seq[[]rankcache.Entry]) {
	v, hold := b.hold()
	if v == nil {
		return rankcache.Stamp{}, func(func([]rankcache.Entry) bool) {}
	}
	defer hold.release()
	v.holds.kept.Store(true) // nobody says when it has been read
	return v.stamp(), v.pieces
}

// pieces yields the rows chunk by chunk.
func (v *view) pieces(yield func([]rankcache.Entry) bool) {
	var buf [chunkRows]rankcache.Entry
	for c := range v.chunks {
		piece := buf[:c.n]
		c.read(&v.members, piece, 0)
		if !yield(piece) {
			return
		}
	}
}
