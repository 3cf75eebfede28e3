package sidecar

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
	"rankcache/rooms"
)

// Reader answers reads of boards from the nearest tier that may. All methods
// may be called concurrently.
type Reader struct {
	tiers    func() *rooms.Tiers
	boards   Boards
	hot      Hot
	profiles Profiles
	flights  *flights
	cache    *topCache
	waits    *waits
}

// NewReader returns a reader and registers its metrics. It starts nothing.
func NewReader(cfg Config, reg prometheus.Registerer) (*Reader, error) {
	if cfg.Tiers == nil || cfg.Origin == nil {
		return nil, errors.New("a reader needs tiers and an origin")
	}
	cache := newTopCache()
	flights, err := newFlights(cfg.Origin, cfg.Limits, cache, cmp.Or(cfg.Log, slog.New(slog.DiscardHandler)), reg)
	if err != nil {
		return nil, err
	}
	waits, err := newWaits(reg)
	if err != nil {
		return nil, err
	}
	return &Reader{tiers: cfg.Tiers, boards: cfg.Boards, hot: cfg.Hot,
		profiles: cfg.Profiles, flights: flights, cache: cache, waits: waits}, nil
}

// Top returns the best limit rows of the board, 1 to [rankcache.MaxTop].
func (r *Reader) Top(ctx context.Context, q Query, limit int) (Answer, error) {
	return r.Page(ctx, q, 0, limit)
}

// Page returns up to limit rows, 1 to [rankcache.MaxTop], from the 0-based start;
// none past the end of the board.
func (r *Reader) Page(ctx context.Context, q Query, start, limit int) (a Answer, err error) {
	if start < 0 || start > MaxStart || limit < 1 || limit > rankcache.MaxTop {
		return a, fmt.Errorf("%w: %d rows from %d, want 1 to %d from 0 to %d", ErrRange, limit, start, rankcache.MaxTop, MaxStart)
	}
	if err = r.find(&q, true, &a.at); err != nil {
		return a, err
	}
	if q.Bounded() {
		if a.at, err = r.waits.resolveBounds(ctx, r, &q, a.at, start, limit); err != nil {
			return a, err
		}
	}
	err = r.page(ctx, &q, start, limit, &a)
	return a, err
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

// page completes a, of which only at is set. An Answer is large: it is set in place, not
// returned, as each copy adds to a read of a few hundred nanoseconds.
func (r *Reader) page(ctx context.Context, q *Query, start, limit int, a *Answer) (err error) {
	at := &a.at
	if at.top != nil && covers(at.top, start, limit, q.Order) {
		a.head(start, limit)
		return nil
	}
	if at.tier == TierLocal {
		page := at.board.Page(start, limit, q.Order)
		if q.reached(page.State) && !page.At.IsZero() { // else it was reset since it was found
			a.Page, a.Source, a.CurrentAt = page, SourceLocal, at.board.CurrentAt()
			return nil
		}
	}
	found := a.at
	*a, err = r.flights.page(ctx, *q, start, limit)
	a.at = found
	return err
}

// Standings appends one row per member to dst and returns them all, in the order
// requested. A member that is not on the board has rank 0.
func (r *Reader) Standings(ctx context.Context, q Query, dst []rankcache.Standing, members []string) (Standings, error) {
	if len(members) == 0 || len(members) > rankcache.MaxTop {
		return Standings{}, fmt.Errorf("%w: %d members, want 1 to %d", ErrRange, len(members), rankcache.MaxTop)
	}
	var at place
	err := r.find(&q, true, &at)
	if err != nil {
		return Standings{}, err
	}
	if q.Bounded() {
		if at, err = r.waits.resolveBounds(ctx, r, &q, at, 0, 0); err != nil {
			return Standings{}, err
		}
	}
	return r.standings(ctx, &q, &at, dst, members)
}

func (r *Reader) standings(ctx context.Context, q *Query, at *place, dst []rankcache.Standing, members []string) (Standings, error) {
	if at.tier != TierLocal {
		return r.flights.standings(ctx, *q, dst, members)
	}
	rows, stamp := at.board.Standings(dst, members, q.Order)
	if !q.reached(stamp.State) || stamp.At.IsZero() { // as in page
		return r.flights.standings(ctx, *q, dst, members)
	}
	return Standings{Stamp: stamp, Source: SourceLocal, CurrentAt: at.board.CurrentAt(), Rows: rows, top: at.top}, nil
}

// Around returns the member's row among up to n neighbours on either side, 0 to
// [MaxAround], and its rank. The error wraps [rankcache.ErrUnknownMember] when
// it is not on the board.
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
		if at, err = r.waits.resolveBounds(ctx, r, &q, at, 0, 0); err != nil {
			return Answer{}, 0, err
		}
	}
	if at.tier != TierLocal {
		return r.flights.around(ctx, q, member, n)
	}
	page, rank, ok := at.board.Around(member, n, q.Order)
	if !q.reached(page.State) || page.At.IsZero() { // as in page
		return r.flights.around(ctx, q, member, n)
	}
	if !ok {
		return Answer{}, 0, rankcache.ErrUnknownMember
	}
	return Answer{Page: page, Source: SourceLocal, CurrentAt: at.board.CurrentAt()}, rank, nil
}

