package sidecar

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"

	"rankcache"
)

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
// at most the time of one call. For bounded queries see [flights.fresh].
type flights struct {
	origin  *finals
	hot     Hot
	limits  OriginLimits
	lags    bool // see Config.OriginLags
	group   singleflight.Group
	slots   *semaphore.Weighted
	waiting atomic.Int64 // flights that hold or wait for a slot
	readers atomic.Int64 // callers that wait for them
	metrics *originMetrics
}

func newFlights(cfg Config, reg prometheus.Registerer) (*flights, error) {
	limits := cfg.Limits
	limits.Timeout = cmp.Or(limits.Timeout, DefaultOriginTimeout)
	limits.Calls = cmp.Or(limits.Calls, DefaultOriginCalls)
	limits.Queue = cmp.Or(limits.Queue, DefaultOriginQueue)
	if limits.Timeout < 0 || limits.Calls < 0 || limits.Queue < 0 {
		return nil, fmt.Errorf("origin limits %+v: want positive numbers", limits)
	}
	f := &flights{hot: cfg.Hot, lags: cfg.OriginLags, limits: limits, slots: semaphore.NewWeighted(int64(limits.Calls))}
	var err error
	f.metrics, err = newOriginMetrics(reg, &f.waiting, &f.readers)
	f.origin = newFinals(&origins{log: cfg.Log, redis: asked{cfg.Origin, rankcache.SourceRedis}, ledger: asked{cfg.Ledger, rankcache.SourceLedger}, metrics: f.metrics}, cfg.Tiers)
	return f, err
}

// read sets what the answers lack: all if one has an error, else members. The hot tier gets heads of pages.
func (f *flights) read(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer, at []int) {
	if len(qs) == 1 {
		f.readOne(ctx, &qs[0], &as[0])
	} else {
		f.readAll(ctx, qs, as, at)
	}
	for i := 0; i < len(at) && f.hot != nil; i++ {
		f.hot.Take(&qs[at[i]], &as[at[i]])
	}
}

// readOne sets what a lacks of q's answer. A plain page and members are two flights: callers share the page.
func (f *flights) readOne(ctx context.Context, q *rankcache.Query, a *rankcache.Answer) {
	ask := missing(q, a)
	if ask.Limit > 0 && q.Plain() {
		ask.Members, ask.Ladder = nil, nil
	}
	f.fill(q, a, f.fresh(ctx, &ask))
	if a.Err == nil && lacks(a) {
		ask = missing(q, a)
		f.fill(q, a, f.fresh(ctx, &ask))
	}
}

// readAll is readOne for several queries, in one call of the origin but for those with bounds.
func (f *flights) readAll(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer, at []int) {
	var asks []rankcache.Query
	var asked []int
	for _, i := range at {
		ask := missing(&qs[i], &as[i])
		if err := checkIDs(&ask); err != nil || ask.Bounded() {
			f.readOne(ctx, &qs[i], &as[i])
			continue
		}
		asks, asked = append(asks, own(&ask)), append(asked, i)
	}
	if len(asks) == 0 {
		return
	}
	found, _, err := f.fly(ctx, "batch", asks)
	for n, i := range asked {
		if err != nil {
			f.fill(&qs[i], &as[i], rankcache.Answer{Err: err})
		} else {
			f.fill(&qs[i], &as[i], found[n])
		}
	}
}

func missing(q *rankcache.Query, a *rankcache.Answer) rankcache.Query {
	ask := *q
	if a.Err != nil {
		return ask
	}
	ask.Start, ask.Limit, ask.Members, ask.Scores, ask.Range = 0, 0, nil, nil, nil
	for i := range a.Own {
		if a.Own[i].Err == rankcache.ErrNotKept {
			if ask.Members = append(ask.Members, a.Own[i].Member); q.Scores != nil {
				ask.Scores = append(ask.Scores, q.Scores[i])
			}
		}
	}
	return ask
}

// fill adds to a what was found, which other callers share.
func (f *flights) fill(q *rankcache.Query, a *rankcache.Answer, found rankcache.Answer) {
	if a.Err == nil {
		next := 0
		for i := range a.Own {
			if own := &a.Own[i]; own.Err == rankcache.ErrNotKept {
				if own.Err = found.Err; found.Err == nil {
					member := own.Member // of the request
					*own = found.Own[next]
					own.Member = member
				}
				next++
			}
		}
		return
	}
	room := a.Own
	*a = found
	if a.Own = append(room[:0], found.Own...); a.Err == nil && len(a.Own) < len(q.Members) {
		for _, m := range q.Members {
			a.Own = append(a.Own, rankcache.Own{Standing: rankcache.Standing{Member: m}, Stamp: a.Stamp, Source: a.Source})
		}
		a.Find(q, a.Entries, a.Start)
	}
}

