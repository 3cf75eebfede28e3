package sidecar

import (
	"context"

	"rankcache"
	"rankcache/rooms"
)

// copies answers from memory, as far as the operator's tier of a board lets it; and refuses what is blocked.
type copies struct {
	next   source
	tiers  func() *rooms.Tiers
	check  func(rankcache.BoardID) error
	used   func(rankcache.BoardID) // nil: nobody asks
	boards Boards
	hot    Hot
}

func (c *copies) read(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer, at []int) {
	if len(qs) == 1 { // a top: 15 ns less than by pass
		if !c.answer(ctx, qs, as) {
			c.next.read(ctx, qs, as, at)
		}
		return
	}
	pass(ctx, qs, as, at, func(i int) bool { return c.answer(ctx, qs[i:i+1], as[i:i+1]) }, c.next)
}

// answer answers one query, and returns whether nothing is left of it for the next sources.
func (c *copies) answer(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer) bool {
	q, a := &qs[0], &as[0]
	if err := check(q); err != nil {
		a.Fail(err)
		return true
	}
	c.copy(ctx, qs, as, !q.Uncounted)
	if q.Bounded() && toJudge(a) {
		return false
	}
	return settled(q, a)
}

// settled reports whether Redis need not be asked after the copies; what it can't answer becomes an error.
func settled(q *rankcache.Query, a *rankcache.Answer) bool {
	if a.Err == nil {
		return q.CopiesOnly || !lacks(a)
	}
	if a.Err == errSplit {
		return false
	}
	if a.Err != rankcache.ErrNotKept || q.CopiesOnly {
		return true
	}
	if q.Mode == rankcache.Dense {
		a.Fail(errNotWhole)
		return true
	}
	return false
}

// lacks reports whether Redis has to be asked for a member.
func lacks(a *rankcache.Answer) bool {
	for i := range a.Own {
		if a.Own[i].Err == rankcache.ErrNotKept {
			return true
		}
	}
	return false
}

// copy answers one query from the copy of the operator's tier: the whole board, or else the hot page. A super-hot board
// that is not open is the next tier's. Not read are copies that are super-hot no more, of bypassed boards, or of an
// ended board without members while its final may have some.
func (c *copies) copy(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer, count bool) {
	q, a := &qs[0], &as[0]
	tiers := c.tiers()
	var mode rooms.Mode
	var shards int
	mode, q.Form, q.Rolling, shards = tiers.Of(q.Board, q.Room)
	q.Order = q.Form.Direction(q.Order)
	if shards > 0 && mode != rooms.ModeBlocked {
		a.Fail(errSplit)
		return
	}
	bypassed := tiers.Bypassed(q.Board)
	a.Fail(rankcache.ErrNotKept)
	if mode == rooms.ModeSuperHot && c.boards != nil && !bypassed {
		if b, ok := c.boards.Get(q.Board); ok {
			b.Read(ctx, qs, as)
		}
	}
	local := a.Err != rankcache.ErrNotKept
	if !local {
		if err := c.check(q.Board); err != nil { // before anything is asked for it
			a.Fail(err)
			return
		}
	}
	if mode == rooms.ModeBlocked {
		a.Fail(ErrBlocked)
		return
	}
	if count {
		c.count(q.Board)
	}
	if !local && c.hot != nil && !bypassed {
		c.hot.Read(ctx, qs, as)
	}
	if a.Members == 0 {
		if _, lacks := lacksFinal(tiers, q, a); lacks {
			a.Fail(rankcache.ErrNotKept)
		}
	}
}

// count has the hot tier count a read of the board.
func (c *copies) count(id rankcache.BoardID) {
	if c.used != nil {
		c.used(id)
	}
	if c.hot != nil {
		c.hot.Count(id)
	}
}
