package replay

import (
	"context"
	"fmt"
	"time"
)

const (
	// sampleMembers is how many random members are compared before a board
	// opens, and largeSample how many where updates are known to be missing, or
	// where not all came from the log.
	sampleMembers = 64
	largeSample   = 512
	// sampleWait is how long a board may take to reach the total of a sample,
	// and samplePause the time between two looks.
	sampleWait  = 2 * time.Second
	samplePause = 5 * time.Millisecond
)

// verdict is the outcome of a comparison. Without agreement and difference, it
// could not be made, for the reason given.
type verdict struct {
	agrees  bool
	at      time.Time // of the sample that agrees
	differs string
	unknown string
}

// compareWith compares the board with Redis. Members that differ are asked for
// again with a second sample: a member that was removed and forgotten in the
// meantime looks like one that was never there.
func (g *gate) compareWith(ctx context.Context, act action) verdict {
	members, random := g.f.recentMembers(), sampleMembers
	if act == actSettle || g.f.savedNow() != nil {
		random = largeSample
	}
	for again := false; ; again = true {
		s, v := g.sample(ctx, members, random, act)
		if v.differs == "" || again {
			return v
		}
		for _, e := range s.Random {
			members = append(members, e.Member)
		}
	}
}

func (g *gate) sample(ctx context.Context, members []string, random int, act action) (Sample, verdict) {
	s, err := g.origin.Sample(ctx, g.f.id, members, random)
	switch {
	case err != nil:
		return s, verdict{unknown: "compare with Redis: " + err.Error()}
	case s.Seq == 0 && g.cfg.Total != TotalNone:
		return s, verdict{unknown: "Redis has lost the board's total"}
	}
	if v, ok := g.await(ctx, s.Seq, act); !ok {
		return s, v
	}
	differs := g.difference(&s, members)
	return s, verdict{agrees: differs == "", at: s.At, differs: differs}
}

// await waits until the board has every update up to seq, or, if holes are
// expected, one at or beyond it. When the wait is over and a later one has come,
// there is a hole.
func (g *gate) await(ctx context.Context, seq uint64, act action) (v verdict, reached bool) {
	for end := time.Now().Add(sampleWait); ; pause(ctx, samplePause) {
		p := g.f.board.Progress()
		switch {
		case p.Total() >= seq || act == actSettle && p.Highest >= seq:
			return verdict{}, true
		case ctx.Err() != nil:
			return verdict{unknown: "stopping"}, false
		case time.Now().Before(end):
		case p.Highest >= seq:
			return verdict{differs: fmt.Sprintf("update %d does not come", p.Contiguous+1)}, false
		default:
			return verdict{unknown: fmt.Sprintf("the log is behind Redis: %d of %d", p.Total(), seq)}, false
		}
	}
}

// difference returns how the board differs from the sample, or "". The sample is
// of one instant, at the total s.Seq; the board has all up to that and may be
// ahead. Each update beyond has changed the number of members by one at most,
// and a member's score only if it is the member's.
func (g *gate) difference(s *Sample, members []string) string {
	p := g.f.board.Progress()
	ahead := max(p.Highest, p.Orders, s.Seq) - s.Seq
	if off := max(p.Members-s.Members, s.Members-p.Members); uint64(off) > ahead {
		return fmt.Sprintf("%d members here, %d in Redis", p.Members, s.Members)
	}
	for _, m := range members {
		if score, ok := s.Given[m]; g.memberDiffers(m, score, ok, s.Seq) {
			return fmt.Sprintf("member %q differs from Redis", m)
		}
	}
	for _, e := range s.Random {
		if g.memberDiffers(e.Member, e.Score, true, s.Seq) {
			return fmt.Sprintf("member %q differs from Redis", e.Member)
		}
	}
	return ""
}

func (g *gate) memberDiffers(member string, score float64, there bool, seq uint64) bool {
	mine, memberSeq, here := g.f.board.Score(member)
	if memberSeq > seq {
		return false // changed since: can't be told
	}
	return here != there || here && mine != score
}
