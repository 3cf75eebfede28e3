package replay

import (
	"context"
	"fmt"
	"slices"
	"time"

	"rankcache"
)

const (
	// auditTop and auditRows are how many rows one audit compares of the top and
	// of the rest, which it goes through from audit to audit: 210,000 members in
	// an hour and a quarter at the default pace. auditRandom members of Redis's
	// come on top, for those that change places so that the walk misses them.
	auditTop    = 50
	auditRows   = 256
	auditRandom = 16
	// auditLooks is how often an audit looks again after a difference, and
	// repairMost how many members it repairs before the whole board is loaded.
	auditLooks = 3
	repairMost = 16
	// askMost bounds the members that one question names.
	askMost = 512
)

func (g *gate) auditDue(now time.Time) bool {
	return g.cfg.AuditEvery > 0 && !now.Before(g.auditAt)
}

// audit compares an open board with Redis and heals it. A few members are
// repaired one by one. If that is not enough, or if rank or size show that a
// member is wrong that was not looked at, the board is closed and loaded again.
func (g *gate) audit(ctx context.Context) {
	defer func() { g.auditAt = time.Now().Add(jitter(g.cfg.AuditEvery)) }()
	if g.cfg.Total != TotalSeq {
		g.auditWithoutSeqs(ctx)
		return
	}
	repaired := 0
	for look := 1; ; look++ {
		l := g.look(ctx)
		wrong := len(l.members) + len(l.off)
		g.f.audited(l, time.Now())
		switch {
		case l.unknown != "" || !g.f.readable.Load():
			return
		case wrong == 0:
			g.cursor = l.next
			return
		}
		g.tell(l)
		if repaired += len(l.members); repaired > repairMost || look == auditLooks || len(l.members) == 0 && look > 1 {
			g.f.report(g.epoch, l.fault(), g.boards)
			return
		}
		g.f.repair(g.epoch, l.members, g.metrics)
	}
}

// look is one comparison.
type look struct {
	unknown string       // why there is nothing to tell
	members []difference // each of one member, told by Redis twice
	off     []difference // of rank and size
	seen    int          // members compared
	next    int          // the rank from which to go on
}

func (l *look) fault() fault {
	all := append(l.members, l.off...)
	return fault{kind: all[0].kind, reason: fmt.Sprintf("%d differences from Redis, such as: %s", len(all), &all[0]), counted: true}
}

// look compares the top, the next stretch of rows and some random members. A
// member that looks wrong, or that is among the board's own rows of the stretch
// and not among Redis's, is asked for again: only what Redis says of it then
// counts, and is what it is repaired with.
func (g *gate) look(ctx context.Context) (l look) {
	doubted := make(map[string]bool)
	for _, start := range []int{0, g.cursor} {
		limit := auditRows
		if start == 0 && g.cursor != 0 {
			limit = auditTop
		}
		heard := g.hear(ctx, &l, func() (*testimony, error) { return g.askForRows(ctx, start, limit) })
		if heard == nil {
			return l
		}
		l.sort(g.judge(heard), doubted)
		g.doubtOwn(heard, start, limit, doubted)
		if l.next = start + limit; l.next >= heard.Members {
			l.next = 0
		}
		if g.cursor == 0 {
			break
		}
	}
	g.confirm(ctx, &l, doubted)
	return l
}

// sort takes what was found: members are doubted, the rest is noted.
func (l *look) sort(found []difference, doubted map[string]bool) {
	for _, d := range found {
		if d.kind == kindRank || d.kind == kindMembers {
			l.note(d)
		} else {
			doubted[d.member] = true
		}
	}
}

// note takes one difference of a kind: one wrong member shifts the ranks of many.
func (l *look) note(d difference) {
	same := func(other difference) bool { return other.kind == d.kind }
	if !slices.ContainsFunc(l.off, same) {
		l.off = append(l.off, d)
	}
}

// doubtOwn doubts the members that are in a stretch of the board and not in
// Redis's.
func (g *gate) doubtOwn(heard *testimony, start, limit int, doubted map[string]bool) {
	theirs := make(map[string]bool, len(heard.claims))
	for i := range heard.claims {
		theirs[heard.claims[i].member] = true
	}
	for _, e := range g.f.board.Page(start, limit, rankcache.Descending).Entries {
		if !theirs[e.Member] && len(doubted) < askMost {
			doubted[e.Member] = true
		}
	}
}

// confirm asks for the doubted members, those written to last and random others.
func (g *gate) confirm(ctx context.Context, l *look, doubted map[string]bool) {
	ask := g.f.recentMembers()
	for m := range doubted {
		ask = append(ask, m)
	}
	heard := g.hear(ctx, l, func() (*testimony, error) { return g.askForMembers(ctx, ask, auditRandom) })
	if heard == nil {
		return
	}
	named := make(map[string]bool) // one may come twice
	for _, d := range g.judge(heard) {
		switch {
		case d.kind == kindMembers:
			l.note(d)
		case !named[d.member]:
			named[d.member] = true
			l.members = append(l.members, d)
		}
	}
}

// hear asks Redis and waits until the board has all that Redis then had. It
// returns nil if that came to nothing.
func (g *gate) hear(ctx context.Context, l *look, ask func() (*testimony, error)) *testimony {
	before := g.f.progress()
	heard, err := ask()
	switch {
	case err != nil:
		l.unknown = err.Error()
	case heard.Seq == 0:
		l.unknown = "Redis has no total of the board"
		g.f.report(g.epoch, gone("total"), g.boards)
	case before.Highest > heard.Seq:
		l.unknown = "Redis has lost writes"
		g.f.report(g.epoch, aheadOf(heard.Seq, before.Highest), g.boards)
	default:
		v, _ := g.await(ctx, heard.Seq, actCompare)
		l.unknown = v.unknown + v.differs // a hole is the watch's business
	}
	if l.unknown == "" && !g.f.show(heard.At) {
		l.unknown = "closed"
	}
	if l.unknown != "" {
		return nil
	}
	l.seen += len(heard.claims)
	return heard
}
