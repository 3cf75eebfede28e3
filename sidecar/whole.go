package sidecar

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"rankcache"
)

// MaxBatch is how many boards one request may read.
const MaxBatch = 10

// PageRead is one page to be read, with a member and its surroundings.
type PageRead struct {
	Query
	// Page is what to read; its Board and Order are those of the Query.
	Page rankcache.PageQuery
}

// PageAnswer is the answer to one [PageRead].
type PageAnswer struct {
	Answer
	Ahead rankcache.Ahead // of the first row, if it was asked for
	Own   Own
	Err   error // why there is no answer
}

// Own is a member with its surroundings beside a page. If the page was refreshed (hot)
// and does not have them, they are Redis's, of another moment.
type Own struct {
	rankcache.Surroundings
	Seq     uint64 // of the board that they are of
	Members int    // of that board
	Err     error  // why Redis could not be asked for them; there is a page all the same
}

// WholePage reads a page and a member with its surroundings, all of one moment unless the
// page is a hot one (see [Own]). With a member, the page may have a Limit of 0: no rows.
// Then a hot page is not looked at. Dense ranks are those of whole local boards, down to
// [rankcache.MaxDense]; for others the error, or that of Own, is [rankcache.ErrRankMode].
func (r *Reader) WholePage(ctx context.Context, read PageRead) PageAnswer {
	a, ask := r.readHere(ctx, &read)
	if ask != nil {
		a.fill(r.flights.whole(ctx, read.Query, ask))
	}
	r.addOwnScore(ctx, &read.Query, &a)
	return a
}

// RankedStandings is [Reader.Standings] in a mode of ranks or with percentiles: the answer
// has what is ahead of each row. Dense ranks are those of [Reader.WholePage].
func (r *Reader) RankedStandings(ctx context.Context, q Query, mode rankcache.RankMode, members []string) (Standings, error) {
	if len(members) == 0 || len(members) > rankcache.MaxTop {
		return Standings{}, fmt.Errorf("%w: %d members, want 1 to %d", ErrRange, len(members), rankcache.MaxTop)
	}
	var at place
	err := r.find(&q, true, &at)
	if err == nil && q.Bounded() {
		at, err = r.waits.resolveBounds(ctx, &r.places, &q, at, 0, 0)
	}
	if err != nil {
		return Standings{}, err
	}
	s, err := r.rankedStandings(ctx, &q, &at, mode, members)
	if err == nil {
		err = r.addScores(ctx, &q, s.Rows)
	}
	return s, err
}

func (r *Reader) rankedStandings(ctx context.Context, q *Query, at *place, mode rankcache.RankMode, members []string) (Standings, error) {
	w := rankcache.PageQuery{Order: q.Order, Mode: mode, Form: at.form}
	if at.tier == TierLocal {
		s := Standings{Source: SourceLocal, Form: at.form, CurrentAt: at.board.CurrentAt()}
		if s.Rows, s.Ahead, s.Stamp = at.board.RankedStandings(w, nil, members); q.reached(s.State) && !s.At.IsZero() {
			for _, a := range s.Ahead {
				if mode == rankcache.Dense && a.Scores < 0 {
					return Standings{}, errDeep
				}
			}
			return s, nil
		}
	}
	if mode == rankcache.Dense {
		return Standings{}, errNotWhole
	}
	s, err := r.flights.ranked(ctx, *q, w, members)
	s.Form = at.form
	return s, err
}

// RanksOf returns the ranks of the members on the board of q, in one call to Redis at most;
// 0: the member is not on it. It is for the board of a period before: until is when the ranks
// may have changed, zero if they can't as Redis tells that the board is closed. Until then
// what Redis answered is kept for the next call; a local copy may be behind still. q's bounds
// are not looked at, and the read does not make the board hot. Dense ranks need a whole local
// board, as in [Reader.WholePage].
func (r *Reader) RanksOf(ctx context.Context, q *Query, now time.Time, mode rankcache.RankMode, members []string) (ranks map[string]int, until time.Time, err error) {
	key, ranks := trendKey{q.Board, q.Order, mode}, make(map[string]int, len(members))
	until, missing := r.trends.look(key, members, now, ranks)
	if len(missing) == 0 {
		return ranks, until, nil
	}
	var at place
	unbounded := Query{Board: q.Board, Room: q.Room, Order: q.Order}
	if err := r.find(&unbounded, false, &at); err != nil {
		return nil, until, err
	}
	s, err := r.ranksIn(ctx, &unbounded, &at, mode, missing)
	if err != nil {
		return nil, until, err
	}
	found := make(map[string]int, len(missing))
	for i, row := range s.Rows {
		if found[missing[i]] = row.Rank; row.Rank > 0 && mode != rankcache.Ordinal {
			found[missing[i]] = s.Ahead[i].Rank(mode, row.Rank-1)
		}
		ranks[missing[i]] = found[missing[i]]
	}
	var foundUntil time.Time
	if s.Life < rankcache.LifeClosed {
		foundUntil = now.Add(trendTime)
	}
	if !s.Source.Kept() {
		r.trends.keep(key, found, foundUntil, now)
	}
	if until.IsZero() { // what was kept, if anything, is for ever
		until = foundUntil
	}
	return ranks, until, nil
}

