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

// compareWith compares the board with Redis before it is opened. Members that
// differ are asked for again with a second sample: without seqs, a member that was
// removed in the meantime looks like one that was never there.
func (g *gate) compareWith(ctx context.Context, act action) verdict {
	members, random := g.f.recentMembers(), sampleMembers
	if act == actSettle || g.f.savedNow() != nil {
		random = largeSample
	}
	for again := false; ; again = true {
		heard, v := g.sample(ctx, members, random, act)
		if v.differs == "" || again {
			return v
		}
		members = heard.members()
	}
}

func (g *gate) sample(ctx context.Context, members []string, random int, act action) (*testimony, verdict) {
	before := g.f.progress()
	heard, err := g.askForMembers(ctx, members, random)
	switch {
	case err != nil:
		return heard, verdict{unknown: "compare with Redis: " + err.Error()}
	case heard.Seq == 0 && g.cfg.Total != TotalNone:
		return heard, verdict{unknown: "Redis has lost the board's total"}
	case g.cfg.Total == TotalNone || newest(g.cfg.Total, before) <= heard.Seq:
	case g.cfg.Total == TotalOrders:
		return heard, verdict{differs: fmt.Sprintf("%d orders here, %d in Redis", before.Applied(), heard.Seq)}
	default: // what is beyond Redis's total can't be compared with it
		g.f.report(g.epoch, aheadOf(heard.Seq, before.Highest), g.boards)
		return heard, verdict{unknown: "Redis has lost writes or began anew"}
	}
	if v, ok := g.await(ctx, heard.Seq, act); !ok {
		return heard, v
	}
	if wrong := g.judge(heard); len(wrong) > 0 {
		return heard, verdict{differs: wrong[0].String()}
	}
	return heard, verdict{agrees: true, at: heard.At}
}

// await waits until the board has every update up to seq, or, if holes are
// expected, one at or beyond it. When the wait is over and a later one has come,
// there is a hole.
func (g *gate) await(ctx context.Context, seq uint64, act action) (v verdict, reached bool) {
	for end := time.Now().Add(sampleWait); ; pause(ctx, samplePause) {
		p := g.f.progress()
		switch {
		case p.Applied() >= seq || act == actSettle && p.Highest >= seq:
			return verdict{}, true
		case g.isOpen && !g.f.readable.Load():
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
