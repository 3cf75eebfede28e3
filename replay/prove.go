package replay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rankcache"
	"rankcache/wire"
)

// prover compares a board with one state of Redis, the target: updates beyond the
// target's seq wait, and once all up to it are there the board's sum is Redis's, or
// the board is wrong. It belongs to the board's gate and is made anew for each target.
type prover struct {
	replica *replica
	sources *sources
	target  reading
}

// aim reads the target. An update is in Redis before it is in the log, so a seq below
// the board's own state proves that Redis lost writes.
func aim(ctx context.Context, o Origin, f *feed, epoch int) (*prover, error) {
	run, highest := f.replica.hold()
	t, err := readOne(ctx, o, f.id, &f.sources)
	if err != nil {
		return nil, err
	}
	if late := f.replica.late(t.State); late != nil {
		return nil, late
	}
	switch {
	case t.Run == 0:
		f.replica.report(epoch, faultGone("run"))
		return nil, errors.New("it has no run of the board")
	case t.Run == run && t.Seq < highest:
		f.replica.report(epoch, faultAhead(t.Seq, highest))
		return nil, fmt.Errorf("it is at update %d, the board at %d", t.Seq, highest)
	case !f.replica.learn(t, epoch):
		return nil, errEpochPassed
	case !t.HasSum: // to differ from it would prove nothing
		return nil, errors.New("it has no checksum of the board")
	}
	f.replica.holdBeyond(t.Seq)
	return &prover{replica: f.replica, sources: &f.sources, target: t}, nil
}

// readOne reads the state of one board from Redis.
func readOne(ctx context.Context, o Origin, id rankcache.BoardID, s *sources) (reading, error) {
	at, current := time.Now(), s.current()
	stamps, err := o.Stamps(ctx, []rankcache.BoardID{id})
	if err != nil {
		return reading{}, err
	}
	return readingOf(&stamps[0], at, current), nil
}

// outcome of a prover's step.
type proofResult uint8

const (
	proofWaits   proofResult = iota // updates up to the target may still come
	proofEqual                      // the board is as Redis was at the target
	proofDiffers                    // it is not, and no update will change that
	proofVoid                       // the target can't be compared any more
)

// step compares the board with the target.
func (p *prover) step() proofResult {
	have := p.replica.board.Progress()
	switch {
	case have.Highest > p.target.Seq:
		return proofVoid
	case p.replica.board.Sum() == p.target.Sum:
		return proofEqual
	case have.Contiguous >= p.target.Seq, p.sources.exhausted(p.target.requested, holeGrace):
		return proofDiffers
	}
	return proofWaits
}

// renew reads a target again that is old by now: Redis may have lost it while the board
// waited for updates.
func (p *prover) renew(ctx context.Context, o Origin, epoch int) error {
	if time.Since(p.target.requested) < confirmFor {
		return nil
	}
	t, err := readOne(ctx, o, p.replica.id, p.sources)
	if err != nil {
		return err
	}
	if p.sources.isReplica() && t.Before(p.target.State) {
		return &lateError{t.State, p.target.Run, p.target.Seq}
	}
	why := disproof(t.State, p.target.State)
	switch {
	case why == nil && t.Seq != p.target.Seq: // later: compared once the board has it
		return nil
	case why == nil && t.SameSum(p.target.State):
		p.target = t
		return nil
	case why == nil:
		why = new(faultSum(t.State, p.target.Sum))
	}
	p.replica.report(epoch, *why)
	return errors.New(why.reason)
}

// difference returns the board's sum minus Redis's. If two loads of a board in a row
// give the same, it is Redis's own sum that is wrong.
func (p *prover) difference() uint64 {
	return (p.replica.board.Sum() - p.target.Sum) & wire.SumMask
}