// Me returns the member's standing beside the page a, which is an answer to q, and its
// seq. dst is room for one standing; member holds one id.
//
// The page and the standing are two reads of a board that changes. Where the page itself
// (or the head that it is cut from) has the member's row, that row is taken, so that the
// page can't show rank 12 and the standing rank 11. Otherwise the standing is the current
// one, with its own seq.
func (r *Reader) Me(ctx context.Context, q Query, a *Answer, dst []rankcache.Standing, member []string) (rankcache.Standing, uint64, error) {
	at := &a.at
	if at.tier != TierLocal {
		if row, known := at.known(a, member[0]); known {
			return row, a.Seq, nil
		}
	}
	s, err := r.standings(ctx, &q, at, dst, member)
	if err != nil {
		return rankcache.Standing{}, 0, err
	}
	if s.Seq == 0 || s.Seq != a.Seq { // published again between the two looks, or no way to tell
		if row, ok := rowOf(a.Page, member[0]); ok {
			return row, a.Seq, nil
		}
	}
	return s.Rows[len(s.Rows)-1], s.Seq, nil
}

// known returns the member's row without a call to Redis: from the page, or from the hot
// head that it was cut from, or rank 0 where those are the whole board.
func (at *place) known(a *Answer, member string) (rankcache.Standing, bool) {
	rows := a.Page
	if a.Source == SourceHot {
		rows.Start, rows.Entries = 0, at.top.Entries
	}
	if row, ok := rowOf(rows, member); ok {
		return row, true
	}
	whole := rows.Start == 0 && len(rows.Entries) >= rows.Members
	return rankcache.Standing{Member: member}, whole
}

// rowOf returns the member's row on the page.
func rowOf(p rankcache.Page, member string) (rankcache.Standing, bool) {
	for i := range p.Entries {
		if e := &p.Entries[i]; e.Member == member {
			return rankcache.Standing{Member: member, Score: e.Score, Rank: p.Start + i + 1}, true
		}
	}
	return rankcache.Standing{}, false
}

// place is where one board is read, found once per request.
type place struct {
	tier  Tier
	board Board          // set for TierLocal
	top   *rankcache.Top // set for TierLocal and TierHot
	hotAt time.Time      // CurrentAt of a hot top
}

// EndWaits has reads that wait for a local copy, now or later, answered by Redis at once.
// It is for a process that is about to end.
func (r *Reader) EndWaits() { r.waits.end.Do(func() { close(r.waits.ended) }) }

// Tier returns where q is read now.
func (r *Reader) Tier(q *Query) Tier {
	var at place
	if r.find(q, false, &at) != nil {
		return TierBlocked
	}
	return at.tier
}

// Tiers returns the operator's tiers of this moment.
func (r *Reader) Tiers() *rooms.Tiers { return r.tiers() }

// Profiles returns the source of profiles, nil if there is none.
func (r *Reader) Profiles() Profiles { return r.profiles }

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

// find sets at, which is empty, to where q is read. A local board without a published
// head counts as not open; a board that is bypassed has no copy that may be read. count is
// whether the hot tier counts the read.
func (r *Reader) find(q *Query, count bool, at *place) error {
	tiers := r.tiers()
	mode, bypassed := tiers.Mode(q.Board, q.Room), tiers.Bypassed(q.Board)
	if mode == rooms.ModeSuperHot && !bypassed {
		at.board, at.top = r.whole(q.Board)
	}
	local, hot := at.top != nil, false
	if mode != rooms.ModeBlocked && r.hot != nil {
		if count {
			r.Count(q.Board)
		}
		if !local && !bypassed {
			if at.top, at.hotAt, hot = r.hot.Top(q.Board); !hot {
				at.top = nil
			}
		}
	}
	if at.tier = decide(mode, local, hot); at.tier == TierBlocked {
		return ErrBlocked
	}
	return nil
}

// whole returns the whole board that is kept here and its published head, nil if there is
// none.
func (r *Reader) whole(id rankcache.BoardID) (Board, *rankcache.Top) {
	if r.boards == nil {
		return nil, nil
	}
	b, ok := r.boards.Get(id)
	if !ok {
		return nil, nil
	}
	return b, b.Top()
}

// Count has the hot tier count a read of the board.
func (r *Reader) Count(id rankcache.BoardID) {
	if r.hot != nil {
		r.hot.Count(id)
	}
}

// covers reports whether the head holds all the requested rows.
func covers(top *rankcache.Top, start, limit int, order rankcache.Direction) bool {
	return order == rankcache.Descending && (start+limit <= len(top.Entries) || len(top.Entries) >= top.Members)
}

// head sets a to the rows of its place's top, which covers them.
func (a *Answer) head(start, limit int) {
	top := a.at.top
	from := min(start, len(top.Entries))
	to := min(start+limit, len(top.Entries))
	a.State, a.Members, a.At = top.State, top.Members, top.PublishedAt
	a.Start, a.Entries, a.top = start, top.Entries[from:to:to], top
	a.Source, a.CurrentAt = SourceHot, a.at.hotAt
	if a.at.tier == TierLocal {
		a.Source, a.CurrentAt = SourceLocal, a.at.board.CurrentAt()
	}
}

// decide returns where a board is read: mode is the operator's, localOpen whether its local
// copy may be read, hotHas whether a fresh top page of it is here. A super-hot board that is
// not open is read from the next tier. A local copy that has no super-hot mode any more (its
// room just left the file) is not read.
func decide(mode rooms.Mode, localOpen, hotHas bool) Tier {
	switch {
	case mode == rooms.ModeBlocked:
		return TierBlocked
	case mode == rooms.ModeSuperHot && localOpen:
		return TierLocal
	case hotHas:
		return TierHot
	}
	return TierRedis
}
