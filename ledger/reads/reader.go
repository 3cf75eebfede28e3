package reads

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"rankcache"
	"rankcache/ledger"
)

// Why a board is not answered.
var (
	errUnproved   = errors.New("not_proved")
	errNoBoard    = errors.New("unknown_board")
	errNotCovered = errors.New("not_covered")
)

type reader struct {
	store   *ledger.Store
	proofs  *proofs
	current func() time.Time // when the database was last known to have every change
}

func (r *reader) read(ctx context.Context, q *Read) (a Answer) {
	current := r.current() // before the snapshot, so that its age is not told too low
	err := r.snapshot(ctx, q, current, &a)
	if errors.Is(err, errUnproved) && r.proofs.refused(q.Board) == "" {
		if err = r.proofs.prove(ctx, q.Board); err == nil {
			err = r.snapshot(ctx, q, current, &a)
		}
	}
	switch {
	case err == nil:
		return a
	case errors.Is(err, errNoBoard):
		return Answer{Code: errNoBoard.Error(), Detail: "the ledger has no such board"}
	case errors.Is(err, errUnproved):
		return Answer{Code: errUnproved.Error(), Detail: "the ledger does not have all of the board: " + r.proofs.refused(q.Board)}
	case errors.Is(err, errNotCovered):
		return Answer{Code: errNotCovered.Error(), Detail: "the ledger does not keep as much of the board any more"}
	}
	return Answer{Code: "unavailable", Detail: "the ledger's database: " + err.Error()}
}

// snapshot answers from the board's final, or where that does not go so far, or there is none, from the members.
func (r *reader) snapshot(ctx context.Context, q *Read, current time.Time, a *Answer) error {
	return r.store.Snapshot(ctx, q.Board, func(v *ledger.Snapshot) error {
		final, err := v.FinalRanks(q.direction(), q.form())
		if err != nil {
			return err
		}
		cut := false
		if final != nil {
			if cut, err = fromFinal(final, q, a); err != nil || !cut {
				return err
			}
		}
		whole, err := r.proofs.holds(v)
		switch {
		case err != nil:
			return err
		case whole && (final == nil || final.Final.Seq == v.State.Seq):
			return fromMembers(v, q, current, final != nil, a)
		case v.State.Run != 0 && (final == nil || r.proofs.refused(q.Board) == ""):
			return errUnproved
		case final == nil:
			return errNoBoard
		case len(a.Own) < len(q.Members) || q.Range == nil && q.Limit > 0 && a.Entries == nil || q.Range != nil && a.Within == nil:
			return errNotCovered
		}
		return nil // as far as the final goes
	})
}

func fromMembers(v *ledger.Snapshot, q *Read, current time.Time, final bool, a *Answer) error {
	*a = Answer{State: v.State.String(), Life: rankcache.LifeOpen.String(), AgeMs: age(current), Members: v.Count}
	if final { // nothing changes it any more
		a.Life, a.AgeMs = rankcache.LifeFinal.String(), 0
	}
	if q.Scores {
		return fillScores(v, q, a)
	}
	return fill(v.Ranks(q.direction(), q.form()), q, a)
}

// fillScores adds the members' scores, on the board or driven out of it.
func fillScores(v *ledger.Snapshot, q *Read, a *Answer) error {
	for _, member := range q.Members {
		row, has, known, err := v.Score(member)
		if err != nil || !known {
			return cmp.Or(err, errNotCovered)
		}
		a.Own = append(a.Own, Own{Row: rowOf(row), Scored: has})
	}
	return nil
}

