package replay

import (
	"context"
	"fmt"
	"time"
)

// doubts are the members of a board without seqs that differ from Redis, by id.
// There is no telling whether an update is on its way, so a difference counts
// when it has stayed the same for as long as an update may take.
type doubts map[string]doubt

type doubt struct {
	kind  string
	claim claim
	mine  float64
	since time.Time
}

// auditWithoutSeqs compares a board whose updates carry no seq.
func (g *gate) auditWithoutSeqs(ctx context.Context) {
	var l look
	ask := g.f.recentMembers()
	for m := range g.doubts {
		ask = append(ask, m)
	}
	for _, e := range g.f.board.Page(g.cursor, auditRows, 0).Entries {
		ask = append(ask, e.Member)
	}
	g.cursor += auditRows
	if g.cursor >= g.f.board.Progress().Members {
		g.cursor = 0
	}
	heard, err := g.askForMembers(ctx, ask[:min(len(ask), askMost)], auditRows)
	if err != nil {
		l.unknown = err.Error()
	} else {
		l.seen, l.members = len(heard.claims), g.weigh(heard, time.Now())
	}
	g.f.audited(l, time.Now())
	if len(l.members) > 0 {
		g.tell(l)
		g.f.report(g.epoch, l.fault(), g.boards)
	}
}

// weigh takes what Redis said, and returns the doubts that have become certain.
func (g *gate) weigh(heard *testimony, now time.Time) (certain []difference) {
	next := make(doubts)
	for i := range heard.claims {
		c := heard.claims[i]
		kind, _ := g.compare(&c, 0)
		if kind == "" {
			continue
		}
		mine, _, _ := g.f.board.Score(c.member)
		d := doubt{kind, c, mine, now}
		if old, ok := g.doubts[c.member]; ok && old.kind == kind && old.claim == c && old.mine == mine {
			d.since = old.since
		}
		next[c.member] = d
		if now.Sub(d.since) >= behindMost && (g.f.overdue.Load() == nil || g.f.dry(d.since)) {
			certain = append(certain, difference{kind: kind, claim: c,
				why: fmt.Sprintf("member %q differs from Redis (%s), and no update comes", c.member, kind)})
		}
	}
	g.doubts = next
	return certain
}
