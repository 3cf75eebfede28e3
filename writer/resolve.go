package writer

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"rankcache/class"
	"rankcache/rooms"
	"rankcache/wire"
)

// resolve finds the board of a command that names a class, and refuses what the class of its board does not allow,
// however the command names the board. It returns the class's rules, and a refusal beside the error if the command has
// arrived outside of the board's period: a repeat of one that was in time is answered all the same.
func resolve(c *Command, classes *rooms.File, arrived time.Time) (r rules, late *Refusal, err error) {
	if math.Abs(c.Number) > maxScore {
		return r, nil, refusals["score_range"]
	}
	if c.Data != nil && len(classes.Classes) == 0 {
		return r, nil, errNoData
	}
	if len(classes.Classes) == 0 && c.Class == "" && !c.Prime && len(c.By) == 0 {
		return r, nil, withoutClass(c)
	}
	board, kind, err := findBoard(c, classes)
	switch {
	case err != nil:
		return r, nil, err
	case len(c.By) > 0 && (kind == nil || c.Prime):
		return r, nil, &Refusal{"bad_by", errors.New("boards of no class, and primes, have no groups: leave by out")}
	case c.Data != nil && (kind == nil || !kind.Data):
		return r, nil, errNoData
	case c.Prime:
		return resolvePrime(c, board, kind, arrived)
	case c.Op.Own():
		return resolveOwn(c, board, kind)
	case kind == nil:
		return r, nil, withoutClass(c)
	case kind.Rolls():
		return r, nil, &Refusal{"op_not_allowed", fmt.Errorf("boards of class %s are sums of those of class %s: change these", kind.Name(), kind.Rolling.Of)}
	}
	c.Form, c.HasData = kind.Form, kind.Data
	if !slices.Contains(kind.Ops, c.Op) {
		return r, nil, &Refusal{"op_not_allowed", fmt.Errorf("class %s allows %v, not %s", kind.Name(), kind.Ops, c.Op)}
	}
	if err := classes.CheckGroups(kind, c.By); err != nil {
		return r, nil, &Refusal{"bad_by", err}
	}
	for _, k := range append(classes.Fed(kind), rooms.Fed{Class: kind}) {
		if refusal := checkNumber(c, k.Class); refusal != nil {
			return r, nil, refusal
		}
	}
	return rulesOf(board, kind), outside(board.Period, kind.Grace, arrived), nil
}

// errNoData refuses data where there can be none.
var errNoData = &Refusal{"bad_data", errors.New("members of the board have no data: it is of no class with data: true")}

