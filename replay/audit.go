package replay

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"rankcache"
)

const (
	// auditTop and auditRows are how many rows one audit compares of the top and
	// of the rest, which it walks through from audit to audit: 210,000 members in
	// an hour and a quarter at the default pace. auditRandom members of Redis's
	// come on top, for those that change places so that the walk misses them.
	auditTop    = 50
	auditRows   = 256
	auditRandom = 16
	// maxCompares is how often an audit compares again after a difference, and
	// maxRepairs how many members it repairs before the whole board is loaded.
	maxCompares = 3
	maxRepairs  = 16
	// maxQueried bounds the members that one request names.
	maxQueried = 512
)

// auditor compares an open board with Redis again and again, repairs single members
// and reports what it can't repair. It belongs to the board's gate.
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

// start begins to audit a board that was opened in an epoch. The first time is
// random, so that boards that were opened together are not audited together.
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
	if a.compare.total == TotalSeq {
		a.audit(ctx)
	} else {
		a.auditWithoutSeqs(ctx)
	}
	a.due = time.Now().Add(jitter(a.every))
}

// audit compares the board with Redis and heals it. A few members are repaired one
// by one. If that is not enough, or if rank or size show that a member is wrong that
// was not compared, the board is closed and loaded again.
func (a *auditor) audit(ctx context.Context) {
	repaired := 0
	for n := 1; ; n++ {
		res := a.compareOnce(ctx)
		a.count(&res)
		switch {
		case res.unknown != "" || !a.replica.readable.Load():
			return
		case len(res.all()) == 0:
			a.cursor = res.next
			return
		}
		a.stats.differences(res.all(), a.log)
		if repaired += len(res.members); repaired > maxRepairs || n == maxCompares || len(res.members) == 0 && n > 1 {
			a.replica.report(a.epoch, res.fault())
			return
		}
		a.replica.repair(a.epoch, res.members)
	}
}

// auditResult is what one comparison has found.
type auditResult struct {
	unknown string       // why it could not be made
	members []difference // each of one member, observed twice
	shifts  []difference // of rank and size
	seen    int          // members compared
	next    int          // the rank from which to go on
}

func (res *auditResult) all() []difference { return append(slices.Clip(res.members), res.shifts...) }

func (res *auditResult) fault() fault {
	all := res.all()
	return fault{kind: all[0].kind, reason: fmt.Sprintf("%d differences from Redis, such as: %s", len(all), &all[0]), counted: true}
}

// addShift adds one difference of a kind: one wrong member shifts the ranks of many.
func (res *auditResult) addShift(d difference) {
	same := func(other difference) bool { return other.kind == d.kind }
	if !slices.ContainsFunc(res.shifts, same) {
		res.shifts = append(res.shifts, d)
	}
}

func (a *auditor) count(res *auditResult) {
	a.stats.comparison(res.seen, len(res.all()) > 0, res.unknown != "", time.Now())
}

// compareOnce compares the top, the next stretch of rows and some random members. A
// member that differs, or that is among the board's own rows of the stretch and not
// among Redis's, is suspected and fetched again: only the second observation counts,
// and is what the member is repaired with.
func (a *auditor) compareOnce(ctx context.Context) (res auditResult) {
	suspected := make(map[string]bool)
	first := auditTop
	if a.cursor == 0 {
		first = auditRows
	}
	if a.compareRows(ctx, &res, 0, first, suspected) &&
		(a.cursor == 0 || a.compareRows(ctx, &res, a.cursor, auditRows, suspected)) {
		a.confirm(ctx, &res, suspected)
	}
	return res
}

// compareRows compares a stretch of rows. It returns false if that can't be done.
func (a *auditor) compareRows(ctx context.Context, res *auditResult, start, limit int, suspected map[string]bool) bool {
	observed := a.observe(ctx, res, func() (*observation, error) { return a.compare.fetchRows(ctx, start, limit) })
	if observed == nil {
		return false
	}
	for _, d := range a.compare.differences(observed) {
		if d.kind == kindRank || d.kind == kindMembers {
			res.addShift(d)
		} else {
			suspected[d.member] = true
		}
	}
	a.suspectOwn(observed, start, limit, suspected)
	if res.next = start + limit; res.next >= observed.Members {
		res.next = 0
	}
	return true
}

