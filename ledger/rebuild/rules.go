package rebuild

import (
	"cmp"
	"slices"
	"time"

	"rankcache"
	"rankcache/rooms"
	"rankcache/wire"
)

// Rules are what the class of a board, or the writers' settings, say of it.
type Rules struct {
	// End and Expires are when the period of a board ends that Redis does not have, and when
	// its keys do, in Unix milliseconds; 0: never.
	End, Expires int64
	// OrderLife and Buckets are those of a board that Redis does not have.
	OrderLife time.Duration
	Buckets   int
	Trimmed   bool // only the best members are in the sorted set
	Data      bool // members may have data beside their scores
	Ties      bool // the fraction of a raw score is its tie-break
	Form      rankcache.ScoreForm
	Class     string // hides members on all its boards, and Its tells which of these are the board's; "": none
	Its       func(member string) bool
	Hides     bool // the new board has a hash of hidden members; set by the rebuild
	Addable   bool // what members had in an earlier life can be added: no best, ties, trim and commands that come again
}

// companions are those of the board that the ledger knows; the others begin anew.
func (r *Rules) companions() (of []wire.Companion) {
	if r.Trimmed {
		of = append(of, wire.Scores)
	}
	if r.Data {
		of = append(of, wire.Data)
	}
	if r.Hides {
		of = append(of, wire.Hidden)
	}
	return of
}

// Defaults are the settings of writers for boards of which no class sets them.
type Defaults struct {
	BoardLife, OrderLife time.Duration
	Buckets              int
}

// RulesOf returns the rules by which a writer would make the board now.
func RulesOf(file *rooms.File, b rankcache.BoardID, d Defaults) Rules {
	r := Rules{OrderLife: d.OrderLife, Buckets: d.Buckets}
	board, class, _ := file.Board(b)
	keep := d.BoardLife
	if class != nil {
		keep = cmp.Or(class.Keep, keep)
	}
	if keep > 0 {
		r.Expires = time.Now().Add(keep).UnixMilli()
	}
	if class == nil {
		r.Addable = true
		return r
	}
	r.OrderLife, r.Trimmed, r.Ties, r.Form, r.Data = cmp.Or(class.Orders, d.OrderLife), class.Trim > 0, class.Ties != rooms.TiesMember, class.Form, class.Data
	r.Addable = !slices.Contains(class.Ops, wire.OpBest) && !r.Trimmed && !r.Ties && !class.Durable && !class.Rolls()
	if end := board.Period.End; board.Period.Tag != "" {
		r.End, r.Expires = end.UnixMilli(), end.Add(class.Keep).UnixMilli()
		if !r.Trimmed && !r.Data {
			r.Class, r.Its = class.Name(), func(member string) bool { _, its := board.For(member); return its }
		}
	}
	return r
}

// lives reports whether a board of a class with a ledger, last changed at a Unix millisecond, has not expired.
func lives(file *rooms.File, b rankcache.BoardID, at int64) bool {
	board, class, _ := file.Board(b)
	if class == nil || !class.Ledger {
		return false
	}
	from := time.UnixMilli(at)
	if board.Period.Tag != "" {
		from = board.Period.End
	}
	return board.Period.Tag == "" && class.Keep == 0 || time.Now().Before(from.Add(class.Keep))
}