// ranksIn returns the standings of members, whose number nothing limits.
func (r *Reader) ranksIn(ctx context.Context, q *Query, at *place, mode rankcache.RankMode, members []string) (Standings, error) {
	if mode == rankcache.Ordinal {
		var s Standings
		err := r.standings(ctx, q, at, members, &s)
		return s, err
	}
	return r.rankedStandings(ctx, q, at, mode, members)
}

// Batch answers each read for itself, in their order. What Redis has to answer is asked
// in one call. Bounds of the queries are not looked at.
func (r *Reader) Batch(ctx context.Context, reads []PageRead) []PageAnswer {
	answers := make([]PageAnswer, len(reads))
	var asks []rankcache.PageQuery
	var asked []*PageAnswer
	for i := range reads {
		read := reads[i]
		read.Query = Query{Board: read.Board, Room: read.Room, Order: read.Order}
		a, ask := r.readHere(ctx, &read)
		if answers[i] = a; ask != nil {
			asks, asked = append(asks, *ask), append(asked, &answers[i])
		}
	}
	if len(asks) > 0 {
		pages, err := r.flights.wholes(ctx, asks)
		for i, a := range asked {
			if err != nil {
				a.fill(wholePage{}, err)
			} else {
				a.fill(pages[i], pages[i].Err)
			}
		}
	}
	var scores sync.WaitGroup
	for i := range answers {
		if answers[i].Own.lacksScore() {
			scores.Go(func() { r.addOwnScore(ctx, &Query{Board: reads[i].Board}, &answers[i]) })
		}
	}
	scores.Wait()
	return answers
}

// readHere answers from what is kept here. What it lacks it returns as a query for Redis,
// nil if it lacks nothing.
func (r *Reader) readHere(ctx context.Context, read *PageRead) (a PageAnswer, ask *rankcache.PageQuery) {
	q, w := &read.Query, read.Page
	w.Board, w.Order = q.Board, q.Order
	least := 1
	if w.Member != "" {
		least = 0
	}
	if w.Start < 0 || w.Start > MaxStart || w.Limit < least || w.Limit > rankcache.MaxTop || w.Around < -1 || w.Around > MaxAround {
		a.Err = fmt.Errorf("%w: %d rows from %d with %d neighbours, want 1 to %d from 0 to %d with up to %d",
			ErrRange, w.Limit, w.Start, w.Around, rankcache.MaxTop, MaxStart, MaxAround)
		return a, nil
	}
	err := r.find(q, true, &a.at)
	a.Form = a.at.form
	w.Form = a.Form
	if err == nil && q.Bounded() {
		a.at, err = r.waits.resolveBounds(ctx, &r.places, q, a.at, w.Start, w.Limit)
	}
	if err != nil {
		return PageAnswer{Err: err}, nil
	}
	here := false
	if a.at.tier == TierLocal {
		here = a.wholeLocal(q, w)
	} else {
		here = a.wholeHot(&w)
	}
	if here {
		return a, nil
	}
	if w.Mode == rankcache.Dense {
		return PageAnswer{Err: errNotWhole}, nil
	}
	if err := checkAsk(&w); err != nil {
		a.fill(wholePage{}, err)
		return a, nil
	}
	return a, own(w)
}

// wholeLocal answers from the local board, false if it was reset since it was found.
func (a *PageAnswer) wholeLocal(q *Query, w rankcache.PageQuery) bool {
	whole, top := a.at.board.WholePage(w)
	if !q.reached(whole.State) || whole.At.IsZero() {
		a.at = place{}
		return false
	}
	a.Ahead, a.Own = whole.Ahead, ownOf(&whole, nil)
	a.refuseDeep(w.Mode)
	if a.at.top = top; covers(top, w.Start, w.Limit, w.Order) {
		a.head(w.Start, w.Limit)
		return true
	}
	a.Page, a.Source, a.CurrentAt = whole.Page, SourceLocal, a.at.board.CurrentAt()
	return true
}

