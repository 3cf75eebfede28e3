package replay

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"rankcache"
	"rankcache/internal/tick"
)

// auditor compares an open board without seqs with Redis again and again. It belongs to the board's gate.
type auditor struct {
	compare *comparer
	replica *replica
	sources *sources
	stats   *auditStats
	every   time.Duration
	log     *slog.Logger

	epoch    int                // of the opening
	due      time.Time          // of the next audit
	cursor   int                // the rank from which the walk goes on; kept over epochs
	suspects map[string]suspect // of a board without seqs, by member
}

func newAuditor(f *feed, c *comparer, every time.Duration, log *slog.Logger) *auditor {
	return &auditor{compare: c, replica: f.replica, sources: &f.sources, stats: f.audit, every: every, log: log}
}

// start begins to audit a board opened in an epoch, at a random time: many are opened together.
func (a *auditor) start(epoch int, now time.Time) {
	a.epoch, a.suspects = epoch, nil
	a.due = now.Add(time.Duration(rand.Float64() * float64(a.every)))
}

func (a *auditor) enabled() bool { return a.every > 0 }

// run compares the board if that is due.
func (a *auditor) run(ctx context.Context, now time.Time) {
	if !a.enabled() || now.Before(a.due) {
		return
	}
	a.audit(ctx)
	a.due = time.Now().Add(tick.Jitter(a.every))
}

// suspect is a member of a board without seqs that differs: it counts once it stays for as long as an update takes.
type suspect struct {
	kind  string
	claim claim
	score float64 // on the board
	since time.Time
}

func (a *auditor) audit(ctx context.Context) {
	members := a.nextMembers()
	observed, err := a.compare.fetchMembers(ctx, members[:min(len(members), maxQueried)], auditRows)
	var wrong []difference
	if err == nil {
		wrong = a.confirmSuspects(observed, time.Now())
	}
	a.stats.comparison(len(observed.claims), len(wrong) > 0, err != nil, time.Now())
	if len(wrong) > 0 {
		a.stats.differences(wrong, a.log)
		a.replica.report(a.epoch, faultDifferences(wrong))
	}
}

// nextMembers returns the members written to last, the suspects, and the next stretch of the walk.
func (a *auditor) nextMembers() []string {
	members := a.replica.recentMembers()
	for m := range a.suspects {
		members = append(members, m)
	}
	// From the worst: of a board whose first rows are asked for, tops have as many.
	next := rankcache.One(context.Background(), a.replica.board, rankcache.Query{Order: rankcache.Ascending, Start: a.cursor, Limit: auditRows})
	for _, e := range next.Entries {
		members = append(members, e.Member)
	}
	a.cursor += auditRows
	if a.cursor >= a.replica.board.Progress().Members {
		a.cursor = 0
	}
	return members
}

// confirmSuspects takes an observation, renews the suspects and returns those that have become certain.
func (a *auditor) confirmSuspects(observed *observation, now time.Time) (certain []difference) {
	next := make(map[string]suspect)
	for _, c := range observed.claims {
		kind, _ := a.compare.differs(&c, 0)
		if kind == "" {
			continue
		}
		score, _, _ := a.replica.board.Score(c.member)
		s := suspect{kind, c, score, now}
		if old, ok := a.suspects[c.member]; ok && old.kind == kind && old.claim == c && old.score == score {
			s.since = old.since
		}
		next[c.member] = s
		if now.Sub(s.since) >= maxLag && (a.replica.awaited.Load() == nil || a.sources.drained(s.since)) {
			certain = append(certain, difference{kind: kind, claim: c,
				why: fmt.Sprintf("member %q differs from Redis (%s), and no update comes", c.member, kind)})
		}
	}
	a.suspects = next
	return certain
}
