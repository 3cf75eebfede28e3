package localboard

import (
	"math/rand/v2"
	"sync/atomic"
)

// holds counts who reads a ranking, so that the writer knows when what it has
// replaced in it can be written in again.
//
//	reader                                 writer
//	h1 load view                           s1 set new view
//	h2 count itself in the view's holds    s2 is nobody counted in the old view's?
//	h3 load view: the same? else undo      s3 write in what the old view alone had
//
// If s2 misses a reader that will be counted, s1 is before h3: the reader sees
// another view and goes away without having read.
type holds struct {
	stripes [holdStripes]holdStripe
	// kept says that somebody may go on reading for good.
	kept atomic.Bool
}

// holdStripes is over how many cache lines readers spread, so that cores do not
// fight for one.
const holdStripes = 8

type holdStripe struct {
	readers atomic.Int32
	_       [60]byte
}

// hold is one reader's. The zero hold is of nothing.
type hold struct{ readers *atomic.Int32 }

func (h hold) release() {
	if h.readers != nil {
		h.readers.Add(-1)
	}
}

func (h *holds) take() hold {
	n := &h.stripes[rand.Uint32()%holdStripes].readers
	n.Add(1)
	return hold{n}
}

// idle reports whether nobody is counted.
func (h *holds) idle() bool {
	for i := range h.stripes {
		if h.stripes[i].readers.Load() != 0 {
			return false
		}
	}
	return true
}

// hold returns the current view, nil before the first, whose ranking stays as it
// is until the hold is released. A reader that needs the top alone needs none.
func (b *Board) hold() (*view, hold) {
	for {
		v := b.view.Load() // h1
		if v == nil {
			return nil, hold{}
		}
		if h, ok := b.holdThis(v); ok {
			return v, h
		}
	}
}

// holdThis returns false if v is not the current view any more.
func (b *Board) holdThis(v *view) (hold, bool) {
	h := v.holds.take()     // h2
	if b.view.Load() == v { // h3
		return h, true
	}
	h.release()
	return hold{}, false
}
