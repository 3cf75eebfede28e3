package hotkey

import (
	"context"
	"time"

	"rankcache"
)

// historyEvery is how often it is asked for the history of Redis while boards are hot. A board that loses most of its members within
// that time after a failover counts as lost.
const historyEvery = 10 * time.Second

// historyOf is the history of Redis in which a page's board was last there. It belongs to the page's fetch.
type historyOf struct {
	name string // "": not known
	at   time.Time
}

// historiesBefore returns the histories of the servers of a batch, nil if none is due or Redis does not answer. They are asked for
// before the pages are read: a board that is there then was not lost before.
func (r *refresher) historiesBefore(ctx context.Context, batch []*page, boards []rankcache.BoardID) []string {
	for _, p := range batch {
		if r.histories != nil && time.Since(p.history.at) >= historyEvery {
			names, err := r.histories(ctx, boards)
			if err != nil {
				return nil
			}
			return names
		}
	}
	return nil
}

// keepLost takes away from a batch the empty heads of boards that Redis has lost: their pages stay as they were, until they are
// stale. A board that others have begun again is told, too, and shows its new life.
func (r *refresher) keepLost(ctx context.Context, batch []*page, tops []*rankcache.Top, before []string) {
	var asked []string
	for i, p := range batch {
		old := p.cached.Load()
		if tops[i] == nil {
			continue
		}
		if shrunk := old != nil && 2*tops[i].Members < old.top.Members; !shrunk || p.history.name == "" {
			if before != nil {
				p.history = historyOf{before[i], time.Now()}
			}
			continue
		}
		if asked == nil {
			boards := make([]rankcache.BoardID, len(batch))
			for j := range batch {
				boards[j] = batch[j].board
			}
			var err error
			if asked, err = r.histories(ctx, boards); err != nil {
				asked = make([]string, len(batch))
			}
		}
		r.judge(p, &tops[i], asked[i])
	}
}

// judge decides about a board that has fewer than half of the members of its page. The history of Redis may not be told now.
func (r *refresher) judge(p *page, top **rankcache.Top, history string) {
	if history == p.history.name { // it was deleted, or trimmed
		return
	}
	if history != "" && !p.lost {
		p.lost = true
		r.metrics.lost.Inc()
		r.log.Error("redis has lost a hot board", "board", p.board, "members", p.cached.Load().top.Members, "now", (*top).Members)
	}
	switch {
	case (*top).Members == 0:
		*top = nil
	case history != "":
		p.history, p.lost = historyOf{history, time.Now()}, false
	}
}
