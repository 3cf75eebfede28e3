package sidecar

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
	"rankcache/rooms"
)

// Reader answers reads of boards from the nearest tier that may. All methods
// may be called concurrently.
type Reader struct {
	tiers    func() *rooms.Tiers
	check    func(rankcache.BoardID) error
	boards   Boards
	hot      Hot
	profiles Profiles
	flights  *flights
	ladders  *ladders // nil: all ranks are exact
	lags     bool     // see Config.OriginLags
	waits    *waits
	trimmed  trimmed
	trends   trends
	splits   splits
}

// NewReader returns a reader and registers its metrics. It starts nothing.
func NewReader(cfg Config, reg prometheus.Registerer) (*Reader, error) {
	if cfg.Tiers == nil || cfg.Origin == nil {
		return nil, errors.New("a reader needs tiers and an origin")
	}
	if cfg.CheckBoard == nil {
		cfg.CheckBoard = rankcache.BoardID.Check
	}
	flights, err := newFlights(cfg.Origin, cfg.Ledger, cfg.Tiers, cfg.Limits, cmp.Or(cfg.Log, slog.New(slog.DiscardHandler)), reg)
	if err != nil {
		return nil, err
	}
	flights.lags = cfg.OriginLags
	waits, err := newWaits(reg)
	if err != nil {
		return nil, err
	}
	r := &Reader{tiers: cfg.Tiers, check: cfg.CheckBoard, boards: cfg.Boards, hot: cfg.Hot, profiles: cfg.Profiles, flights: flights, lags: cfg.OriginLags, waits: waits, splits: splits{every: lookEvery}}
	if cfg.Ladders != nil {
		r.ladders, err = newLadders(cfg.Ladders, cfg.Limits.Timeout, cmp.Or(cfg.Log, slog.New(slog.DiscardHandler)), reg)
	}
	return r, err
}

// Read implements [rankcache.Reader]. It sets the queries' Form, Order and Rolling. What Redis has to answer
// of several queries is asked in one call.
//
// Beside the page of a hot board, and beside a plain page of Redis ([rankcache.Query.Plain]),
// members that are not on the page are of a later moment, with an error of their own. Only
// whole local boards have dense ranks, down to [rankcache.MaxDense]; for others the error is
// [rankcache.ErrRankMode].
//
// Ranks of [rankcache.Approx] are from a ladder where Redis answers a single query for members alone or beside rows, and has one; exact else.
//
// A member without a rank, on a board that keeps only its best members in the sorted set, has its
// score: Redis is asked for that once in 10 s.
//
// A read of the first rows of a local or hot board takes no lock and allocates nothing.
func (r *Reader) Read(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer) {
	if len(qs) == 1 {
		if !r.readHere(ctx, qs, as) {
			if as[0].Err == errSplit {
				r.readSplit(ctx, &qs[0], &as[0])
				return
			}
			if qs[0].Mode == rankcache.Approx && r.ladders != nil {
				r.readApproximate(ctx, &qs[0], &as[0])
			} else {
				r.flights.read(ctx, &qs[0], &as[0])
			}
			r.take(qs, as)
		}
		if r.wantsScores(&qs[0], &as[0]) {
			r.addScores(ctx, &qs[0], &as[0])
		}
		if qs[0].Range != nil {
			r.lookBeyond(&qs[0], &as[0])
		}
		complete(&qs[0], &as[0])
		return
	}
	var rest []int // what Redis is asked for
	for i := range qs {
		if r.readHere(ctx, qs[i:i+1], as[i:i+1]) {
			continue
		}
		if as[i].Err == errSplit {
			r.readSplit(ctx, &qs[i], &as[i])
		} else {
			rest = append(rest, i)
		}
	}
	if len(rest) > 0 {
		r.flights.readAll(ctx, qs, as, rest)
		r.take(qs, as)
	}
	var trimmed []int
	for i := range qs {
		if as[i].Shards != nil {
			continue
		}
		if r.wantsScores(&qs[i], &as[i]) {
			trimmed = append(trimmed, i)
		}
		if qs[i].Range != nil {
			r.lookBeyond(&qs[i], &as[i])
		}
	}
	if len(trimmed) > 0 {
		r.addAllScores(ctx, qs, as, trimmed)
	}
	for i := range qs {
		complete(&qs[i], &as[i])
	}
}

