package admission

import (
	"context"
	"slices"

	"rankcache"
)

// fills shares the memory that no board holds among those that are being filled. Its
// fields are guarded by the admission's mu.
type fills struct {
	taken   int64 // by the boards that are being filled now
	waiting []*filling
}

// filling is one board that waits or is being filled.
type filling struct {
	bytes int64
	begun chan struct{} // closed when it may begin
}

// Fill waits until there is memory to fill an admitted board, or to fill it again,
// beside those that are being filled: when memory is short, one after the other, in
// the order of calling. The caller calls done, once, when the board is filled. The error
// is ctx's. It is called with no lock held that another board's filling needs.
func (a *Admission) Fill(ctx context.Context, board rankcache.BoardID) (done func(), err error) {
	f := &filling{begun: make(chan struct{})}
	a.mu.Lock()
	f.bytes = a.verdict[board].fill
	a.fills.waiting = append(a.fills.waiting, f)
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
	if i := slices.Index(a.fills.waiting, f); i >= 0 {
		a.fills.waiting = slices.Delete(a.fills.waiting, i, i+1)
	} else {
		a.fills.taken -= f.bytes
	}
	a.beginFillsLocked()
}

// beginFillsLocked begins those that there is memory for, the first in any case if no
// other is being filled: a board that has grown since it was admitted must be filled, too.
func (a *Admission) beginFillsLocked() {
	w := a.fills.waiting
	for len(w) > 0 && (a.budget == 0 || a.fills.taken == 0 || a.fills.taken+w[0].bytes <= a.budget-a.held) {
		a.fills.taken += w[0].bytes
		close(w[0].begun)
		w = w[1:]
	}
	a.fills.waiting = w
}
