package writer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rankcache"
	"rankcache/class"
	"rankcache/rooms"
	"rankcache/wire"
)

// A board of a rolling class is the sum of several boards of another class. What changes one of these changes the
// rolling boards of its period and of the next one, too. What ended periods give is sent by the controller as
// primes, one for each member.

// rolled appends to what jobs feed the jobs of the rolling boards that they and what they feed have changed, and
// returns those jobs.
func (p *processor) rolled(jobs []*job, fed fedJobs) (with fedJobs, added []*job) {
	for i, j := range jobs {
		into := p.rolledBy(j)
		for _, changed := range fed.of(i) {
			into = append(into, p.rolledBy(changed)...)
		}
		if len(into) == 0 {
			continue
		}
		if fed == nil {
			fed = make(fedJobs, len(jobs))
		}
		fed[i], added = append(fed[i], into...), append(added, into...)
	}
	return fed, added
}

// rolledBy returns the jobs of the rolling boards that an increment of j's board changes, if that has taken it. They
// have its order id and time.
func (p *processor) rolledBy(j *job) (jobs []*job) {
	if !j.done || j.Refusal != nil || j.Op.Own() {
		return nil
	}
	for _, to := range rollingBoards(p.opts.Tiers.File(), j.Board, j.rules.kind) {
		c := &Command{Board: to.ID, Class: to.kind.Name(), Dims: to.Dims, Member: j.Member, Op: wire.OpIncr, Number: j.Number, Form: to.kind.Form, OrderID: j.OrderID, At: j.Update.At}
		rolled := &job{Command: c, round: j.round, rules: rulesOf(to.Board, to.kind)}
		if p.opts.Tiers.Mode(c.Board, "") == rooms.ModeBlocked {
			rolled.Refusal, rolled.done = errBlocked, true
		}
		if err := p.opts.Names.CheckBoard(c.Board); err != nil {
			rolled.Refusal, rolled.done = asRefusal(noBoard(err)), true
		}
		jobs = append(jobs, rolled)
	}
	return jobs
}

// rollingBoard is a board of a rolling class.
type rollingBoard struct {
	class.Board
	kind *rooms.Class
}

// rollingBoards returns the rolling boards that increments of a board change. One whose period has no tag is left out.
func rollingBoards(file *rooms.File, b rankcache.BoardID, kind *rooms.Class) (all []rollingBoard) {
	if kind != nil && kind.Class != nil { // as it is by now
		kind = file.Class(kind.Name())
	}
	if kind == nil || len(kind.RolledBy) == 0 {
		return nil
	}
	board, ok := kind.Parse(b)
	for _, name := range kind.RolledBy {
		rolling := file.Class(name)
		if !ok || rolling == nil || rolling.Rolling.Of != kind.Name() {
			continue
		}
		into, _ := rolling.RolledInto(board)
		for _, to := range into {
			all = append(all, rollingBoard{to, rolling})
		}
	}
	return all
}

// prepareRolling makes the rolling boards that a board changes before itself, so that each of them has all of its
// changes.
func (a *adopter) prepareRolling(ctx context.Context, b rankcache.BoardID, r *rules) error {
	for _, to := range rollingBoards(a.tiers.File(), b, r.kind) {
		for range 2 { // the first may learn the number of buckets
			if err := a.prepare(ctx, to.ID, rulesOf(to.Board, to.kind), ""); err != nil && asRefusal(err) == nil {
				return err
			}
		}
	}
	return nil
}

// whole is what the hashes of a rolling board's primes have in their field ” if the board was made before the first
// change of each board whose changes it gets as they come. One that was made later, as its class is newer, or as
// somebody has deleted it, lacks some for ever.
const whole = wire.Whole

// wholeness returns that, or nothing. The board is to be made.
func (a *adopter) wholeness(ctx context.Context, b rankcache.BoardID, kind *rooms.Class) (string, error) {
	of := a.tiers.File().Class(kind.Rolling.Of)
	board, ok := kind.Parse(b)
	if of == nil || !ok {
		return "", nil
	}
	before, err := board.Previous()
	if err != nil {
		return "", nil
	}
	for _, p := range []class.Period{before.Period, board.Period} {
		source, err := of.In(board.Dims, p)
		if err != nil {
			return "", nil
		}
		meta, err := a.meta(ctx, source.ID)
		if err != nil && !errors.Is(err, wire.ErrMeta) {
			return "", err
		}
		if err != nil || meta.Seq > 0 {
			return "", nil
		}
	}
	return whole, nil
}

// primeKeys are the hashes of the primes that a rolling board has: a third set of orders, which is not turned.
func (a *adopter) primeKeys(b rankcache.BoardID) (keys []string) {
	for bucket := range a.buckets.of(b) {
		keys = append(keys, a.names.OrdersKey(b, wire.PrimeSet, bucket))
	}
	return keys
}

// resolvePrime returns the rules of a prime for a board, and a refusal if it has come after the board's period. No
// prime is early: it comes in the period before.
func resolvePrime(c *Command, board class.Board, kind *rooms.Class, arrived time.Time) (rules, *Refusal, error) {
	switch {
	case kind == nil || !kind.Rolls():
		return rules{}, nil, &Refusal{"prime", fmt.Errorf("board %.100q is of no rolling class: check that all writers and controllers have the same classes", c.Board)}
	case c.Class != "" || c.Op != wire.OpIncr || !wire.IsPrimeOrder(c.OrderID, board.Period.Tag, c.Member):
		return rules{}, nil, &Refusal{"prime", errors.New("want an incr of a board under the order id prime/<tag>/<digest>/<member>")}
	}
	late := outside(board.Period, kind.Grace, arrived)
	if late != nil && late.Reason != "late" {
		late = nil
	}
	c.Form = kind.Form
	r := rulesOf(board, kind)
	r.prime = true
	return r, late, nil
}

// errPosted refuses primes that are posted.
var errPosted = &Refusal{"prime", errors.New("primes are the controller's, in the command topic: leave prime out")}
