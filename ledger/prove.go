package ledger

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"rankcache"
	"rankcache/wire"
)

// ErrNoBoard reports a board of which the ledger has no row.
var ErrNoBoard = errors.New("the ledger has no such board")

// Proof compares what the ledger has of a board with itself, at one moment: no seq is missing, none of its changes is
// set aside, and the members' scores add up to the checksum of the row with the highest seq.
type Proof struct {
	Board       rankcache.BoardID `json:"board"`
	State       rankcache.State   `json:"-"`       // of the row with the highest seq
	Begin       uint64            `json:"begin"`   // first seq that the ledger has met; more than 1: it began later than the board
	First       uint64            `json:"first"`   // first seq that is kept
	Rows        uint64            `json:"rows"`    // from there on
	Missing     uint64            `json:"missing"` // from there on
	Members     int               `json:"members"` // in rank_score
	WantMembers int               `json:"want_members"`
	Sum         uint64            `json:"-"`          // over rank_score
	Incomplete  bool              `json:"incomplete"` // what a member had before a loss was removed as too old
	Aside       int               `json:"set_aside"`  // changes that may come again: until then Redis may have others than the ledger
	Proved      bool              `json:"proved"`
	// Folded is why a change does not follow from those before it, and InRedis why Redis has another board; "" also if
	// nobody looked.
	Folded  string `json:"folded,omitempty"`
	InRedis string `json:"in_redis,omitempty"`
	// Earlier is the life that the board had before it began again: its keys had expired, or
	// were deleted. Nil: none that the ledger has.
	Earlier *Earlier `json:"earlier,omitempty"`
}

// Earlier is a life of a board that has ended.
type Earlier struct {
	Run     uint64 `json:"run"`
	Changes uint64 `json:"changes"`
	Members int    `json:"members"` // at its end
	At      int64  `json:"at"`      // of the last change, in Unix milliseconds
}

// String tells of the life in words.
func (e *Earlier) String() string {
	return fmt.Sprintf("an earlier life with %d changes and %d members ended after %s: its keys had expired, or were deleted", e.Changes, e.Members, time.UnixMilli(e.At).UTC().Format(time.RFC3339))
}

// prover compares boards with the checksums of their changes.
type prover struct{ *database }

// Prove proves the board in a snapshot of its own. The error wraps [ErrNoBoard] if there is no such board.
func (s prover) Prove(ctx context.Context, board rankcache.BoardID) (p *Proof, err error) {
	err = s.in(ctx, sql.LevelRepeatableRead, func(t *transaction) (err error) {
		p, err = prove(t, board)
		return err
	})
	return p, err
}

func prove(t *transaction, board rankcache.BoardID) (*Proof, error) {
	p := &Proof{Board: board}
	base, err := proofState(t, p)
	if err != nil {
		return nil, err
	}
	of := func(q *query) *query {
		return q.add(" WHERE board = ").arg(string(board)).add(" AND run >= ").arg(base)
	}
	next := p.First // a run's seqs are unique, and each run goes on where the one before it ends
	err = of(t.d.query("SELECT MIN(seq), MAX(seq), count(*) FROM rank_log")).add(" GROUP BY run ORDER BY run").each(t, func(row *sql.Rows) error {
		var first, last, rows uint64
		err := row.Scan(&first, &last, &rows)
		p.Rows, p.Missing = p.Rows+rows, p.Missing+apart(first, next)+last-first+1-rows
		next = last + 1
		return err
	})
	if err != nil {
		return nil, err
	}
	p.Missing += apart(next, p.State.Seq+1)
	err = t.entries(of(t.d.query("SELECT member, raw, data FROM rank_score")).add(" AND raw IS NOT NULL"), func(e rankcache.Entry) error {
		p.Sum = (p.Sum + wire.Hash(e.Member, e.Score)) & wire.SumMask
		p.Members++
		return nil
	})
	if err == nil {
		p.Aside, err = asideOf(t, board)
	}
	p.Proved = err == nil && p.whole() && p.Aside == 0
	return p, err
}

func apart(a, b uint64) uint64 { return max(a, b) - min(a, b) }

// whole reports whether the ledger has all of the history that stands.
func (p *Proof) whole() bool {
	return p.Missing == 0 && p.Begin == 1 && !p.Incomplete && p.State.HasSum && p.State.Sum == p.Sum && p.Members == p.WantMembers
}

