package hotkey

import (
	"context"

	"rankcache"
)

// historiesBefore returns the histories of boards' servers, up to 10 s old, nil if Redis does not answer; asked before
// the pages are read. One that loses most members within 10 s after a failover counts as lost.
func (r *refresher) historiesBefore(ctx context.Context, boards []rankcache.BoardID) []string {
	if r.histories == nil {
		return nil
	}
	names, err := r.histories(ctx, boards, false)
	if err != nil {
		return nil
	}
	return names
}

// keepLost takes the empty heads of lost boards away from a batch: their pages stay until they are stale.
func (r *refresher) keepLost(ctx context.Context, batch []*page, tops []*rankcache.Top, before []string) {
	var asked []string
	for i, p := range batch {
		old := p.cached.Load()
		if tops[i] == nil {
			continue
		}
		if shrunk := old != nil && 2*tops[i].Members < old.top.Members; !shrunk || p.history == "" {
			if before != nil {
				p.history = before[i]
			}
			continue
		}
		if asked == nil {
			boards := make([]rankcache.BoardID, len(batch))
			for j := range batch {
				boards[j] = batch[j].board
			}
			var err error
			if asked, err = r.histories(ctx, boards, true); err != nil {
				asked = make([]string, len(batch))
			}
		}
		r.judge(p, &tops[i], asked[i])
	}
}

// judge decides about a board with fewer than half of its page's members. Redis's history may not be told now.
func (r *refresher) judge(p *page, top **rankcache.Top, history string) {
	if history == p.history { // it was deleted, or trimmed
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
		p.history, p.lost = history, false
	}
}
