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
)

// Board is one open local board. All methods may be called concurrently and
// must not keep the strings that they are given.
type Board interface {
	// Top returns the published head, best first, nil before the first one.
	Top() *rankcache.Top
	// Page returns up to limit rows from the 0-based start, none past the end.
	Page(start, limit int, order rankcache.Order) rankcache.Page
	// Standings appends one row per member to dst, all of one moment.
	Standings(dst []rankcache.Standing, members []string, order rankcache.Order) ([]rankcache.Standing, rankcache.Stamp)
	// Around returns the member's row with up to n neighbours on either side,
	// and its rank; false, and a page that has a stamp only, when it is not on the
	// board.
	Around(member string, n int, order rankcache.Order) (rankcache.Page, int, bool)
	// CurrentAt is when the copy was last known to be what Redis had.
	CurrentAt() time.Time
}

// Boards finds open local boards. It must not keep the id.
type Boards interface {
	Get(rankcache.BoardID) (Board, bool)
}

// Hot keeps the top pages of hot boards fresh. It must not keep the ids that it
// is given: they may be the memory of a request.
type Hot interface {
	// Top returns the refreshed head of the board and when it was last known to
	// be what Redis had; false when there is none that may be served.
	Top(rankcache.BoardID) (top *rankcache.Top, currentAt time.Time, ok bool)
	// Count counts a read, whoever answers it.
	Count(rankcache.BoardID)
}

// Config is what a [Reader] reads from. Zero numbers take their defaults.
type Config struct {
	// Tiers returns what the operator says at this moment.
	Tiers    func() *rankcache.Tiers
	Boards   Boards   // nil: no super-hot tier
	Hot      Hot      // nil: no hot tier
	Profiles Profiles // nil: answers carry no profiles
	Origin   Origin
	Limits   OriginLimits
	Log      *slog.Logger // of faults while asking the origin; nil: they are only counted
}

// Reader answers reads of boards from the nearest tier that may. All methods
// may be called concurrently.
type Reader struct {
	tiers    func() *rankcache.Tiers
	boards   Boards
	hot      Hot
	profiles Profiles
	flights  *flights
	cache    *pageCache
	waits    *waits
}

// NewReader returns a reader and registers its metrics. It starts nothing.
func NewReader(cfg Config, reg prometheus.Registerer) (*Reader, error) {
	if cfg.Tiers == nil || cfg.Origin == nil {
		return nil, errors.New("a reader needs tiers and an origin")
	}
	cache := newPageCache()
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
func (r *Reader) Page(ctx context.Context, q Query, start, limit int) (Answer, error) {
	if start < 0 || start > maxStart || limit < 1 || limit > rankcache.MaxTop {
		return Answer{}, fmt.Errorf("%w: %d rows from %d, want 1 to %d from 0 to %d", ErrRange, limit, start, rankcache.MaxTop, maxStart)
	}
	at, err := r.find(&q, true)
	if err != nil {
		return Answer{}, err
	}
	if q.bounded() {
		at = r.settle(ctx, &q, at, start, limit)
	}
	return r.page(ctx, q, &at, start, limit)
}

// Peek returns the rows if a top that is here covers them, whatever bounds q has, and
// does not count the read.
func (r *Reader) Peek(q *Query, start, limit int) (Answer, bool) {
	at, err := r.find(q, false)
	if err != nil || at.top == nil || !covers(at.top, start, limit, q.Order) {
		return Answer{}, false
	}
	return at.head(start, limit), true
}

func (r *Reader) page(ctx context.Context, q Query, at *place, start, limit int) (Answer, error) {
	if at.top != nil && covers(at.top, start, limit, q.Order) {
		return at.head(start, limit), nil
	}
	if at.tier == TierLocal {
		page := at.board.Page(start, limit, q.Order)
		if page.Seq >= q.MinSeq { // else it began anew since it was found fresh enough
			return Answer{Page: page, Source: SourceLocal, CurrentAt: at.board.CurrentAt(), at: *at}, nil
		}
	}
	a, err := r.flights.page(ctx, q, start, limit)
	a.at = *at
	return a, err
}

// Standings appends one row per member to dst and returns them all, in the order
// asked for. A member that is not on the board has rank 0.
func (r *Reader) Standings(ctx context.Context, q Query, dst []rankcache.Standing, members []string) (Standings, error) {
	if len(members) == 0 || len(members) > rankcache.MaxTop {
		return Standings{}, fmt.Errorf("%w: %d members, want 1 to %d", ErrRange, len(members), rankcache.MaxTop)
	}
	at, err := r.find(&q, true)
	if err != nil {
		return Standings{}, err
	}
	if q.bounded() {
		at = r.settle(ctx, &q, at, 0, 0)
	}
	return r.standings(ctx, q, &at, dst, members)
}

func (r *Reader) standings(ctx context.Context, q Query, at *place, dst []rankcache.Standing, members []string) (Standings, error) {
	if at.tier != TierLocal {
		return r.flights.standings(ctx, q, dst, members)
	}
	rows, stamp := at.board.Standings(dst, members, q.Order)
	if stamp.Seq < q.MinSeq { // as in page
		return r.flights.standings(ctx, q, dst, members)
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
	at, err := r.find(&q, true)
	if err != nil {
		return Answer{}, 0, err
	}
	if q.bounded() {
		at = r.settle(ctx, &q, at, 0, 0)
	}
	if at.tier != TierLocal {
		return r.flights.around(ctx, q, member, n)
	}
	page, rank, ok := at.board.Around(member, n, q.Order)
	if page.Seq < q.MinSeq { // as in page
		return r.flights.around(ctx, q, member, n)
	}
	if !ok {
		return Answer{}, 0, rankcache.ErrUnknownMember
	}
	return Answer{Page: page, Source: SourceLocal, CurrentAt: at.board.CurrentAt()}, rank, nil
}
