package sidecar

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"

	"rankcache"
)

// Origin is Redis, the system of record, or the ledger behind it. Its errors wrap
// [rankcache.ErrUnavailable] or [rankcache.ErrUnknownMember]; any other is
// answered like the first.
type Origin interface {
	Page(ctx context.Context, board rankcache.BoardID, start, limit int, order rankcache.Direction) (rankcache.Page, error)
	Standings(ctx context.Context, board rankcache.BoardID, members []string, order rankcache.Direction) ([]rankcache.Standing, rankcache.Stamp, error)
	// RankedStandings is Standings in the direction of q, with the members that have a
	// better score than each.
	RankedStandings(ctx context.Context, q rankcache.PageQuery, members []string) ([]rankcache.Standing, []rankcache.Ahead, rankcache.Stamp, error)
	// Around's page has a stamp when the member is not on the board, too.
	Around(ctx context.Context, board rankcache.BoardID, member string, n int, order rankcache.Direction) (rankcache.Page, int, error)
	// Scores returns the scores of members that a board may have trimmed, as standings without
	// ranks: Trimmed where the member has a score.
	Scores(ctx context.Context, board rankcache.BoardID, members []string) ([]rankcache.Standing, rankcache.Stamp, error)
	// WholePages answers the queries in their order, in one round trip, each with its
	// own error. A member that is not on the board has rank 0.
	WholePages(ctx context.Context, queries []rankcache.PageQuery) []rankcache.WholePage
}

// ErrFault reports that a call to Redis panicked; the log has the details.
var ErrFault = errors.New("fault of this process, see its log")

// Defaults of [OriginLimits].
const (
	DefaultOriginTimeout = time.Second // waiting for a place and asking, together
	DefaultOriginCalls   = 32          // calls at once
	DefaultOriginQueue   = 512         // calls that wait for a place
)

// OriginLimits bounds this process's calls to Redis; zeros take the defaults.
type OriginLimits struct {
	Timeout time.Duration
	Calls   int
	Queue   int
}

// flights calls Redis: callers with the same query share one call (a flight), few calls run
// at once, a bounded number waits, further ones are refused.
//
// A caller that joins a flight may get an answer that Redis gave before the caller came, by
// at most the time of one call. For bounded queries see [fetchFresh].
type flights struct {
	origins *origins
	limits  OriginLimits
	group   singleflight.Group
	slots   *semaphore.Weighted
	pages   *topCache    // makes the pages of an answer
	waiting atomic.Int64 // flights that hold or wait for a slot
	readers atomic.Int64 // callers that wait for them
	log     *slog.Logger
	metrics *originMetrics
}

func newFlights(redis, ledger Origin, limits OriginLimits, pages *topCache, log *slog.Logger, reg prometheus.Registerer) (*flights, error) {
	limits.Timeout = cmp.Or(limits.Timeout, DefaultOriginTimeout)
	limits.Calls = cmp.Or(limits.Calls, DefaultOriginCalls)
	limits.Queue = cmp.Or(limits.Queue, DefaultOriginQueue)
	if limits.Timeout < 0 || limits.Calls < 0 || limits.Queue < 0 {
		return nil, fmt.Errorf("origin limits %+v: want positive numbers", limits)
	}
	f := &flights{limits: limits, slots: semaphore.NewWeighted(int64(limits.Calls)), pages: pages, log: log}
	var err error
	f.metrics, err = newOriginMetrics(reg, &f.waiting, &f.readers)
	f.origins = &origins{redis: asked{redis, SourceRedis}, ledger: asked{ledger, SourceLedger}, metrics: f.metrics}
	return f, err
}

// page returns a run of rows. Callers that share the flight also share its pages.
func (f *flights) page(ctx context.Context, q Query, start, limit int) (Answer, error) {
	if err := q.Board.Check(); err != nil {
		return Answer{}, err
	}
	q = q.own()
	key := fmt.Sprintf("page\x00%s\x00%d\x00%d\x00%d", q.Board, q.Order, start, limit)
	return fetchFresh(ctx, f, &q, "page", key, func(ctx context.Context, of asked) (Answer, error) {
		page, err := of.Page(ctx, q.Board, start, limit, q.Order)
		return Answer{Page: page, Source: of.source, CurrentAt: page.At, pages: f.pages.shared()}, err
	})
}

