package localboard

import (
	"sync/atomic"
	"unsafe"
)

// pins counts the readers of one ranking, so that the writer knows when the nodes
// that it has replaced can be written again. This is read-copy-update with a
// striped reader count for each version, as in sleepable RCU (P. McKenney,
// "Sleepable RCU", https://lwn.net/Articles/202847), except that the writer never
// waits for readers: what is still pinned is reclaimed later, or left to the
// garbage collector (see freeList).
//
//	reader                                  writer
//	p1 load view                            s1 set new view
//	p2 count itself in the view's pins      s2 are the old view's pins zero?
//	p3 load view: unchanged? else undo      s3 write what the old view alone had
//
// If s2 misses a reader that is counted later, s1 is before p3: the reader finds
// another view and retries without having read.
type pins struct {
	stripes [pinStripes]pinStripe
	// permanent is set when a reader may go on for good.
	permanent atomic.Bool
}

// pinStripes is over how many cache lines readers are spread, so that cores do not
// contend for one.
const pinStripes = 8

type pinStripe struct {
	readers atomic.Int32
	_       [60]byte
}

// pin is one reader's. The zero pin pins nothing.
type pin struct{ readers *atomic.Int32 }

func (p pin) release() {
	if p.readers != nil {
		p.readers.Add(-1)
	}
}

func (p *pins) add() pin {
	var here byte // its address tells goroutines apart, as each has a stack of its own
	at := uint32(uintptr(unsafe.Pointer(&here))>>11) * 0x9e3779b1
	n := &p.stripes[at>>16%pinStripes].readers
	n.Add(1)
	return pin{n}
}

// idle reports whether no reader is counted.
func (p *pins) idle() bool {
	for i := range p.stripes {
		if p.stripes[i].readers.Load() != 0 {
			return false
		}
	}
	return true
}

// viewPointer is a board's current view.
type viewPointer struct{ atomic.Pointer[view] }

// pin returns the current view, nil before the first. Its ranking does not change
// until the pin is released. A reader of the top alone needs no pin.
func (p *viewPointer) pin() (*view, pin) {
	for {
		v := p.Load() // p1
		if v == nil {
			return nil, pin{}
		}
		if pinned, ok := p.tryPin(v); ok {
			return v, pinned
		}
	}
}

// tryPin returns false if v is no longer the current view.
func (p *viewPointer) tryPin(v *view) (pin, bool) {
	pinned := v.pins.add() // p2
	if p.Load() == v {     // p3
		return pinned, true
	}
	pinned.release()
	return pin{}, false
}
