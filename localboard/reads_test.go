package localboard

import (
	"context"

	"rankcache"
)

// What tests ask for most.

func ask(b rankcache.Reader, q rankcache.Query) rankcache.Answer {
	return rankcache.One(context.Background(), b, q)
}

func page(b rankcache.Reader, start, limit int, direction rankcache.Direction) rankcache.Answer {
	return ask(b, rankcache.Query{Start: start, Limit: limit, Order: direction})
}

// topOf returns the first rows that readers share, nil of a board that is not published.
func topOf(b *Board) *rankcache.Answer {
	limit := rankcache.MaxTop
	if v := b.view.Load(); v != nil {
		limit = max(v.topRows(), 1)
	}
	if a := page(b, 0, limit, rankcache.Descending); a.Err == nil {
		return &a
	}
	return nil
}

// standings also returns the answer, whose seq is 0 if the board is not published.
func standings(b rankcache.Reader, members []string, direction rankcache.Direction) (rows []rankcache.Standing, a rankcache.Answer) {
	a = ask(b, rankcache.Query{Members: members, Order: direction})
	return standingsOf(a.Own), a
}

func standingsOf(own []rankcache.Own) (rows []rankcache.Standing) {
	for i := range own {
		rows = append(rows, own[i].Standing)
	}
	return rows
}

// around returns a member's neighbours as the rows of the answer.
func around(b rankcache.Reader, member string, n int, direction rankcache.Direction) (a rankcache.Answer, rank int, ok bool) {
	a = ask(b, rankcache.Query{Members: []string{member}, Around: 2*n + 1, Order: direction})
	if len(a.Own) == 0 || a.Own[0].Rank == 0 {
		return a, 0, false
	}
	a.Start, a.Entries = a.Own[0].First, a.Own[0].Neighbours
	return a, a.Own[0].Rank, true
}

// reads is a question that is asked again and again, in the same room.
type reads struct {
	qs [1]rankcache.Query
	as [1]rankcache.Answer
}

func newReads(q rankcache.Query) *reads { return &reads{qs: [1]rankcache.Query{q}} }

func (r *reads) read(b rankcache.Reader) *rankcache.Answer {
	b.Read(context.Background(), r.qs[:], r.as[:])
	return &r.as[0]
}