func (f *flights) standings(ctx context.Context, q Query, dst []rankcache.Standing, members []string) (Standings, error) {
	if err := q.check(members); err != nil {
		return Standings{}, err
	}
	q = q.own()
	names := strings.Join(members, "\x00") // a copy; no member holds a control character
	key := fmt.Sprintf("standings\x00%s\x00%d\x00%s", q.Board, q.Order, names)
	s, err := fetchFresh(ctx, f, &q, "standings", key, func(ctx context.Context, of asked) (Standings, error) {
		rows, stamp, err := of.Standings(ctx, q.Board, strings.Split(names, "\x00"), q.Order)
		return Standings{Stamp: stamp, Source: of.source, CurrentAt: stamp.At, Rows: rows}, err
	})
	s.Rows = append(dst, s.Rows...) // callers that share the flight share its rows
	return s, err
}

// ranked returns standings with what is ahead of them, which callers share; the rows they don't.
func (f *flights) ranked(ctx context.Context, q Query, w rankcache.PageQuery, members []string) (Standings, error) {
	if err := q.check(members); err != nil {
		return Standings{}, err
	}
	q = q.own()
	w.Board, w.Order = q.Board, q.Order
	names := strings.Join(members, "\x00")
	key := fmt.Sprintf("ranked\x00%s\x00%d\x00%d\x00%s", q.Board, q.Order, w.Form, names)
	s, err := fetchFresh(ctx, f, &q, "ranked", key, func(ctx context.Context, of asked) (Standings, error) {
		rows, ahead, stamp, err := of.RankedStandings(ctx, w, strings.Split(names, "\x00"))
		return Standings{Stamp: stamp, Source: of.source, CurrentAt: stamp.At, Rows: rows, Ahead: ahead}, err
	})
	s.Rows = slices.Clone(s.Rows)
	return s, err
}

func (f *flights) around(ctx context.Context, q Query, member string, n int) (Answer, int, error) {
	if err := q.check([]string{member}); err != nil {
		return Answer{}, 0, err
	}
	q, member = q.own(), strings.Clone(member)
	type found struct {
		Answer
		rank int
	}
	key := fmt.Sprintf("around\x00%s\x00%d\x00%d\x00%s", q.Board, q.Order, n, member)
	a, err := fetchFresh(ctx, f, &q, "around", key, func(ctx context.Context, of asked) (found, error) {
		page, rank, err := of.Around(ctx, q.Board, member, n, q.Order)
		if own := rank - 1 - page.Start; err == nil && (own < 0 || own >= len(page.Entries)) {
			err = fmt.Errorf("origin answered rank %d with %d rows from %d", rank, len(page.Entries), page.Start)
		}
		return found{Answer{Page: page, Source: of.source, CurrentAt: page.At}, rank}, err
	})
	return a.Answer, a.rank, err
}

// whole asks for one whole page.
func (f *flights) whole(ctx context.Context, q Query, ask *rankcache.PageQuery) (wholePage, error) {
	return fetchFreshBy(ctx, f, &q, "whole", keyOf([]rankcache.PageQuery{*ask}), func(ctx context.Context) (wholePage, error) {
		w := f.askWhole(ctx, "whole", []rankcache.PageQuery{*ask})[0]
		return w, w.Err
	})
}

// wholes asks for several whole pages in one call. Each has its own error; the error that is
// returned is of all of them.
func (f *flights) wholes(ctx context.Context, asks []rankcache.PageQuery) ([]wholePage, error) {
	pages, _, err := fly(ctx, f, "batch", "batch\x00"+keyOf(asks), func(ctx context.Context) ([]wholePage, error) {
		return f.askWhole(ctx, "batch", asks), nil
	})
	return pages, err
}

// keyOf names the queries; no id holds a control character.
func keyOf(asks []rankcache.PageQuery) string {
	key := make([]byte, 0, 64*len(asks))
	for i := range asks {
		w := &asks[i]
		key = fmt.Appendf(key, "whole\x00%s\x00%d\x00%d\x00%d\x00%s\x00%d\x00%t\x00%t\x00%d\x00", w.Board, w.Order, w.Start, w.Limit, w.Member, w.Around, w.Gap, w.Ranked(), w.Form)
	}
	return string(key)
}

func checkAsk(w *rankcache.PageQuery) error {
	if w.Member == "" {
		return w.Board.Check()
	}
	return cmp.Or(w.Board.Check(), rankcache.CheckMember(w.Member))
}

