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

// isOver reports whether nothing new can arrive for the board any more.
func (r *rules) isOver(now time.Time) bool { return r.over != 0 && now.UnixMilli() >= r.over }

// isGone reports whether the board's keys have expired.
func (r *rules) isGone(now time.Time) bool { return r.expires != 0 && now.UnixMilli() >= r.expires }

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
