package sidecar

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
)

// Reader answers reads of boards from the nearest tier that may. All methods
// may be called concurrently.
type Reader struct {
	places
	*topCache
	profiles Profiles
	flights  *flights
	waits    *waits
	trends   *trends
	trimmed  *trimmed
}

// NewReader returns a reader and registers its metrics. It starts nothing.
func NewReader(cfg Config, reg prometheus.Registerer) (*Reader, error) {
	if cfg.Tiers == nil || cfg.Origin == nil {
		return nil, errors.New("a reader needs tiers and an origin")
	}
	if cfg.CheckBoard == nil {
		cfg.CheckBoard = rankcache.BoardID.Check
	}
	cache := newTopCache()
	flights, err := newFlights(cfg.Origin, cfg.Ledger, cfg.Limits, cache, cmp.Or(cfg.Log, slog.New(slog.DiscardHandler)), reg)
	if err != nil {
		return nil, err
	}
	waits, err := newWaits(reg)
	if err != nil {
		return nil, err
	}
	return &Reader{places: places{cfg.Tiers, cfg.CheckBoard, cfg.Boards, cfg.Hot}, topCache: cache,
		profiles: cfg.Profiles, flights: flights, waits: waits, trends: &trends{}, trimmed: &trimmed{flights: flights}}, nil
}

// Top returns the best limit rows of the board, 1 to [rankcache.MaxTop].
func (r *Reader) Top(ctx context.Context, q Query, limit int) (a Answer, err error) {
	err = r.ReadPage(ctx, &q, 0, limit, &a)
	return a, err
}

// Page returns up to limit rows, 1 to [rankcache.MaxTop], from the 0-based start;
// none past the end of the board.
func (r *Reader) Page(ctx context.Context, q *Query, start, limit int) (a Answer, err error) {
	err = r.ReadPage(ctx, q, start, limit, &a)
	return a, err
}

// ReadPage sets a, which is empty, to what [Reader.Page] returns. An Answer is large: each
// copy adds to a read of a few hundred nanoseconds.
func (r *Reader) ReadPage(ctx context.Context, q *Query, start, limit int, a *Answer) (err error) {
	if start < 0 || start > MaxStart || limit < 1 || limit > rankcache.MaxTop {
		return fmt.Errorf("%w: %d rows from %d, want 1 to %d from 0 to %d", ErrRange, limit, start, rankcache.MaxTop, MaxStart)
	}
	if err = r.find(q, true, &a.at); err != nil {
		return err
	}
	if q.Bounded() {
		if a.at, err = r.waits.resolveBounds(ctx, &r.places, q, a.at, start, limit); err != nil {
			return err
		}
	}
	return r.page(ctx, q, start, limit, a)
}

// Peek returns the rows if a local top covers them, ignoring q's bounds, and
// does not count the read.
func (r *Reader) Peek(q *Query, start, limit int) (a Answer, ok bool) {
	if r.find(q, false, &a.at) != nil || a.at.top == nil || !covers(a.at.top, start, limit, q.Order) {
		return Answer{}, false
	}
	a.head(start, limit)
	return a, true
}

// PeekInto is [Reader.Peek] for the first rows, which it may put into the caller's room, and
// make that larger. Unlike Peek it makes nothing that other readers may share: it is for
// pages that are read once.
func (r *Reader) PeekInto(room *[]rankcache.Entry, q *Query, limit int) (a Answer, ok bool) {
	if board, form := r.local(q); board != nil {
		if page := board.AppendPage((*room)[:0], 0, limit, q.Order); !page.At.IsZero() {
			*room = page.Entries
			a.Page, a.Source, a.CurrentAt, a.Form = page, SourceLocal, board.CurrentAt(), form
			return a, true
		}
	}
	return r.Peek(q, 0, limit)
}

// page completes a, of which only at is set.
func (r *Reader) page(ctx context.Context, q *Query, start, limit int, a *Answer) (err error) {
	at := &a.at
	if at.top != nil && covers(at.top, start, limit, q.Order) {
		a.head(start, limit)
		return nil
	}
	if at.tier == TierLocal {
		page := at.board.Page(start, limit, q.Order)
		if q.reached(page.State) && !page.At.IsZero() { // else it was reset since it was found
			a.Page, a.Source, a.CurrentAt, a.Form = page, SourceLocal, at.board.CurrentAt(), at.form
			return nil
		}
	}
	found := a.at
	*a, err = r.flights.page(ctx, *q, start, limit)
	a.at, a.Form = found, found.form
	return err
}

// Standings appends one row per member to dst and returns them all, in the order
// requested. A member that is not on the board has rank 0, as has one that is beyond the
// first n of a board that keeps only those: Redis is asked for its score, once in 10 s.
func (r *Reader) Standings(ctx context.Context, q Query, dst []rankcache.Standing, members []string) (s Standings, err error) {
	s.Rows = dst
	err = r.ReadStandings(ctx, &q, members, &s)
	return s, err
}

// ReadStandings is [Reader.Standings] for s, of which only Rows is set, the dst.
func (r *Reader) ReadStandings(ctx context.Context, q *Query, members []string, s *Standings) (err error) {
	if len(members) == 0 || len(members) > rankcache.MaxTop {
		return fmt.Errorf("%w: %d members, want 1 to %d", ErrRange, len(members), rankcache.MaxTop)
	}
	var at place
	if err = r.find(q, true, &at); err != nil {
		return err
	}
	if q.Bounded() {
		if at, err = r.waits.resolveBounds(ctx, &r.places, q, at, 0, 0); err != nil {
			return err
		}
	}
	if err = r.standings(ctx, q, &at, members, s); err != nil {
		return err
	}
	return r.addScores(ctx, q, s.Rows[len(s.Rows)-len(members):])
}

