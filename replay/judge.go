package replay

import (
	"context"
	"fmt"

	"rankcache"
)

// claim is what Redis says of one member.
type claim struct {
	member string
	score  float64
	there  bool // on the board
	rank   int  // from 1, best first; 0: not told
}

// testimony is what Redis said at one instant.
type testimony struct {
	rankcache.Stamp
	claims []claim
}

func (t *testimony) members() []string {
	all := make([]string, len(t.claims))
	for i := range t.claims {
		all[i] = t.claims[i].member
	}
	return all
}

// difference is a claim that the board contradicts, or a contradiction that is
// about no member.
type difference struct {
	kind string
	claim
	seq uint64 // of the testimony
	why string
}

func (d *difference) String() string {
	if d.why != "" {
		return d.why
	}
	return fmt.Sprintf("member %q differs from Redis (%s)", d.member, d.kind)
}

// askForMembers asks Redis for the members and for random others.
func (g *gate) askForMembers(ctx context.Context, members []string, random int) (*testimony, error) {
	s, err := g.origin.Sample(ctx, g.f.id, members, random)
	t := &testimony{Stamp: s.Stamp}
	if err != nil {
		return t, err
	}
	for _, m := range members {
		score, there := s.Given[m]
		t.claims = append(t.claims, claim{member: m, score: score, there: there})
	}
	for _, e := range s.Random {
		t.claims = append(t.claims, claim{member: e.Member, score: e.Score, there: true})
	}
	return t, nil
}

// askForRows asks Redis for limit rows from start on.
func (g *gate) askForRows(ctx context.Context, start, limit int) (*testimony, error) {
	p, err := g.origin.Page(ctx, g.f.id, start, limit, rankcache.Descending)
	t := &testimony{Stamp: p.Stamp}
	for i, e := range p.Entries {
		t.claims = append(t.claims, claim{e.Member, e.Score, true, start + i + 1})
	}
	return t, err
}

// judge returns how the board differs from what Redis said. The board has every
// update up to the testimony's seq and may have later ones, so that nothing is
// taken for a difference that live writes explain:
//
//   - A member whose own seq is beyond the testimony's has changed since. Any
//     other has had its last update at or before it, and the board has that:
//     presence and score must be equal.
//   - Each update beyond has added or removed one member at most, so that the
//     numbers of members differ by no more than there are such updates.
//   - Each update beyond has moved one member, which shifts another one's rank by
//     one place at most.
//
// The places are read first and the progress last, so that every update that
// could have played a part in the others is counted in it.
func (g *gate) judge(t *testimony) (wrong []difference) {
	places, shown := g.f.board.Standings(nil, t.members(), rankcache.Descending)
	var ranks []int // of the claims whose score is right
	for i := range t.claims {
		switch kind, known := g.compare(&t.claims[i], t.Seq); {
		case kind != "":
			wrong = append(wrong, difference{kind: kind, claim: t.claims[i], seq: t.Seq})
		case known && t.claims[i].rank > 0 && places[i].Rank > 0:
			ranks = append(ranks, i)
		}
	}
	p := g.f.board.Progress()
	window := int(max(p.Highest, p.OrderIDs, t.Seq) - t.Seq)
	if abs(p.Members-t.Members) > window {
		wrong = append(wrong, difference{kind: kindMembers, seq: t.Seq, why: fmt.Sprintf("%d members here, %d in Redis", p.Members, t.Members)})
	}
	for _, i := range ranks {
		if c := &t.claims[i]; shown.Seq >= t.Seq && abs(places[i].Rank-c.rank) > window {
			wrong = append(wrong, difference{kind: kindRank, claim: *c, seq: t.Seq,
				why: fmt.Sprintf("member %q has rank %d here, %d in Redis", c.member, places[i].Rank, c.rank)})
		}
	}
	return wrong
}

// compare returns how a member differs from what Redis said of it at seq; known
// is whether that can be told.
func (g *gate) compare(c *claim, seq uint64) (kind string, known bool) {
	mine, memberSeq, here := g.f.board.Score(c.member)
	switch {
	case memberSeq > seq:
		return "", false // changed since
	case here && !c.there:
		return kindExtra, true
	case c.there && !here:
		return kindMissing, true
	case here && mine != c.score:
		return kindScore, true
	}
	return "", true
}

func abs(n int) int { return max(n, -n) }
