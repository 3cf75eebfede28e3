package sidecar

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
	"rankcache/rooms"
)

// Reader answers reads of boards from the nearest tier that may. All methods may be called concurrently.
type Reader struct {
	first    source
	own      *ownWrites // nil: nothing is written through this process
	copies   *copies
	splits   *splits
	bounds   *bounds
	ladders  *ladders // nil: all ranks are exact
	flights  *flights
	profiles Profiles
	written  func(rankcache.BoardID) <-chan struct{} // nil: nobody asks
	trends   trends
	places   [maxPlaces]int // 0, 1, 2 …
}

const maxPlaces = 64 // how many queries are read without room for their places

// source answers the queries at some places. It holds the next one, which answers what it does not: a query goes down
// once, and its answer comes up once.
type source interface {
	read(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer, at []int)
}

// pass has the next source answer the queries that are not answered yet.
func pass(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer, at []int, answer func(i int) (done bool), next source) {
	rest := at
	if len(at) == 1 { // without room of its own
		if answer(at[0]) {
			return
		}
	} else {
		rest = nil
		for _, i := range at {
			if !answer(i) {
				rest = append(rest, i)
			}
		}
	}
	if len(rest) > 0 {
		next.read(ctx, qs, as, rest)
	}
}

// NewReader returns a reader and registers its metrics. It starts nothing.
func NewReader(cfg Config, reg prometheus.Registerer) (*Reader, error) {
	if cfg.Tiers == nil || cfg.Origin == nil {
		return nil, errors.New("a reader needs tiers and an origin")
	}
	if cfg.CheckBoard == nil {
		cfg.CheckBoard = rankcache.BoardID.Check
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	r := &Reader{profiles: cfg.Profiles, written: cfg.Written}
	for i := range r.places {
		r.places[i] = i
	}
	return r, r.chain(cfg, reg)
}

// chain makes the sources, the last first.
func (r *Reader) chain(cfg Config, reg prometheus.Registerer) (err error) {
	if r.flights, err = newFlights(cfg, reg); err != nil {
		return err
	}
	next := source(r.flights)
	if cfg.SmallStale > 0 {
		next = &stale{next: next, keep: cfg.SmallStale, tiers: cfg.Tiers, pages: map[stalePage]*list.Element{}}
	}
	if cfg.Ladders != nil {
		if r.ladders, err = newLadders(cfg, reg, next); err != nil {
			return err
		}
		next = r.ladders
	}
	if r.bounds, err = newBounds(cfg, reg, next); err != nil {
		return err
	}
	r.splits = &splits{next: r.bounds, reader: r, tiers: cfg.Tiers, ledger: cfg.Ledger != nil, every: lookEvery}
	r.copies = &copies{next: r.splits, tiers: cfg.Tiers, check: cfg.CheckBoard, used: cfg.Used, boards: cfg.Boards, hot: cfg.Hot}
	r.bounds.copies = r.copies
	r.first = &trimmed{next: r.copies, tiers: cfg.Tiers, flights: r.flights, scores: recent[keptScore]{life: scoreTime, most: maxScores}}
	if cfg.OwnWrites {
		r.own = &ownWrites{next: r.first, last: recent[ownWrite]{life: ownTime, most: maxWrites}}
		r.first = r.own
	}
	return nil
}

// Read implements [rankcache.Reader]. It sets the queries' Form, Order and Rolling. What Redis has to answer
// of several queries is asked in one call.
//
// Beside the page of a hot board, and beside a plain page of Redis ([rankcache.Query.Plain]), members that are not on
// the page are of a later moment, with an error of their own. Only whole local boards have dense ranks, down to
// [rankcache.MaxDense]; for others the error is [rankcache.ErrRankMode].
//
// Ranks of [rankcache.Approx] are from a ladder where Redis answers a single query for members alone or beside rows,
// and has one; exact else.
//
// A member without a rank, on a board that keeps only its best members in the sorted set, has its
// score: Redis is asked for that once in 10 s.
//
// A read of the first rows of a local or hot board takes no lock and allocates nothing.
func (r *Reader) Read(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer) {
	at := r.places[:min(len(qs), maxPlaces)]
	if more := len(qs) - len(at); more > 0 {
		at = slices.Grow(slices.Clone(at), more)
	}
	for i := len(at); i < len(qs); i++ {
		at = append(at, i)
	}
	r.first.read(ctx, qs, as, at) // own, trimmed, copies, splits, bounds, ladders, stale, flights; and from there finals and origins
	for i := range qs {           // one with a final has all that it sums up
		if qs[i].Rolling {
			as[i].Incomplete = !as[i].Primed && as[i].Err == nil && as[i].Source != rankcache.SourceFinal
		}
	}
}

// Count has the hot tier count a read of the board.
func (r *Reader) Count(id rankcache.BoardID) { r.copies.count(id) }

// Written tells that a hot page is behind Redis. The channel is closed once it was read again; nil: there is none.
func (r *Reader) Written(id rankcache.BoardID) <-chan struct{} {
	if r.written == nil {
		return nil
	}
	return r.written(id)
}

// Tier returns where the board is read now, for callers of a room; it does not count.
func (r *Reader) Tier(board rankcache.BoardID, room string) Tier {
	a := rankcache.One(context.Background(), r, rankcache.Query{Board: board, Room: room, Limit: 1, CopiesOnly: true, Uncounted: true})
	switch {
	case errors.Is(a.Err, ErrBlocked):
		return TierBlocked
	case a.Err != nil:
		return TierRedis
	case a.Source == rankcache.SourceHot:
		return TierHot
	}
	return TierLocal
}

// Tiers returns the operator's tiers of this moment.
func (r *Reader) Tiers() *rooms.Tiers { return r.copies.tiers() }

// Keeps reports whether the whole board is kept open here, be it bypassed or not.
func (r *Reader) Keeps(id rankcache.BoardID) bool {
	if r.copies.boards == nil || r.copies.tiers().Mode(id, "") != rooms.ModeSuperHot {
		return false
	}
	b, ok := r.copies.boards.Get(id)
	return ok && rankcache.One(context.Background(), b, rankcache.Query{}).Err == nil
}

// EndWaits has reads that wait for a local copy, now or later, answered by Redis: the process is about to end.
func (r *Reader) EndWaits() { r.bounds.waits.end.Do(func() { close(r.bounds.waits.ended) }) }

// Profiles returns the source of profiles, nil if there is none.
func (r *Reader) Profiles() Profiles { return r.profiles }
