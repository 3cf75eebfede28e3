package sidecar

import (
	"context"
	"errors"
	"fmt"

	"rankcache"
)

// A page beyond the first rows is found without those before it: a row of one shard, asked of every shard, halves the
// rows that can be its first. That takes log2 of the members times the shards look-ups in memory.

const (
	deepNear  = 32 // rows that the page may begin behind the row that was found
	deepDrift = 8  // ranks by which that row may move until the page is read
	deepTries = 20
)

// errDeep reports that rows are not found, as a shard is not in memory, or not as new as is wanted.
var errDeep = fmt.Errorf("%w: rows beyond the first %d, as not all shards are in memory and new enough", ErrSplit, rankcache.MaxTop)

// isDeep reports whether the rows are beyond those that are merged from the shards' first.
func (s *splitRead) isDeep() bool { return s.q.Limit > 0 && s.q.Start+s.q.Limit > rankcache.MaxTop }

// readDeep answers with rows that are beyond the first ones, and with members as without rows.
func (s *splitRead) readDeep(ctx context.Context, a *rankcache.Answer) error {
	var members rankcache.Answer
	if len(s.q.Members) > 0 {
		q := *s.q
		q.Start, q.Limit = 0, 0
		s.splits.readSplit(ctx, &q, &members)
	}
	rows, err := s.deepRows(ctx)
	if err != nil {
		return err
	}
	s.begin(a)
	a.Entries = rows
	for i := range a.Own {
		if a.Own[i].Err = members.Err; members.Err == nil {
			a.Own[i] = members.Own[i]
		}
	}
	return nil
}

func (s *splitRead) deepRows(ctx context.Context) (rows []rankcache.Entry, err error) {
	for range deepTries {
		pivot, at, err := s.findRow(ctx)
		if err != nil || pivot == nil {
			return nil, err
		}
		if rows, ok, err := s.readFrom(ctx, pivot, at); ok || err != nil {
			return rows, err
		}
	}
	return nil, fmt.Errorf("%w: the ranks from %d change faster than they are read", rankcache.ErrUnavailable, s.q.Start)
}

// findRow returns a row that is at most deepNear before the page's first, and how many rows of each shard stand before
// it; nil if the board ends before the page, which sets the parts.
func (s *splitRead) findRow(ctx context.Context) (pivot *rankcache.Entry, at []int, err error) {
	n := len(s.board.ids)
	from, to, all := make([]int, n), make([]int, n), 0 // the rows of each that can be the first
	clear(s.known)
	if err := s.ask(ctx, &s.places, func(_ int, ask *rankcache.Query) bool {
		s.askHere(ask).Limit = 1
		return true
	}); err != nil {
		return nil, nil, deepError(s.q, err)
	}
	for shard := range s.parts {
		to[shard] = s.parts[shard].Members
		all += to[shard]
	}
	if s.q.Start >= all {
		return nil, nil, nil
	}
	at = make([]int, n)
	for {
		shard := widest(from, to)
		middle := (from[shard] + to[shard]) / 2
		if from[shard] >= to[shard] { // what was asked before has changed
			if pivot == nil {
				return nil, nil, fmt.Errorf("%w: the shards change faster than they are read", rankcache.ErrUnavailable)
			}
			return pivot, at, nil
		}
		row, err := s.rowAt(ctx, shard, middle)
		switch {
		case err != nil:
			return nil, nil, err
		case row == nil:
			to[shard] = middle
			continue
		}
		pivot = row
		before, err := s.placesOf(ctx, pivot, at)
		switch ahead := s.q.Start - before; {
		case err != nil || ahead >= 0 && ahead <= deepNear:
			return pivot, at, err
		case ahead > 0:
			for i := range from {
				from[i] = max(from[i], at[i])
			}
			from[shard] = max(from[shard], middle+1)
		default:
			for i := range to {
				to[i] = min(to[i], at[i])
			}
			to[shard] = min(to[shard], middle)
		}
	}
}

// widest returns the shard of which the most rows are left.
func widest(from, to []int) (shard int) {
	for i := range from {
		if to[i]-from[i] > to[shard]-from[shard] {
			shard = i
		}
	}
	return shard
}

