package admission

import (
	"container/list"
	"context"

	"rankcache"
)

// fills shares the memory that no board holds among those being filled. The admission's mu guards it.
type fills struct {
	taken   int64     // by the boards that are being filled now
	waiting list.List // of *filling
}

// filling is one board that waits or is being filled.
type filling struct {
	bytes int64
	place *list.Element // nil once it may begin
	begun chan struct{} // closed then
}

// Fill waits until there is memory to fill an admitted board, or to fill it again, beside those that are being filled:
// when memory is short, one after the other, in the order of calling. The caller calls done, once, when the board is
// filled. The error is ctx's. It is called with no lock held that another board's filling needs.
func (a *Admission) Fill(ctx context.Context, board rankcache.BoardID) (done func(), err error) {
	f := &filling{begun: make(chan struct{})}
	a.mu.Lock()
	f.bytes = a.verdict[board].fill
	f.place = a.fills.waiting.PushBack(f)
	a.beginFillsLocked()
	a.mu.Unlock()
	select {
	case <-f.begun:
		return func() { a.endFill(f) }, nil
	case <-ctx.Done():
		a.endFill(f)
		return nil, ctx.Err()
	}
}

// endFill gives back what f has taken, or its place among those that wait.
func (a *Admission) endFill(f *filling) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if f.place != nil {
		a.fills.waiting.Remove(f.place)
	} else {
		a.fills.taken -= f.bytes
	}
	a.beginFillsLocked()
}

// beginFillsLocked begins those that there is memory for, the first in any case if no other is being filled.
func (a *Admission) beginFillsLocked() {
	for e := a.fills.waiting.Front(); e != nil; e = a.fills.waiting.Front() {
		f := e.Value.(*filling)
		if a.budget > 0 && a.fills.taken > 0 && a.fills.taken+f.bytes > a.budget-a.held {
			return
		}
		a.fills.taken += f.bytes
		a.fills.waiting.Remove(e)
		f.place = nil
		close(f.begun)
	}
}