// suspectOwn suspects the members that are in a stretch of the board and not in
// Redis's.
func (a *auditor) suspectOwn(observed *observation, start, limit int, suspected map[string]bool) {
	theirs := make(map[string]bool, len(observed.claims))
	for i := range observed.claims {
		theirs[observed.claims[i].member] = true
	}
	for _, e := range a.replica.board.Page(start, limit, rankcache.Descending).Entries {
		if !theirs[e.Member] && len(suspected) < maxQueried {
			suspected[e.Member] = true
		}
	}
}

// confirm fetches the suspected members, those written to last and random others.
func (a *auditor) confirm(ctx context.Context, res *auditResult, suspected map[string]bool) {
	members := a.replica.recentMembers()
	for m := range suspected {
		members = append(members, m)
	}
	observed := a.observe(ctx, res, func() (*observation, error) { return a.compare.fetchMembers(ctx, members, auditRandom) })
	if observed == nil {
		return
	}
	named := make(map[string]bool) // one may come twice
	for _, d := range a.compare.differences(observed) {
		switch {
		case d.kind == kindMembers:
			res.addShift(d)
		case !named[d.member]:
			named[d.member] = true
			res.members = append(res.members, d)
		}
	}
}

// observe fetches from Redis, waits until the board has all that Redis had, and
// publishes it. If they can't be compared, it returns nil and sets res.unknown.
func (a *auditor) observe(ctx context.Context, res *auditResult, fetch func() (*observation, error)) *observation {
	before := a.replica.progress()
	observed, err := fetch()
	switch {
	case err != nil:
		res.unknown = err.Error()
	case observed.Seq == 0:
		res.unknown = "Redis has no total of the board"
		a.replica.report(a.epoch, faultGone("total"))
	case before.Highest > observed.Seq:
		res.unknown = "Redis has lost writes"
		a.replica.report(a.epoch, faultAhead(observed.Seq, before.Highest))
	default:
		v, _ := a.compare.await(ctx, observed.Seq, toAudit)
		res.unknown = v.unknown + v.differs // holes are reported by lagWatch
	}
	if res.unknown == "" && !a.replica.publishCurrent(observed.At) {
		res.unknown = "closed"
	}
	if res.unknown != "" {
		return nil
	}
	res.seen += len(observed.claims)
	return observed
}

// suspect is a member of a board without seqs that differs from Redis. There is no
// telling whether an update is on its way, so the difference counts when it has
// stayed the same for as long as an update may take.
type suspect struct {
	kind  string
	claim claim
	score float64 // on the board
	since time.Time
}

// auditWithoutSeqs compares a board whose updates carry no seq.
func (a *auditor) auditWithoutSeqs(ctx context.Context) {
	var res auditResult
	members := a.nextMembers()
	observed, err := a.compare.fetchMembers(ctx, members[:min(len(members), maxQueried)], auditRows)
	if err != nil {
		res.unknown = err.Error()
	} else {
		res.seen, res.members = len(observed.claims), a.confirmSuspects(observed, time.Now())
	}
	a.count(&res)
	if len(res.members) > 0 {
		a.stats.differences(res.members, a.log)
		a.replica.report(a.epoch, res.fault())
	}
}

// nextMembers returns the members written to last, the suspects, and the next
// stretch of the walk.
func (a *auditor) nextMembers() []string {
	members := a.replica.recentMembers()
	for m := range a.suspects {
		members = append(members, m)
	}
	for _, e := range a.replica.board.Page(a.cursor, auditRows, 0).Entries {
		members = append(members, e.Member)
	}
	a.cursor += auditRows
	if a.cursor >= a.replica.board.Progress().Members {
		a.cursor = 0
	}
	return members
}

// confirmSuspects takes an observation, renews the suspects and returns those that
// have become certain.
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