// wholePage is a page with what answered.
type wholePage struct {
	rankcache.WholePage
	source Source
}

// moment is an answer with the moment of the board that it is of, and what answered.
type moment interface {
	moment() (rankcache.Stamp, Source)
}

func (a Answer) moment() (rankcache.Stamp, Source)    { return a.Stamp, a.Source }
func (s Standings) moment() (rankcache.Stamp, Source) { return s.Stamp, s.Source }
func (w wholePage) moment() (rankcache.Stamp, Source) { return w.Stamp, w.source }

// fetchFresh is fly for a query that may bound the age of its answer.
//
// A flight that was joined may have read Redis before the caller wrote what it now wants to
// read. If its answer is not within the bounds, the caller joins or begins the next flight:
// that begins after the caller came, so the second answer is final.
//
//	writer            A                        B
//	                  a1 begins a flight
//	w1 writes seq 7   a2 Redis answers seq 6
//	                                           b1 wants seq 7, joins
//	                  a3 the flight lands      b2 has seq 6, begins another
func fetchFresh[T moment](ctx context.Context, f *flights, q *Query, op, key string, call func(context.Context, asked) (T, error)) (T, error) {
	return fetchFreshBy(ctx, f, q, op, key, func(ctx context.Context) (T, error) { return ask(ctx, f, op, call) })
}

func fetchFreshBy[T moment](ctx context.Context, f *flights, q *Query, op, key string, fetch func(context.Context) (T, error)) (T, error) {
	came := time.Now()
	for again := false; ; again = true {
		v, own, err := fly(ctx, f, op, key, fetch)
		if !q.Bounded() || err != nil && !errors.Is(err, rankcache.ErrUnknownMember) {
			return v, err
		}
		at, source := v.moment()
		last := own || again
		if source == SourceLedger && last {
			return v, cmp.Or(q.tooOld(at), err)
		}
		inTime := last || q.MaxAge == 0 || came.Sub(at.At) <= q.MaxAge
		switch {
		case inTime && q.reached(at.State):
			return v, err
		case last:
			return v, q.missed(at.State)
		}
	}
}

// fly returns the result of fetch, called once for all callers that come with the same key
// meanwhile; own reports whether this caller began the flight. The flight goes on when its
// first caller leaves: others wait for it, and its own time-out ends it. Its spans belong to
// the trace of the first caller.
func fly[T any](ctx context.Context, f *flights, op, key string, fetch func(context.Context) (T, error)) (v T, own bool, err error) {
	began := false
	landed := f.group.DoChan(key, func() (any, error) {
		began = true                                                                     // read when it has landed
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.limits.Timeout) // its trace
		defer cancel()
		return fetchOnce(ctx, f, op, fetch)
	})
	f.readers.Add(1)
	defer f.readers.Add(-1)
	select {
	case <-ctx.Done():
		return v, false, fmt.Errorf("%w: the caller's deadline passed: %w", rankcache.ErrUnavailable, ctx.Err())
	case res := <-landed:
		if res.Shared {
			f.metrics.shared.Inc() // counts the flight's first caller too
		}
		return res.Val.(T), began, res.Err
	}
}

// fetchOnce waits for a slot and fetches.
func fetchOnce[T any](ctx context.Context, f *flights, op string, fetch func(context.Context) (T, error)) (v T, err error) {
	defer f.waiting.Add(-1)
	if f.waiting.Add(1) > int64(f.limits.Calls+f.limits.Queue) {
		f.metrics.done(op, ErrOverloaded, 0)
		return v, ErrOverloaded
	}
	if f.slots.Acquire(ctx, 1) != nil {
		f.metrics.done(op, ErrOverloaded, 0)
		return v, fmt.Errorf("%w: no place within %v", ErrOverloaded, f.limits.Timeout)
	}
	defer f.slots.Release(1)
	return fetch(ctx)
}

// guard turns a panic of fetch into the error of its flight: no caller's stack could
// recover it, so it would end the process.
func guard[T any](ctx context.Context, f *flights, op string, fetch func(context.Context) (T, error)) (v T, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			f.log.Error("a call to Redis or the ledger panicked", "op", op, "fault", fault, "stack", string(debug.Stack()))
			err = ErrFault
		}
	}()
	return fetch(ctx)
}