// withoutClass returns the refusal of a command that boards of no class don't take.
func withoutClass(c *Command) error {
	if c.Op == wire.OpBest {
		return &Refusal{"op_not_allowed", errors.New("the board is of no class: best needs one with best among its ops")}
	}
	return nil
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

// resolveOwn returns the rules of a board, of a class or of none (nil), for a command to hide, restore or forget a
// member. It is never late or early: a closed board refuses it.
func resolveOwn(c *Command, board class.Board, kind *rooms.Class) (r rules, late *Refusal, err error) {
	if kind == nil {
		return r, nil, nil
	}
	if err := mayHide(kind); err != nil && c.Op.Moves() {
		return r, nil, err
	}
	c.Form, c.HasData = kind.Form, kind.Data
	return rulesOf(board, kind), nil, nil
}

// mayHide returns why nobody can be hidden on boards of a class, or nil.
func mayHide(kind *rooms.Class) error {
	if kind.Data {
		return &Refusal{"hide", fmt.Errorf("members of boards of class %s have data: nobody is hidden there", kind.Name())}
	}
	if kind.Trim > 0 {
		return &Refusal{"hide", fmt.Errorf("boards of class %s keep their best %d members only: nobody is hidden there", kind.Name(), kind.Trim)}
	}
	return nil
}

// rules are what a class sets for one board and its commands. The zero value is for boards without class.
type rules struct {
	kind                      *rooms.Class
	start, end, over, expires int64 // Unix milliseconds: of the period, its end, that of its grace, that of the board; 0: never
	// keep is for how long a board without a period is kept after its last change; 0: as boards without class.
	keep      time.Duration
	orderLife time.Duration
	ties      rooms.Ties
	trim      int
	best      bool // among the ops
	guard     rooms.Guard
	prime     bool // of a rolling board
	by        bool // commands may have groups
}

// keepAsItIs leaves the expiry of a board as it was at its birth, or as its last change has set it.
const keepAsItIs = -time.Millisecond

func rulesOf(b class.Board, kind *rooms.Class) rules {
	r := rules{kind: kind, keep: kind.Keep, orderLife: kind.Orders, ties: kind.Ties, trim: kind.Trim, best: slices.Contains(kind.Ops, wire.OpBest), guard: kind.Guard, by: len(kind.By) > 0}
	if end := b.Period.End; b.Period.Tag != "" {
		r.keep = keepAsItIs
		r.start, r.end, r.over, r.expires = b.Period.Start.UnixMilli(), end.UnixMilli(), end.Add(kind.Grace).UnixMilli(), end.Add(kind.Keep).UnixMilli()
	}
	return r
}

// commutes reports whether the sequence of changes by op does not matter, but for ties and guards.
func (r *rules) commutes(op wire.Op) bool {
	return op.Moves() || !r.data() && (op == wire.OpIncr || op == wire.OpBest && r.kind != nil && r.kind.Commutes())
}

// durable reports whether no change of the board may be lost.
func (r *rules) durable() bool { return r.kind != nil && r.kind.Durable }

// data reports whether members may have data beside their scores.
func (r *rules) data() bool { return r.kind != nil && r.kind.Data }

// rolls reports whether the board is a sum of others.
func (r *rules) rolls() bool { return r.kind != nil && r.kind.Rolls() }

// keepsLedger reports whether the ledger gets the changes of any board.
func keepsLedger(classes *rooms.File) bool {
	return slices.ContainsFunc(classes.Classes, func(c *rooms.Class) bool { return c.Ledger })
}

// asksLedger reports whether the ledger has the board, also if Redis does not.
func (r *rules) asksLedger() bool { return r.kind != nil && r.kind.Ledger }

// isOver reports whether nothing new can arrive for the board any more.
func (r *rules) isOver(now time.Time) bool { return r.over != 0 && now.UnixMilli() >= r.over }

// isGone reports whether the board's keys have expired.
func (r *rules) isGone(now time.Time) bool { return r.expires != 0 && now.UnixMilli() >= r.expires }

func (r *rules) features() features {
	return features{
		Ties: r.ties == rooms.TiesFirst || r.ties == rooms.TiesLast, Last: r.ties == rooms.TiesLast,
		Guard: r.guard != rooms.Guard{}, Gain: r.guard.Gain > 0, Trim: r.trim > 0, Best: r.best, By: r.by || r.data(), Data: r.data(), Durable: r.durable(), Prime: r.prime,
	}
}

// checkNumber returns why a command's number does not go with a board of the class, or nil.
func checkNumber(c *Command, kind *rooms.Class) *Refusal {
	switch {
	case kind.Ties != rooms.TiesMember && c.Number != math.Trunc(c.Number):
		return &Refusal{"score_range", fmt.Errorf("%v is not whole, and boards of class %s keep the tie-break in the fraction of scores", c.Number, kind.Name())}
	case kind.Trim > 0 && c.Op == wire.OpIncr && c.raw() < 0:
		return &Refusal{"score_range", fmt.Errorf("%v makes the score worse, and boards of class %s keep their best %d members only", c.Number, kind.Name(), kind.Trim)}
	}
	return nil
}

// findBoard returns the board of a command and its class, nil for a board without class.
// It sets the board of a command that names a class: that of the period of its time.
func findBoard(c *Command, classes *rooms.File) (class.Board, *rooms.Class, error) {
	if c.Class == "" {
		board, kind, _ := classes.Board(c.Board)
		board, err := route(c, board)
		return board, kind, err
	}
	kind := classes.Class(c.Class)
	if kind == nil {
		return class.Board{}, nil, &Refusal{"unknown_class", fmt.Errorf("class %.60q is neither in the writer's rooms file nor set at run time: rankcache classes list has those of run time", c.Class)}
	}
	board, err := kind.At(c.Dims, time.UnixMilli(c.At))
	if c.Board = board.ID; err != nil {
		return board, kind, noBoard(err)
	}
	board, err = route(c, board)
	return board, kind, err
}

// route returns the shard of a split board that has the command's member, which becomes the command's board;
// else the board itself. A command may name that shard, and no other.
func route(c *Command, board class.Board) (class.Board, error) {
	if board.Class == nil || board.Class.Shards() == 0 {
		return board, nil
	}
	home, ok := board.For(c.Member)
	if !ok {
		return board, &Refusal{"board", fmt.Errorf("board %s is a shard that does not have member %.40q: want the whole board, %s", c.Board, c.Member, board.Whole())}
	}
	c.Board = home.ID
	return home, nil
}

func isGap(err error) bool {
	_, ok := errors.AsType[*class.Gap](err)
	return ok
}

// noBoard returns the refusal of a command for which a class has no board, nil if it has.
func noBoard(err error) error {
	switch {
	case err == nil:
		return nil
	case isGap(err):
		return &Refusal{"no_period", err}
	case errors.Is(err, class.ErrPeriod):
		return &Refusal{"at", err}
	}
	return &Refusal{"bad_dims", err}
}

// maxAhead is how long before its period a command may arrive, and how far its time may be ahead of the clock.
const maxAhead = time.Minute

// outside returns why a command that has arrived at a time is too late or too early for a period, or nil. Arrival
// decides and not the time at which Redis applies the command, so that an outage of Redis loses none.
func outside(p class.Period, grace time.Duration, arrived time.Time) *Refusal {
	switch {
	case p.Tag == "":
		return nil
	case arrived.Sub(p.End) > grace:
		return &Refusal{"late", fmt.Errorf("period %s ended at %s, more than %v before the command arrived at %s",
			p.Tag, p.End.Format(time.RFC3339), grace, arrived.In(p.End.Location()).Format(time.RFC3339))}
	case p.Start.Sub(arrived) > maxAhead:
		return &Refusal{"early", fmt.Errorf("period %s begins at %s, more than %v after the command arrived: check the clock of the sender",
			p.Tag, p.Start.Format(time.RFC3339), maxAhead)}
	}
	return nil
}

// How far the writer's clock and Redis's may differ: beyond the grace of a class by
// clockTolerance, and never by more than maxClockDifference, as orders are forgotten by them, too.
const (
	clockTolerance     = time.Second
	maxClockDifference = time.Minute
)

// clockLimit returns how far the clocks may differ for a command of a class (nil: none) to be judged by them.
func clockLimit(kind *rooms.Class) time.Duration {
	if kind == nil || !kind.Calendar().Periodic() {
		return maxClockDifference
	}
	return min(kind.Grace+clockTolerance, maxClockDifference)
}
