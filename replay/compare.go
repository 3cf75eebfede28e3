package replay

import (
	"context"
	"fmt"
	"time"

	"rankcache"
	"rankcache/internal/tick"
)

const (
	// smallSample is how many random members are compared before a board opens, and
	// largeSample how many where not all came from the log.
	smallSample = 64
	largeSample = 512
	// maxWait is how long a board may take to reach the total of an observation,
	// and waitPause the time between two looks.
	maxWait   = 2 * time.Second
	waitPause = 5 * time.Millisecond
)

// comparer compares one board with Redis. It belongs to the board's gate.
type comparer struct {
	replica *replica
	origin  Origin
	total   TotalSource
}

// observation is the state of some members in Redis at one instant.
type observation struct {
	rankcache.Stamp
	claims []claim
}

func (o *observation) members() []string {
	all := make([]string, len(o.claims))
	for i := range o.claims {
		all[i] = o.claims[i].member
	}
	return all
}

const (
	auditRows  = 256 // how many rows one look compares, of the walk through all of them
	maxQueried = 512 // bounds the members that one request names
)

// fetchMembers reads the members and random others from Redis.
func (c *comparer) fetchMembers(ctx context.Context, members []string, random int) (*observation, error) {
	s, err := c.origin.Sample(ctx, c.replica.id, members, random)
	o := &observation{Stamp: s.Stamp}
	if err != nil {
		return o, err
	}
	for _, m := range members {
		score, there := s.Given[m]
		o.claims = append(o.claims, claim{member: m, score: score, data: s.Data.Of(m), there: there})
	}
	for _, e := range s.Random {
		o.claims = append(o.claims, claim{member: e.Member, score: e.Score, data: s.Data.Of(e.Member), there: true})
	}
	return o, nil
}

// fetchRows reads limit rows from Redis, from start on.
func (c *comparer) fetchRows(ctx context.Context, start, limit int) (*observation, error) {
	a := rankcache.One(ctx, c.origin, rankcache.Query{Board: c.replica.id, Start: start, Limit: limit})
	o := &observation{Stamp: a.Stamp}
	for i, e := range a.Entries {
		o.claims = append(o.claims, claim{e.Member, e.Score, a.Data.Of(e.Member), true, start + i + 1})
	}
	return o, a.Err
}

// verdict is the outcome of a comparison. Without agreement and difference, it could not be made, for the reason given.
type verdict struct {
	agrees  bool
	at      time.Time // of the observation that agrees
	differs string
	unknown string
}

// beforeOpening compares the board with a sample of Redis. Members that differ are fetched again with a second sample:
// without seqs, a member that was removed in the meantime looks like one that was never there.
func (c *comparer) beforeOpening(ctx context.Context, epoch int) verdict {
	members, random := c.replica.recentMembers(), smallSample
	if c.replica.file.entries.Load() != nil {
		random = largeSample
	}
	for again := false; ; again = true {
		observed, v := c.sample(ctx, epoch, members, random, toOpen)
		if v.differs == "" || again {
			return v
		}
		members = observed.members()
	}
}

func (c *comparer) sample(ctx context.Context, epoch int, members []string, random int, what need) (*observation, verdict) {
	before := c.replica.progress()
	observed, err := c.fetchMembers(ctx, members, random)
	switch {
	case err != nil:
		return observed, verdict{unknown: "compare with Redis: " + err.Error()}
	case observed.Seq == 0 && observed.Run == 0 && c.total != TotalNone:
		return observed, verdict{unknown: "Redis has lost the board's total"}
	case c.total == TotalNone || newest(c.total, before) <= observed.Seq:
	case c.replica.sources.isReplica():
		return observed, verdict{unknown: fmt.Sprintf("the replica of Redis is at update %d, the board at %d: it is waited for", observed.Seq, before.Highest)}
	case c.total == TotalOrders:
		return observed, verdict{differs: fmt.Sprintf("%d orders here, %d in Redis", before.Applied(), observed.Seq)}
	default: // updates beyond Redis's total can't be compared with it
		c.replica.report(epoch, faultAhead(observed.Seq, before.Highest))
		return observed, verdict{unknown: "Redis has lost writes or was reset"}
	}
	if v, ok := c.await(ctx, observed.Seq, what); !ok {
		return observed, v
	}
	if wrong := c.differences(observed); len(wrong) > 0 {
		return observed, verdict{differs: wrong[0].String()}
	}
	return observed, verdict{agrees: true, at: observed.At}
}

// need is the condition that a board has to meet for a comparison.
type need uint8

const (
	toOpen  need = iota // every update up to the observation
	toAudit             // every update, and it must stay open
)