// own returns q with strings that may outlive the request.
func own(q *rankcache.Query) rankcache.Query {
	o := *q
	o.Board, o.Room, o.Members = rankcache.BoardID(strings.Clone(string(q.Board))), "", slices.Clone(q.Members)
	for i, m := range o.Members {
		o.Members[i] = strings.Clone(m)
	}
	o.Scores = slices.Clone(q.Scores)
	if q.Range != nil {
		scores := *q.Range
		o.Range = &scores
	}
	return o
}

// opOf names a query in metrics.
func opOf(q *rankcache.Query) string {
	switch {
	case q.Trimmed:
		return "scores"
	case !q.Plain() || q.Limit > 0 && len(q.Members) > 0:
		return "whole"
	case q.Limit > 0:
		return "page"
	}
	return "standings"
}

// keyOf names the queries; no id holds a control character.
func keyOf(op string, qs []rankcache.Query) string {
	key := append(make([]byte, 0, 64*len(qs)), op...)
	for i := range qs {
		q := &qs[i]
		if q.Primary {
			key = append(key, "\x00\x00primary"...)
		}
		if q.Ladder != nil {
			key = fmt.Appendf(key, "\x00\x00%d\x00%d", q.Ladder.Run, q.Ladder.Seq)
		}
		key = fmt.Appendf(key, "\x00\x00%s\x00%d\x00%d\x00%d\x00%d\x00%t\x00%t\x00%d", q.Board, q.Order, q.Start, q.Limit, q.Around, q.Gap, q.Ranked(), q.Form)
		if q.Range != nil {
			least, most := q.RawRange()
			key = fmt.Appendf(key, "\x00\x00%b\x00%b", least, most)
		}
		for i, m := range q.Members {
			if key = append(append(key, 0), m...); q.Scores != nil {
				key = fmt.Appendf(key, "\x00\x00%b", q.Scores[i])
			}
		}
	}
	return string(key)
}

// fresh is fly for a query that may bound the age of its answer.
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
func (f *flights) fresh(ctx context.Context, q *rankcache.Query) rankcache.Answer {
	if err := checkIDs(q); err != nil {
		return rankcache.Answer{Err: err}
	}
	came, ask := time.Now(), []rankcache.Query{own(q)}
	for again := false; ; {
		found, began, err := f.fly(ctx, opOf(q), ask)
		if err != nil {
			return rankcache.Answer{Err: err}
		}
		a := found[0]
		if !q.Bounded() || a.Err != nil {
			return a
		}
		last := began || again
		if (f.lags || a.Source == rankcache.SourceLedger) && last {
			if err := tooOld(q, &a, asOf(&a, f.lags)); err != nil {
				return rankcache.Answer{Err: err}
			}
			return a
		}
		inTime := last && !a.Lags || q.MaxAge == 0 || came.Sub(asOf(&a, f.lags)) <= q.MaxAge
		again = true
		switch {
		case inTime && reached(q, a.State):
			return a
		case a.Lags: // of a flight for another query; one to the primary may be on its way since before the caller came
			ask[0].Primary, again = true, false
		case last:
			return rankcache.Answer{Err: missed(q, a.State)}
		}
	}
}

// fly returns the origin's answers, which are shared, asked once for all callers with the same queries; began: by this
// one. It goes on when its first caller leaves, until its own time-out; its spans are of his trace.
func (f *flights) fly(ctx context.Context, op string, qs []rankcache.Query) (as []rankcache.Answer, began bool, err error) {
	mine := false // no result, which a caller that leaves would set beside the flight
	landed := f.group.DoChan(keyOf(op, qs), func() (any, error) {
		mine = true                                                                      // read when it has landed
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.limits.Timeout) // its trace
		defer cancel()
		return f.fetch(ctx, op, qs)
	})
	f.readers.Add(1)
	defer f.readers.Add(-1)
	select {
	case <-ctx.Done():
		return nil, false, fmt.Errorf("%w: the caller's deadline passed: %w", rankcache.ErrUnavailable, ctx.Err())
	case res := <-landed:
		if res.Shared {
			f.metrics.shared.Inc() // counts the flight's first caller too
		}
		as, _ = res.Val.([]rankcache.Answer)
		return as, mine, res.Err
	}
}

// fetch waits for a slot and asks.
func (f *flights) fetch(ctx context.Context, op string, qs []rankcache.Query) ([]rankcache.Answer, error) {
	defer f.waiting.Add(-1)
	if f.waiting.Add(1) > int64(f.limits.Calls+f.limits.Queue) {
		f.metrics.done(op, ErrOverloaded, 0)
		return nil, ErrOverloaded
	}
	if f.slots.Acquire(ctx, 1) != nil {
		f.metrics.done(op, ErrOverloaded, 0)
		return nil, fmt.Errorf("%w: no free call within %v", ErrOverloaded, f.limits.Timeout)
	}
	defer f.slots.Release(1)
	as := f.origin.ask(ctx, op, qs)
	if op == "page" && as[0].Kept == nil { // what is kept for it is shared by those who share the flight
		as[0].Kept = new(rankcache.Kept)
	}
	return as, nil
}
