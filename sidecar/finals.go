package sidecar

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"rankcache"
	"rankcache/rooms"
)

const (
	// finalTime is how long answers of a final are kept, unknownTime that the ledger does not know a board.
	finalTime, unknownTime = time.Minute, time.Second
	maxFinalRows           = 200_000 // bounds the rows of all answers that are kept: some 20 MB
)

// finals has the answers to queries of ended boards, of classes with a ledger, that Redis does not have: those of their
// finals. It is safe for concurrent use.
type finals struct {
	next  *origins
	tiers func() *rooms.Tiers

	n      atomic.Int64 // of boards, so that without one a look costs nothing
	mu     sync.Mutex   // nothing is called with it held
	boards map[rankcache.BoardID]*keptFinal
	rows   int
}

// keptFinal has what the ledger has answered about a board: nothing if it does not know it.
type keptFinal struct {
	until   time.Time
	answers map[string]rankcache.Answer // by [keyOf]
	rows    int
}

func newFinals(next *origins, tiers func() *rooms.Tiers) *finals {
	return &finals{next: next, tiers: tiers, boards: make(map[rankcache.BoardID]*keptFinal)}
}

// lacksFinal reports whether an ended board's answer tells of no member. gone is the error if the ledger has none.
func lacksFinal(tiers *rooms.Tiers, q *rankcache.Query, a *rankcache.Answer) (gone error, lacks bool) {
	if a.Err != nil || a.Members > 0 || a.Source >= rankcache.SourceLedger {
		return nil, false
	}
	gone, lacks = tiers.Ended(q.Board, time.Now())
	if gone != nil {
		gone = goneError{gone}
	}
	return gone, lacks
}

type goneError struct{ error } // [ErrGone] with what is gone

// Is reports whether target is [ErrGone].
func (goneError) Is(target error) bool { return target == ErrGone }

// ask asks Redis, or the ledger in its place, and the ledger again for ended boards that Redis does not have.
func (f *finals) ask(ctx context.Context, op string, qs []rankcache.Query) []rankcache.Answer {
	as, rest, at := make([]rankcache.Answer, len(qs)), make([]rankcache.Query, 0, len(qs)), make([]int, 0, len(qs))
	for i := range qs {
		if !f.look(&qs[i], &as[i]) {
			rest, at = append(rest, qs[i]), append(at, i)
		}
	}
	if len(rest) == 0 {
		return as
	}
	for n, a := range f.next.ask(ctx, op, rest) {
		as[at[n]] = a
	}
	f.addFinals(ctx, op, qs, as)
	return as
}

// addFinals has the ledger answer for ended boards that Redis lacks. One that it does not know had no member.
func (f *finals) addFinals(ctx context.Context, op string, qs []rankcache.Query, as []rankcache.Answer) {
	var asks []rankcache.Query
	var at []int
	tiers := f.tiers()
	for i := range as {
		gone, lacks := lacksFinal(tiers, &qs[i], &as[i])
		switch {
		case !lacks:
		case f.next.ledger.Reader != nil && !f.unknown(qs[i].Board):
			asks, at = append(asks, qs[i]), append(at, i)
		case gone != nil:
			as[i].Fail(gone)
		}
	}
	if len(asks) == 0 {
		return
	}
	for n, found := range f.next.askOne(ctx, op, f.next.ledger, asks) {
		i := at[n]
		gone, _ := lacksFinal(tiers, &qs[i], &as[i])
		switch {
		case !errors.Is(found.Err, rankcache.ErrNoBoard):
			as[i] = found
			f.keep(op, &qs[i], &as[i])
		default:
			f.keepUnknown(qs[i].Board)
			if gone != nil {
				as[i].Fail(gone)
			}
		}
	}
}

// look sets an answer from what is kept. As the final is what it was, the answer is of now.
func (f *finals) look(q *rankcache.Query, a *rankcache.Answer) bool {
	if f.n.Load() == 0 {
		return false
	}
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	kept := f.of(q.Board, now)
	if kept == nil {
		return false
	}
	found, ok := kept.answers[keyOf("", []rankcache.Query{*q})]
	if ok {
		*a, a.At, a.CurrentAt = found, now, now
	}
	return ok
}

// of returns what is kept of a board, nil if that is nothing or too old. The caller has the lock.
func (f *finals) of(board rankcache.BoardID, now time.Time) *keptFinal {
	kept := f.boards[board]
	if kept != nil && now.After(kept.until) {
		f.drop(board)
		return nil
	}
	return kept
}

// unknown reports whether the ledger did not know a board a moment ago.
func (f *finals) unknown(board rankcache.BoardID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	kept := f.of(board, time.Now())
	return kept != nil && kept.answers == nil
}

// keep keeps an answer of a final for others with the same query.
func (f *finals) keep(op string, q *rankcache.Query, a *rankcache.Answer) {
	if a.Err != nil || a.Source != rankcache.SourceFinal {
		return
	}
	if op == "page" {
		a.Kept = new(rankcache.Kept)
	}
	rows := 1 + len(a.Entries)
	for i := range a.Own {
		rows += 1 + len(a.Own[i].Neighbours)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	kept := f.of(q.Board, time.Now())
	if kept != nil && kept.rows > maxFinalRows/4 {
		return
	}
	if kept == nil || kept.answers == nil {
		kept = f.begin(q.Board, finalTime)
		kept.answers = make(map[string]rankcache.Answer)
	}
	kept.answers[keyOf("", []rankcache.Query{*q})] = *a
	f.count(kept, rows)
}

// keepUnknown keeps for a moment that the ledger does not know a board.
func (f *finals) keepUnknown(board rankcache.BoardID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count(f.begin(board, unknownTime), 1)
}

// begin replaces what is kept of a board. The caller has the lock.
func (f *finals) begin(board rankcache.BoardID, lasts time.Duration) *keptFinal {
	f.drop(board)
	kept := &keptFinal{until: time.Now().Add(lasts)}
	f.boards[rankcache.BoardID(strings.Clone(string(board)))] = kept
	f.n.Add(1)
	return kept
}

// count adds rows to what is kept of a board, and drops other boards while there are too many. The caller has the lock.
func (f *finals) count(kept *keptFinal, rows int) {
	kept.rows += rows
	f.rows += rows
	for board, other := range f.boards {
		if f.rows <= maxFinalRows {
			return
		}
		if other != kept {
			f.drop(board)
		}
	}
}

func (f *finals) drop(board rankcache.BoardID) {
	if kept := f.boards[board]; kept != nil {
		delete(f.boards, board)
		f.rows -= kept.rows
		f.n.Add(-1)
	}
}