// askHere makes a query one for what is in memory, without bounds.
func (s *splitRead) askHere(ask *rankcache.Query) *rankcache.Query {
	ask.CopiesOnly, ask.Uncounted, ask.MaxAge, ask.Wait, ask.Around, ask.Gap = true, true, 0, 0, 0, false
	return ask
}

// rowAt returns a shard's row, nil if it has fewer.
func (s *splitRead) rowAt(ctx context.Context, shard, at int) (row *rankcache.Entry, err error) {
	err = s.ask(ctx, &s.places, func(of int, ask *rankcache.Query) bool {
		s.askHere(ask).Start, ask.Limit = at, 1
		return of == shard
	})
	if err != nil || len(s.places.as[0].Entries) == 0 {
		return nil, deepError(s.q, err)
	}
	return &s.places.as[0].Entries[0], nil
}

// placesOf sets how many rows of each shard stand before a row, and returns how many do together.
func (s *splitRead) placesOf(ctx context.Context, row *rankcache.Entry, at []int) (before int, err error) {
	err = s.ask(ctx, &s.places, func(_ int, ask *rankcache.Query) bool {
		placeOf(s.askHere(ask), row)
		return true
	})
	if err == nil {
		before, err = s.takePlaces(&s.places, at)
	}
	return before, deepError(s.q, err)
}

// placeOf asks where a row stands or would stand.
func placeOf(ask *rankcache.Query, row *rankcache.Entry) {
	ask.Members, ask.Scores = append(ask.Members, row.Member), append(ask.Scores, row.Score)
}

// takePlaces sets how many rows of each shard stand before the row that was asked for.
func (s *splitRead) takePlaces(of *questions, at []int) (before int, err error) {
	for shard := range at {
		own := &of.as[shard].Own[0]
		if own.Err != nil {
			return 0, own.Err
		}
		at[shard] = own.Rank - 1
		before += at[shard]
	}
	return before, nil
}

// readFrom returns the page's rows, which begin about at a row with so many before it in each shard; false if ranks
// change too much meanwhile. The parts are the answers that the rows are from.
func (s *splitRead) readFrom(ctx context.Context, pivot *rankcache.Entry, at []int) (rows []rankcache.Entry, ok bool, err error) {
	near := s.q.Limit + deepNear + deepDrift // more rows than those behind the pivot are not needed of any shard
	clear(s.known)
	err = s.ask(ctx, &s.rows, func(shard int, ask *rankcache.Query) bool {
		s.askHere(ask).Start = max(at[shard]-deepDrift, 0)
		ask.Limit, ask.MaxAge, ask.Wait = near+deepDrift, s.q.MaxAge, s.q.Wait
		placeOf(ask, pivot)
		if (s.q.MinSeq != 0 || s.q.MinState.Run != 0) && s.homes[0].shard == shard {
			ask.MinSeq, ask.MinState = s.q.MinSeq, s.q.MinState
		}
		return true
	})
	var before int
	if err == nil {
		before, err = s.takePlaces(&s.rows, at)
	}
	if err != nil {
		return nil, false, deepError(s.q, err)
	}
	ahead, skipped := s.q.Start-before, 0 // rows from the pivot to the page, and before all that are merged
	for shard := range s.parts {
		p := &s.parts[shard]
		first, last := max(at[shard]-max(-ahead, 0), 0), min(at[shard]+max(ahead, 0)+s.q.Limit, p.Members)
		if first < p.Start || last > p.Start+len(p.Entries) {
			return nil, false, nil
		}
		skipped += first
		p.Entries = p.Entries[first-p.Start : last-p.Start]
	}
	rows = s.mergeRows(s.q.Start - skipped + s.q.Limit)
	return rows[min(s.q.Start-skipped, len(rows)):], true, nil
}

// deepError tells what a deep page lacks where a copy does.
func deepError(q *rankcache.Query, err error) error {
	if err == nil || q.CopiesOnly || !errors.Is(err, rankcache.ErrNotKept) {
		return err
	}
	return errDeep
}