// fromFinal answers from the places that are kept, and reports whether these don't have all that is wanted.
func fromFinal(ranks *ledger.Ranks, q *Read, a *Answer) (cut bool, err error) {
	f := ranks.Final
	*a = Answer{State: f.State.String(), Life: rankcache.LifeFinal.String(), Members: f.Members}
	kept, whole := f.Kept, f.Kept == f.Members
	if !whole && (q.Scores || q.direction() == rankcache.Ascending) {
		return true, nil
	}
	if !whole && q.Range != nil {
		last, err := ranks.Rows(max(kept-1, 0), 1)
		if err != nil || len(last) == 0 || last[0].Raw >= q.Range.lower() {
			return true, err
		}
	}
	within := *q
	if !whole && q.Range == nil && q.Start+q.Limit > kept {
		within.Limit, cut = 0, true
	}
	if err = fill(ranks, &within, a); err != nil || whole {
		return false, err
	}
	for i := range a.Own {
		own := &a.Own[i]
		if own.Cut = own.Rank == 0 || q.Around != nil && own.Rank+*q.Around > kept; own.Cut {
			*own, cut = Own{Row: Row{Member: own.Member}, Cut: true}, true
		}
	}
	return cut, nil
}

// age returns the milliseconds since a time, rounded up.
func age(since time.Time) int64 { return time.Since(since).Milliseconds() + 1 }

func fill(ranks *ledger.Ranks, q *Read, a *Answer) (err error) {
	start, limit := q.Start, q.Limit
	if q.Range != nil {
		before, within, err := ranks.Between(q.Range.scores())
		if err != nil {
			return err
		}
		a.Before, a.Within = &before, &within
		start, limit = before+start, min(limit, within-start)
	}
	if limit > 0 {
		if a.Entries, err = rowsOf(ranks, start, limit); err != nil {
			return err
		}
		if q.Ranked && len(a.Entries) > 0 {
			if a.Ahead, err = ranks.Ahead(a.Entries[0].raw()); err != nil {
				return err
			}
		}
	}
	if len(q.Members) > fewMembers {
		return fillMany(ranks, q, a)
	}
	for _, member := range q.Members {
		own, err := ownOf(ranks, q, member)
		if err != nil {
			return err
		}
		a.Own = append(a.Own, own)
	}
	return nil
}

const fewMembers = 8 // up to how many members their ranks are counted one by one

// fillMany adds many members, without what stands next to them.
func fillMany(ranks *ledger.Ranks, q *Read, a *Answer) error {
	found, err := ranks.OfAll(q.Members)
	for _, member := range q.Members {
		p, there := found[member]
		own := Own{Row: Row{Member: member}}
		if there {
			own.Row, own.Rank = rowOf(p.Row), p.Rank
		}
		if q.Ranked {
			own.Ahead = p.Ahead
		}
		a.Own = append(a.Own, own)
	}
	return err
}

func rowsOf(ranks *ledger.Ranks, start, limit int) ([]Row, error) {
	found, err := ranks.Rows(start, limit)
	rows := make([]Row, len(found))
	for i := range found {
		rows[i] = rowOf(found[i])
	}
	return rows, err
}

// ownOf reads a member with what stands next to it.
func ownOf(ranks *ledger.Ranks, q *Read, member string) (own Own, err error) {
	row, rank, err := ranks.Of(member)
	own = Own{Row: rowOf(row), Rank: rank}
	if err != nil || rank == 0 {
		return own, err
	}
	first := row.Raw // of the first row whose Ahead is wanted
	if q.Around != nil {
		own.First = max(0, rank-1-*q.Around)
		if own.Neighbours, err = rowsOf(ranks, own.First, rank+*q.Around-own.First); err != nil {
			return own, err
		}
		if len(own.Neighbours) <= rank-1-own.First {
			return own, fmt.Errorf("%d rows around rank %d", len(own.Neighbours), rank)
		}
		first = own.Neighbours[0].raw()
	}
	if q.Ranked {
		if own.Ahead, err = ranks.Ahead(first); err != nil {
			return own, err
		}
	}
	if q.Gap {
		if better, ok, err := ranks.Better(row.Raw); err != nil {
			return own, err
		} else if ok {
			own.Better, own.BetterRaw = &better.Score, rawOf(better.Score, better.Raw)
		}
	}
	return own, nil
}
