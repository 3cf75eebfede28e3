package replay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rankcache"
	"rankcache/wire"
)

// holeGrace is how long updates missing at the log's end are waited for: a writer may be about to produce them.
const holeGrace = 2 * time.Second

// confirmFor is how long a board may take to reach a seq of Redis at which both can be compared.
const confirmFor = time.Second

// prover compares a board with one state of Redis, the target: updates beyond it wait, and once all up to it are there
// the sums are equal or the board is wrong. It is the board's gate's, made anew for each target.
type prover struct {
	replica *replica
	sources *sources
	target  reading
}

// aim reads the target. Redis is before the log, so a seq below the board's own proves that it lost writes.
func aim(ctx context.Context, ask *asker, f *feed, epoch int) (*prover, error) {
	run, highest := f.replica.hold()
	t, err := ask.read(ctx, f.id, &f.sources)
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

// renew reads a target again that is old by now: Redis may have lost it while the board waited for updates.
func (p *prover) renew(ctx context.Context, ask *asker, epoch int) error {
	if time.Since(p.target.requested) < confirmFor {
		return nil
	}
	t, err := ask.read(ctx, p.replica.id, p.sources)
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

// difference returns the board's sum minus Redis's. The same after two loads: Redis's own sum is wrong.
func (p *prover) difference() uint64 {
	return (p.replica.board.Sum() - p.target.Sum) & wire.SumMask
}

// asker reads states of Redis for the gates. Those that ask while it waits are asked for together.
type asker struct {
	origin    Origin
	questions chan question
}

type question struct {
	board   rankcache.BoardID
	sources *sources
	answer  chan<- answer // has room for it
}

type answer struct {
	reading
	err error
}

const askedAtOnce = 100 // how many boards are asked for in a round trip

func newAsker(o Origin) *asker { return &asker{o, make(chan question)} }

// read returns the state that a board has in Redis.
func (a *asker) read(ctx context.Context, board rankcache.BoardID, s *sources) (reading, error) {
	back := make(chan answer, 1)
	select {
	case a.questions <- question{board, s, back}:
	case <-ctx.Done():
		return reading{}, ctx.Err()
	}
	select {
	case got := <-back:
		return got.reading, got.err
	case <-ctx.Done():
		return reading{}, ctx.Err()
	}
}

func (a *asker) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case first := <-a.questions:
			a.ask(ctx, a.gather(first))
		}
	}
}

func (a *asker) gather(first question) []question {
	all := []question{first}
	for len(all) < askedAtOnce {
		select {
		case q := <-a.questions:
			all = append(all, q)
		default:
			return all
		}
	}
	return all
}

func (a *asker) ask(ctx context.Context, all []question) {
	ids, answers := make([]rankcache.BoardID, len(all)), make([]answer, len(all))
	at := time.Now()
	for i, q := range all {
		ids[i], answers[i].current = q.board, q.sources.current()
	}
	stamps, err := a.origin.Stamps(ctx, ids)
	for i, q := range all {
		if answers[i].err = err; i < len(stamps) && (err == nil || !stamps[i].At.IsZero()) {
			answers[i] = answer{readingOf(&stamps[i], at, answers[i].current), nil}
		}
		q.answer <- answers[i]
	}
}