func (r *Reader) standings(ctx context.Context, q *Query, at *place, members []string, s *Standings) (err error) {
	dst := s.Rows
	if at.tier == TierLocal {
		rows, top := at.board.Standings(dst, members, q.Order)
		if top != nil && q.reached(top.State) { // else it was reset since it was found
			s.State, s.Members, s.Life, s.At = top.State, top.Members, top.Life, top.PublishedAt
			s.Rows, s.Form, s.CurrentAt, s.top = rows, at.form, at.board.CurrentAt(), top
			return nil
		}
	}
	*s, err = r.flights.standings(ctx, *q, dst, members)
	s.Form = at.form
	return err
}

// Around returns the member's row among up to n neighbours on either side, 0 to
// [MaxAround], and its rank. The error wraps [rankcache.ErrUnknownMember] when
// it has no rank; [Reader.WholePage] has the score of a member that is trimmed.
func (r *Reader) Around(ctx context.Context, q Query, member string, n int) (Answer, int, error) {
	if n < 0 || n > MaxAround {
		return Answer{}, 0, fmt.Errorf("%w: %d neighbours, want 0 to %d", ErrRange, n, MaxAround)
	}
	var at place
	err := r.find(&q, true, &at)
	if err != nil {
		return Answer{}, 0, err
	}
	if q.Bounded() {
		if at, err = r.waits.resolveBounds(ctx, &r.places, &q, at, 0, 0); err != nil {
			return Answer{}, 0, err
		}
	}
	if at.tier != TierLocal {
		return r.aroundInRedis(ctx, q, &at, member, n)
	}
	page, rank, ok := at.board.Around(member, n, q.Order)
	if !q.reached(page.State) || page.At.IsZero() { // as in page
		return r.aroundInRedis(ctx, q, &at, member, n)
	}
	if !ok {
		return Answer{}, 0, rankcache.ErrUnknownMember
	}
	return Answer{Page: page, Source: SourceLocal, CurrentAt: at.board.CurrentAt(), Form: at.form}, rank, nil
}

func (r *Reader) aroundInRedis(ctx context.Context, q Query, at *place, member string, n int) (Answer, int, error) {
	a, rank, err := r.flights.around(ctx, q, member, n)
	a.Form = at.form
	return a, rank, err
}

// Me returns the member's standing beside the page a, which is an answer to q, and its
// seq. dst is room for one standing; member holds one id.
//
// The page and the standing are two reads of a board that changes. Where the page itself
// (or the head that it is cut from) has the member's row, that row is taken, so that the
// page can't show rank 12 and the standing rank 11. Otherwise the standing is the current
// one, with its own seq.
func (r *Reader) Me(ctx context.Context, q *Query, a *Answer, dst []rankcache.Standing, member []string) (rankcache.Standing, uint64, error) {
	s, seq, err := r.me(ctx, q, a, dst, member)
	if err != nil || s.Rank > 0 {
		return s, seq, err
	}
	rows := append(dst[:0], s)
	err = r.addScores(ctx, q, rows)
	return rows[0], seq, err
}

func (r *Reader) me(ctx context.Context, q *Query, a *Answer, dst []rankcache.Standing, member []string) (rankcache.Standing, uint64, error) {
	at := &a.at
	if at.tier != TierLocal {
		if row, known := at.known(a, member[0]); known {
			return row, a.Seq, nil
		}
	}
	s := Standings{Rows: dst}
	if err := r.standings(ctx, q, at, member, &s); err != nil {
		return rankcache.Standing{}, 0, err
	}
	if s.Seq == 0 || s.Seq != a.Seq { // published again between the two looks, or no way to tell
		if row, ok := rowOf(a.Page, member[0]); ok {
			return row, a.Seq, nil
		}
	}
	return s.Rows[len(s.Rows)-1], s.Seq, nil
}

// EndWaits has reads that wait for a local copy, now or later, answered by Redis at once.
// It is for a process that is about to end.
func (r *Reader) EndWaits() { r.waits.end.Do(func() { close(r.waits.ended) }) }

// Profiles returns the source of profiles, nil if there is none.
func (r *Reader) Profiles() Profiles { return r.profiles }

// DropPages drops the pages of boards that are neither open here nor hot any more.
// A server of a protocol calls it about once a second.
func (r *Reader) DropPages() {
	r.drop(func(id rankcache.BoardID, s Source) (ok bool) {
		switch {
		case s == SourceLocal && r.boards != nil:
			_, ok = r.boards.Get(id)
		case s == SourceHot && r.hot != nil:
			_, _, ok = r.hot.Top(id)
		}
		return ok
	})
}

// Uncounted returns a reader of the same boards whose reads do not make a board hot: an
// operator's look at a board is not traffic.
func (r *Reader) Uncounted() *Reader {
	u := *r
	if r.hot != nil {
		u.hot = uncounted{r.hot}
	}
	return &u
}

type uncounted struct{ Hot }

func (uncounted) Count(rankcache.BoardID) {}

// head sets a to the rows of its place's top, which covers them.
func (a *Answer) head(start, limit int) {
	top := a.at.top
	from := min(start, len(top.Entries))
	to := min(start+limit, len(top.Entries))
	a.State, a.Members, a.Life, a.At = top.State, top.Members, top.Life, top.PublishedAt
	a.Start, a.Entries, a.top = start, top.Entries[from:to:to], top
	a.Source, a.CurrentAt, a.Form = SourceHot, a.at.hotAt, a.at.form
	if a.at.tier == TierLocal {
		a.Source, a.CurrentAt = SourceLocal, a.at.board.CurrentAt()
	}
}