// await waits until the board has the updates of an observation at seq. If it still
// lacks them after maxWait and has a later one, there is a hole.
func (c *comparer) await(ctx context.Context, seq uint64, what need) (v verdict, reached bool) {
	for end := time.Now().Add(maxWait); ; tick.Sleep(ctx, waitPause) {
		p := c.replica.progress()
		switch {
		case p.Applied() >= seq:
			return verdict{}, true
		case what == toAudit && !c.replica.readable.Load():
			return verdict{unknown: "closed meanwhile"}, false
		case ctx.Err() != nil:
			return verdict{unknown: "stopping"}, false
		case time.Now().Before(end):
		case p.Highest >= seq:
			return verdict{differs: fmt.Sprintf("update %d does not come", p.Contiguous+1)}, false
		default:
			return verdict{unknown: fmt.Sprintf("the log is behind Redis: %d of %d", p.Applied(), seq)}, false
		}
	}
}

// observe fetches from Redis and waits until the board has all that Redis had. If they
// can't be compared the verdict has the reason.
func (c *comparer) observe(ctx context.Context, fetch func() (*observation, error)) (*observation, verdict) {
	observed, err := fetch()
	own := c.replica.board.State()
	switch {
	case err != nil:
		return &observation{}, verdict{unknown: err.Error()}
	case observed.Run != own.Run:
		return &observation{}, verdict{unknown: "Redis has another run of the board"} // the totals poller reports it
	}
	v, ok := c.await(ctx, observed.Seq, toAudit)
	if !ok {
		return &observation{}, verdict{unknown: v.unknown + v.differs}
	}
	return observed, verdict{}
}

// confirm fetches members that differ once more, and returns those that still do.
func (c *comparer) confirm(ctx context.Context, wrong []difference) ([]difference, verdict) {
	var members []string
	for i := range wrong {
		if wrong[i].member != "" && len(members) < maxQueried {
			members = append(members, wrong[i].member)
		}
	}
	observed, v := c.observe(ctx, func() (*observation, error) { return c.fetchMembers(ctx, members, 0) })
	if v.unknown != "" {
		return nil, v
	}
	return c.differences(observed), v
}

// differences returns how the board differs from an observation. The board has every update up to the observation's seq
// and may have later ones, so that nothing is taken for a difference that live writes explain:
//
//   - A member whose own seq is beyond the observation's has changed since. Any
//     other has had its last update at or before it, and the board has that:
//     presence and score must be equal.
//   - Each update beyond has added or removed one member at most, so that the
//     numbers of members differ by no more than there are such updates.
//   - Each update beyond has moved one member, which shifts another one's rank by
//     one place at most.
//
// Ranks are read first and the progress last, so that every update that could have
// played a part in the others is counted in it.
func (c *comparer) differences(o *observation) (wrong []difference) {
	published := rankcache.One(context.Background(), c.replica.board, rankcache.Query{Members: o.members()})
	var ranks []int // of the claims whose score is right
	for i := range o.claims {
		switch kind, known := c.differs(&o.claims[i], o.Seq); {
		case kind != "":
			wrong = append(wrong, difference{kind: kind, claim: o.claims[i], seq: o.Seq})
		case known && o.claims[i].rank > 0 && published.Err == nil && published.Own[i].Rank > 0:
			ranks = append(ranks, i)
		}
	}
	p := c.replica.board.Progress()
	window := int(max(p.Highest, p.OrderIDs, o.Seq) - o.Seq)
	if abs(p.Members-o.Members) > window {
		wrong = append(wrong, difference{kind: kindMembers, seq: o.Seq, why: fmt.Sprintf("%d members here, %d in Redis", p.Members, o.Members)})
	}
	for _, i := range ranks {
		if claim, rank := &o.claims[i], published.Own[i].Rank; published.Seq >= o.Seq && abs(rank-claim.rank) > window {
			wrong = append(wrong, difference{kind: kindRank, claim: *claim, seq: o.Seq,
				why: fmt.Sprintf("member %q has rank %d here, %d in Redis", claim.member, rank, claim.rank)})
		}
	}
	return wrong
}

// differs returns how a member differs from a claim that was observed at seq. known
// is false if it can't be compared, because it has changed since.
func (c *comparer) differs(claimed *claim, seq uint64) (kind string, known bool) {
	score, memberSeq, here := c.replica.board.Score(claimed.member)
	switch {
	case memberSeq > seq:
		return "", false // changed since
	case here && !claimed.there:
		return kindExtra, true
	case claimed.there && !here:
		return kindMissing, true
	case here && score != claimed.score:
		return kindScore, true
	}
	if data, memberSeq := c.replica.board.Data(claimed.member); here && memberSeq <= seq && data != claimed.data {
		return kindData, true
	}
	return "", true
}

func abs(n int) int { return max(n, -n) }
