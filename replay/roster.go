package replay

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"rankcache"
)

// seat is one followed board with its gate.
type seat struct {
	f    *follower
	stop context.CancelFunc
	done chan struct{} // closed when the gate has ended
}

// Follow names the boards that shall be kept: new ones are created, filled and
// opened, those not named any more are dropped. It returns at once, may be called
// by any goroutine, also before Run, and does not keep the slice.
func (r *Runner) Follow(boards []rankcache.BoardID) {
	r.mu.Lock()
	r.wanted, r.named = slices.Clone(boards), true
	r.mu.Unlock()
	nudge(r.rosterKick)
}

// nudge asks for another round, if that has not been asked for already.
func nudge(kick chan<- struct{}) {
	select {
	case kick <- struct{}{}:
	default:
	}
}

// keepRoster follows what Follow says. Gates run in the group.
func (r *Runner) keepRoster(ctx context.Context, group *errgroup.Group) error {
	for {
		r.reconcile(ctx, group)
		select {
		case <-ctx.Done():
			return nil
		case <-r.rosterKick:
		}
	}
}

func (r *Runner) reconcile(ctx context.Context, group *errgroup.Group) {
	for _, s := range r.reseat(ctx, group) {
		s.stop()
		<-s.done // else it might open the board after it was dropped
		s.f.drop()
		r.boards.Drop(s.f.id)
		r.log.Info("board is not followed any more", "board", s.f.id)
	}
	nudge(r.catalogueKick)
	nudge(r.totalsKick)
}

// reseat gives every wanted board a seat and returns the seats of the others.
func (r *Runner) reseat(ctx context.Context, group *errgroup.Group) (gone []*seat) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.named {
		return nil
	}
	next := make(routes, len(r.wanted))
	for _, id := range r.wanted {
		if r.seats[id] == nil {
			r.seats[id] = r.sit(ctx, group, id)
		}
		next[id] = r.seats[id].f
	}
	for id, s := range r.seats {
		if next[id] == nil {
			gone = append(gone, s)
			delete(r.seats, id)
		}
	}
	r.routes.Store(&next)
	if !r.started {
		r.atStart, r.started = r.wanted, true
	}
	return gone
}

// sit begins to follow a board.
func (r *Runner) sit(ctx context.Context, group *errgroup.Group, id rankcache.BoardID) *seat {
	ctx, stop := context.WithCancel(ctx)
	f := newFollower(id, r.cfg.Names.Topic(id), r.boards.Create(id), r.metrics, time.Now())
	f.restoring.Store(r.cfg.Files != nil)
	s := &seat{f, stop, make(chan struct{})}
	g := &gate{f: f, boards: r.boards, origin: r.origin, cfg: r.cfg, backlog: r.backlog.Load, totals: r.totalsKick, metrics: r.metrics, log: r.log}
	group.Go(func() error {
		defer close(s.done)
		defer stop()
		r.restore(ctx, f)
		g.run(ctx)
		return nil
	})
	return s
}