// addAllScores sets the scores of members without a rank, in the answers at some places.
func (r *Reader) addAllScores(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer, at []int) {
	var scores sync.WaitGroup
	for _, i := range at {
		scores.Go(func() { r.addScores(ctx, &qs[i], &as[i]) })
	}
	scores.Wait()
}

// complete tells whether the board does not have all that it sums up. One with a final has.
func complete(q *rankcache.Query, a *rankcache.Answer) {
	if q.Rolling {
		a.Incomplete = !a.Primed && a.Err == nil && a.Source != rankcache.SourceFinal
	}
}

// take gives the origin's answers to the hot tier, which looks at their source.
func (r *Reader) take(qs []rankcache.Query, as []rankcache.Answer) {
	for i := 0; i < len(qs) && r.hot != nil; i++ {
		r.hot.Take(&qs[i], &as[i])
	}
}

// readHere answers one query as far as that is possible here. It returns false if Redis has to
// be asked, for all or, if there is no error, for members.
func (r *Reader) readHere(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer) bool {
	q, a := &qs[0], &as[0]
	if err := check(q); err != nil {
		a.Fail(err)
		return true
	}
	if q.Bounded() {
		return r.readBounded(ctx, qs, as)
	}
	r.readCopy(ctx, qs, as, !q.Uncounted)
	return settled(q, a)
}

// settled reports whether nothing is left to ask Redis for after the copies, and turns what it
// can't be asked for into an error.
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

// readCopy answers from the copy that the operator's tier names: the whole board, or else the
// hot page. The board is returned if that has answered. A super-hot board that is not open is
// read from the next tier. A local copy that has no super-hot mode any more (its room just
// left the file) is not read, nor is any copy of a board that is bypassed, or one of an ended board
// that has no member while its final may.
func (r *Reader) readCopy(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer, count bool) Board {
	q, a := &qs[0], &as[0]
	tiers := r.tiers()
	var mode rooms.Mode
	var shards int
	mode, q.Form, q.Rolling, shards = tiers.Of(q.Board, q.Room)
	q.Order = q.Form.Direction(q.Order)
	if shards > 0 && mode != rooms.ModeBlocked {
		a.Fail(errSplit)
		return nil
	}
	bypassed := tiers.Bypassed(q.Board)
	a.Fail(rankcache.ErrNotKept)
	var board Board
	if mode == rooms.ModeSuperHot && r.boards != nil && !bypassed {
		if b, ok := r.boards.Get(q.Board); ok {
			board = b
			b.Read(ctx, qs, as)
		}
	}
	local := a.Err != rankcache.ErrNotKept
	if !local {
		if err := r.check(q.Board); err != nil { // before anything is asked for it
			a.Fail(err)
			return nil
		}
	}
	if mode == rooms.ModeBlocked {
		a.Fail(ErrBlocked)
		return nil
	}
	if count {
		r.Count(q.Board)
	}
	if !local {
		if board = nil; r.hot != nil && !bypassed {
			r.hot.Read(ctx, qs, as)
		}
	}
	if a.Members == 0 {
		if _, lacks := r.flights.origins.finals.lacks(q, a); lacks {
			a.Fail(rankcache.ErrNotKept)
			return nil
		}
	}
	return board
}

// Count has the hot tier count a read of the board.
func (r *Reader) Count(id rankcache.BoardID) {
	if r.hot != nil {
		r.hot.Count(id)
	}
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
func (r *Reader) Tiers() *rooms.Tiers { return r.tiers() }

// Keeps reports whether the whole board is kept open here, be it bypassed or not.
func (r *Reader) Keeps(id rankcache.BoardID) bool {
	if r.boards == nil || r.tiers().Mode(id, "") != rooms.ModeSuperHot {
		return false
	}
	b, ok := r.boards.Get(id)
	return ok && rankcache.One(context.Background(), b, rankcache.Query{}).Err == nil
}

// EndWaits has reads that wait for a local copy, now or later, answered by Redis at once.
// It is for a process that is about to end.
func (r *Reader) EndWaits() { r.waits.end.Do(func() { close(r.waits.ended) }) }

// Profiles returns the source of profiles, nil if there is none.
func (r *Reader) Profiles() Profiles { return r.profiles }