// proofState reads the board's runs into p and returns the first that counts.
func proofState(t *transaction, p *Proof) (base int64, err error) {
	base, p.First = math.MaxInt64, math.MaxUint64
	q := t.d.query("SELECT run, base_run, begin_seq, first_seq, seq, sum, members, at, incomplete FROM rank_board WHERE end_seq > 0 AND board = ").arg(string(p.Board)).add(" ORDER BY run DESC")
	err = q.each(t, func(row *sql.Rows) error {
		var run, itsBase int64
		var begin, first, seq uint64
		var members, incomplete int
		var sum sql.NullInt64
		var at int64
		if err := row.Scan(&run, &itsBase, &begin, &first, &seq, &sum, &members, &at, &incomplete); err != nil {
			return err
		}
		if p.State.Run == 0 { // the latest
			base, p.WantMembers = itsBase, members
			p.State = rankcache.State{Run: uint64(run), Seq: seq, Sum: uint64(sum.Int64), HasSum: sum.Valid} // #nosec G115 -- stored from these types
		}
		if run >= base {
			p.Begin, p.First = begin, min(p.First, first)
			p.Incomplete = p.Incomplete || incomplete != 0
		} else if p.Earlier == nil {
			p.Earlier = &Earlier{uint64(run), seq, members, at} // #nosec G115 -- stored from uint64
		}
		return nil
	})
	if err == nil && p.State.Run == 0 {
		err = fmt.Errorf("%w: %s", ErrNoBoard, p.Board)
	}
	return base, err
}

// Boards returns the names of up to n boards of a class, or of all if that is empty, that follow one, in the order of
// their bytes.
func (s prover) Boards(ctx context.Context, class string, after rankcache.BoardID, n int) (boards []rankcache.BoardID, err error) {
	q := s.d.query("SELECT DISTINCT board FROM rank_board WHERE board > ").arg(string(after))
	if class != "" {
		q.add(" AND class = ").arg(class)
	}
	err = s.each(ctx, q.add(" ORDER BY board LIMIT ").arg(n), func(row *sql.Rows) error {
		var b string
		err := row.Scan(&b)
		boards = append(boards, rankcache.BoardID(b))
		return err
	})
	return boards, err
}

// Why tells in words why the board is not proved, "" if it is.
func (p *Proof) Why() string {
	switch {
	case p.Folded != "" || p.InRedis != "":
		return cmp.Or(p.Folded, p.InRedis)
	case p.Proved:
		return ""
	case p.Aside > 0:
		return fmt.Sprintf("%d changes are set aside in rank_lost: until they come again, or are found to be lost, Redis may have others than the ledger", p.Aside)
	case p.Missing > 0:
		return fmt.Sprintf("%d of the changes %d to %d are missing, or at another run and seq", p.Missing, p.First, p.State.Seq)
	case p.Begin > 1:
		return fmt.Sprintf("the ledger began at change %d, so members that were there before are unknown", p.Begin)
	case p.Incomplete:
		return "what members had before a loss in Redis was removed as too old"
	case !p.State.HasSum:
		return "the checksum of the latest change is unknown: the board is being adopted"
	case p.Members != p.WantMembers:
		return fmt.Sprintf("%d members, the latest change counts %d", p.Members, p.WantMembers)
	}
	return fmt.Sprintf("the scores add up to %012x, the latest change has %012x", p.Sum, p.State.Sum)
}

// Settled reports whether the ledger has a board as it is in Redis: nothing of it is on its
// way, and nothing that Redis has lost may come again.
func (s prover) Settled(ctx context.Context, board rankcache.BoardID, state rankcache.State) (settled bool, err error) {
	err = s.in(ctx, sql.LevelReadCommitted, func(t *transaction) error {
		p := Proof{Board: board}
		if _, err := proofState(t, &p); err != nil && !errors.Is(err, ErrNoBoard) {
			return err
		}
		pending, err := asideOf(t, board)
		settled = pending == 0 && Level(p.State, state)
		return err
	})
	return settled, err
}

// Level reports whether what the ledger has of a board is what Redis has of it: seq and checksum are the same. The run
// may be another one, as two servers may have applied the same commands. The checksum may be, too, if Redis's run is
// later: the board was added up anew.
func Level(ledger, redis rankcache.State) bool {
	return ledger.Seq == redis.Seq && (ledger.Run < redis.Run || ledger.HasSum == redis.HasSum && ledger.Sum == redis.Sum)
}
