package localboard

import (
	"slices"
	"unsafe"
)

// Limits of spares. A publication of 500 changes copies some 350 chunks and 130
// shelves; a ranking that is read for longer than mostLots publications is left
// to the collector.
const (
	mostSpareChunks  = 2048
	mostSpareShelves = 512
	mostSpareChanges = 4096 // of one list
	mostLots         = 4
)

// spares is what the writer copies chunks and shelves into: those that earlier
// publications replaced and nobody reads any more. They are in the cache, where
// new memory is not, and leave the collector nothing to do. The zero spares is
// ready for use by the writer.
type spares struct {
	chunks  []*chunk
	shelves []*shelf
	rooms   []room
	lists   [][]change
	lots    []lot // replaced, but perhaps read; oldest first
	coming  lot   // replaced for the coming publication
	// kept is the newest age of which a ranking may be read for good. What is as
	// old may be in it, and is left to the collector.
	kept    uint64
	hasKept bool
}

// lot is what one publication replaced. It was in the ranking before it, and maybe
// in older ones.
type lot struct {
	holds   *holds // of that ranking
	age     uint64 // its own
	chunks  []*chunk
	shelves []*shelf
	room    room     // which it alone had
	changes []change // that overwrote it
}

// copyChunk returns a copy of c, which it replaces.
func (s *spares) copyChunk(c *chunk) *chunk {
	mine := pop(&s.chunks)
	*mine = *c
	s.coming.chunks = append(s.coming.chunks, c)
	return mine
}

// copyShelf returns a copy of f, which it replaces.
func (s *spares) copyShelf(f *shelf) *shelf {
	mine := pop(&s.shelves)
	*mine = *f
	s.coming.shelves = append(s.coming.shelves, f)
	return mine
}

// pop takes the last of a pile, or makes one.
func pop[T any](pile *[]*T) *T {
	n := len(*pile)
	if n == 0 {
		return new(T)
	}
	last := (*pile)[n-1]
	*pile = (*pile)[:n-1]
	return last
}

// makeRoom returns what a ranking may be written in.
func (s *spares) makeRoom() (r room) {
	if n := len(s.rooms); n > 0 {
		r, s.rooms = s.rooms[n-1], s.rooms[:n-1]
	}
	return r
}

// makeList returns what some n changes may be listed in.
func (s *spares) makeList(n int) []change {
	if last := len(s.lists) - 1; last >= 0 {
		l := s.lists[last]
		s.lists = s.lists[:last]
		return l[:0]
	}
	return make([]change, 0, min(n, mostSpareChanges))
}

// replaced is told that a ranking is no longer the current one, and by which
// changes, and takes back what nobody reads any more.
func (s *spares) replaced(k *ranking, by []change) {
	s.coming.holds, s.coming.age, s.coming.room, s.coming.changes = k.holds, k.age, k.room, by
	s.lots = append(s.lots, s.coming)
	s.coming = lot{}
	for len(s.lots) > 0 && (s.lots[0].holds.idle() || len(s.lots) > mostLots) {
		l := s.lots[0]
		s.lots = slices.Delete(s.lots, 0, 1)
		s.takeBack(&l)
		clear(l.chunks) // not to keep those that were left to the collector
		clear(l.shelves)
		s.coming.chunks, s.coming.shelves = l.chunks[:0], l.shelves[:0]
	}
}

// takeBack takes the oldest lot back. A chunk that is younger than the newest
// ranking that is kept is in none that is.
func (s *spares) takeBack(l *lot) {
	if !l.holds.idle() || l.holds.kept.Load() {
		s.kept, s.hasKept = max(s.kept, l.age), true
	} else {
		s.rooms = append(s.rooms, l.room)
		if cap(l.changes) <= mostSpareChanges {
			s.lists = append(s.lists, l.changes)
		}
	}
	for _, c := range l.chunks {
		if s.isFree(c.age) && len(s.chunks) < mostSpareChunks {
			s.chunks = append(s.chunks, c)
		}
	}
	for _, f := range l.shelves {
		if s.isFree(f.age) && len(s.shelves) < mostSpareShelves {
			s.shelves = append(s.shelves, f)
		}
	}
}

// isFree says whether what was made for the publication of that age is in no
// ranking that is kept.
func (s *spares) isFree(age uint64) bool { return !s.hasKept || age > s.kept }

func (s *spares) bytes() int {
	chunks, shelves, rooms, changes := len(s.chunks)+len(s.coming.chunks), len(s.shelves)+len(s.coming.shelves), 0, 0
	for i := range s.lots {
		chunks += len(s.lots[i].chunks)
		shelves += len(s.lots[i].shelves)
		rooms += s.lots[i].room.ownBytes()
		changes += cap(s.lots[i].changes)
	}
	for _, l := range s.lists {
		changes += cap(l)
	}
	for i := range s.rooms {
		rooms += s.rooms[i].ownBytes()
	}
	return chunks*int(unsafe.Sizeof(chunk{})) + shelves*int(unsafe.Sizeof(shelf{})) + rooms + changes*int(unsafe.Sizeof(change{}))
}