// wholeHot answers from the hot top if it has everything that w names. If it lacks the
// member alone, w becomes a query for that.
func (a *PageAnswer) wholeHot(w *rankcache.PageQuery) bool {
	if a.at.top == nil || w.Limit == 0 || w.Mode == rankcache.Dense || !covers(a.at.top, w.Start, w.Limit, w.Order) {
		a.at = place{}
		return false
	}
	a.head(w.Start, w.Limit)
	if w.Ranked() && len(a.Entries) > 0 {
		a.Ahead = aheadOn(a.at.top, w.Start, w.Form)
	}
	if w.Member == "" {
		return true
	}
	s, ok := surroundingsIn(a.at.top, w)
	a.Own = Own{Surroundings: s, Seq: a.Seq, Members: a.Members}
	w.Start, w.Limit = 0, 0
	return ok
}

// own returns the query with strings that may outlive the request.
func own(w rankcache.PageQuery) *rankcache.PageQuery {
	w.Board, w.Member = rankcache.BoardID(strings.Clone(string(w.Board))), strings.Clone(w.Member)
	return &w
}

// surroundingsIn returns the member's surroundings if they are all on the top, or if it
// shows that the member is not on the board.
func surroundingsIn(top *rankcache.Top, w *rankcache.PageQuery) (s rankcache.Surroundings, ok bool) {
	row, found := rowOf(rankcache.Page{Entries: top.Entries}, w.Member)
	s.Standing = rankcache.Standing{Member: w.Member}
	whole := len(top.Entries) >= top.Members
	if !found {
		return s, whole
	}
	s.Standing = row
	if w.Around >= 0 {
		end := row.Rank + w.Around
		if end > len(top.Entries) && !whole {
			return s, false
		}
		s.First = max(0, row.Rank-1-w.Around)
		s.Neighbours = top.Entries[s.First:min(end, len(top.Entries))]
	}
	if w.Ranked() {
		first := row.Rank - 1
		if w.Around >= 0 {
			first = s.First
		}
		s.Ahead = aheadOn(top, first, w.Form)
	}
	for i := row.Rank - 2; w.Gap && i >= 0 && !s.HasBetter; i-- {
		s.Better = top.Entries[i].Score
		s.HasBetter = !w.Form.Same(s.Better, row.Score)
	}
	return s, true
}

// fill adds what was answered, or why nothing was, to what was here.
func (a *PageAnswer) fill(whole wholePage, err error) {
	switch {
	case a.at.top != nil: // a hot page that lacks the member
		a.Own = ownOf(&whole.WholePage, err)
	case err != nil:
		a.Err = err
	default:
		a.Answer = Answer{Page: whole.Page, Source: whole.source, CurrentAt: whole.At, Form: a.Form}
		a.Ahead, a.Own = whole.Ahead, ownOf(&whole.WholePage, nil)
	}
}

func ownOf(whole *rankcache.WholePage, err error) Own {
	return Own{Surroundings: whole.Own, Seq: whole.Seq, Members: whole.Members, Err: err}
}

var (
	errNotWhole = fmt.Errorf("%w: dense ranks need the whole board in memory, and this one is not held here or not open", rankcache.ErrRankMode)
	errDeep     = fmt.Errorf("%w: dense ranks are counted over the %d best members, and more have a better score", rankcache.ErrRankMode, rankcache.MaxDense)
)

// refuseDeep sets the errors of rows that are too deep for dense ranks.
func (a *PageAnswer) refuseDeep(mode rankcache.RankMode) {
	if mode != rankcache.Dense {
		return
	}
	if a.Ahead.Scores < 0 {
		a.Err = errDeep
	}
	if a.Own.Ahead.Scores < 0 {
		a.Own.Err = errDeep
	}
}

// aheadOn counts the members with a better score than that of a row of the top. The top
// begins with the best row, so it has all of them.
func aheadOn(top *rankcache.Top, row int, form rankcache.ScoreForm) rankcache.Ahead {
	score := top.Entries[row].Score
	for row > 0 && form.Same(top.Entries[row-1].Score, score) {
		row--
	}
	return rankcache.Ahead{Members: row, Scores: -1}
}
