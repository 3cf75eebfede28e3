package replay

import (
	"context"
	"time"

	"rankcache"
)

// narrate logs how far the boards have come, once a second while they come on.
func (r *Runner) narrate(ctx context.Context) error {
	tick := time.NewTicker(logEvery)
	defer tick.Stop()
	var before uint64
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		sum := sumUp(r.Status())
		if sum.filling > 0 && sum.have != before {
			r.log.Info("boards are filled", "boards", sum.boards, "filling", sum.filling, "have", sum.have,
				"want", sum.want, "updates_per_s", int(sum.rate), "eta", sum.eta.Round(time.Second/10))
		}
		before = sum.have
	}
}

// sum is the status of several boards as one.
type sum struct {
	boards, filling int
	have, want      uint64 // of those being filled
	rate            float64
	eta             time.Duration
}

func sumUp(all []rankcache.BoardStatus) sum {
	s := sum{boards: len(all)}
	for _, b := range all {
		if b.State == rankcache.StateOpen {
			continue
		}
		s.filling++
		s.have += b.Have
		s.want += b.Want
		s.rate += b.Rate
		s.eta = max(s.eta, b.ETA)
	}
	return s
}
