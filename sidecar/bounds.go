package sidecar

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
)

// MaxWait is the longest that a read waits for the local copy, whatever its
// [Query].Wait is.
const MaxWait = 5 * time.Second

const (
	// maxWaiters is how many reads wait for local copies at once; a further one
	// goes to Redis without waiting.
	maxWaiters = 1024
	// pollEvery is the pause between two polls of a copy, as long as few reads wait.
	pollEvery = 2 * time.Millisecond
	// pollShare is the time that each waiting read adds to that pause, so that all of them
	// together poll 20,000 times a second at most.
	pollShare = 50 * time.Microsecond
)

// ErrNotReached reports that Redis itself has not counted up to [Query].MinSeq: it
// lost writes, keeps no seq of the board, or was never at that number.
var ErrNotReached = errors.New("board has not reached the seq")

// NotReachedError is [ErrNotReached] with the numbers.
type NotReachedError struct {
	Want uint64
	Have uint64 // 0: Redis keeps no seq of the board
}

func (e *NotReachedError) Error() string {
	if e.Have == 0 {
		return fmt.Sprintf("%v: want %d, and Redis knows none", ErrNotReached, e.Want)
	}
	return fmt.Sprintf("%v: want %d, and Redis is at %d", ErrNotReached, e.Want, e.Have)
}

// Is reports whether target is [ErrNotReached].
func (e *NotReachedError) Is(target error) bool { return target == ErrNotReached }

// holds reports whether the place answers rows or, with limit 0, standings
// without asking Redis.
func (at *place) holds(start, limit int, q *Query) bool {
	return at.tier == TierLocal || limit > 0 && at.top != nil && covers(at.top, start, limit, q.Order)
}

// judge returns whether the copy at the place may answer q, and the state that differs if
// one is lost. The age is read first: a copy that is published in between is only newer.
// A copy that is too old by its age decides nothing.
func (at *place) judge(q *Query) (verdict, rankcache.State) {
	currentAt := at.hotAt
	if at.tier == TierLocal {
		currentAt = at.board.CurrentAt()
		if at.top = at.board.Top(); at.top == nil {
			return behind, rankcache.State{}
		}
	}
	switch {
	case !q.fresh(at.top.Seq, currentAt):
		return behind, at.top.State
	case at.tier == TierLocal:
		return q.compareLocal(at.board, at.top.State)
	}
	return min(q.compare(at.top.State), unknown), at.top.State // Redis may be further than its page
}

// resolveBounds returns where a bounded q is read: limit rows from start, or standings if
// limit is 0. That is the place at if it has a copy that is fresh enough, or becomes so
// within q.Wait, and otherwise Redis. A place without a copy is returned as it is. The
// error is [ErrWriteLost], if a local copy has been through another state than MinState.
func (w *waits) resolveBounds(ctx context.Context, p *places, q *Query, at place, start, limit int) (place, error) {
	if !at.holds(start, limit, q) {
		return at, nil
	}
	by, form := answeredCopy, at.form
	v, have := at.judge(q)
	if v == behind && q.Wait > 0 && w.enter() {
		defer w.leave()
		by = answeredWaited
		at, v, have = w.await(ctx, p, q, start, limit)
	}
	switch v {
	case enough:
		w.answered(by)
		return at, nil
	case lost:
		w.answered(by)
		return at, &WriteLostError{q.MinState, have, SourceLocal}
	}
	w.answered(answeredRedis)
	return place{tier: TierRedis, form: form}, nil
}

// await polls the copy while it is behind q. The verdict is unknown when q.Wait is over or
// there is no copy any more.
func (w *waits) await(ctx context.Context, p *places, q *Query, start, limit int) (place, verdict, rankcache.State) {
	for end := time.Now().Add(min(q.Wait, MaxWait)); ; {
		left := time.Until(end)
		if left <= 0 || !w.pause(ctx, left) {
			return place{}, unknown, rankcache.State{}
		}
		var at place
		if p.find(q, false, &at) != nil || !at.holds(start, limit, q) {
			return place{}, unknown, rankcache.State{}
		}
		if v, have := at.judge(q); v != behind {
			return at, v, have
		}
	}
}

// Sources of a bounded read's answer.
const (
	answeredCopy = iota
	answeredWaited
	answeredRedis
	answeredBy
)

// waits bounds and counts the reads that wait for local copies.
type waits struct {
	n     atomic.Int64
	ended chan struct{} // closed when no read may wait any more
	end   sync.Once
	by    [answeredBy]prometheus.Counter
}

func newWaits(reg prometheus.Registerer) (*waits, error) {
	w := &waits{ended: make(chan struct{})}
	answers := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "rankcache_bounded_reads_total",
		Help: "Reads with max_age_ms, min_seq or min_state of a board that has a local copy, by answer: from the copy at once (copy), after waiting for it (waited), or by Redis (redis).",
	}, []string{"answer"})
	for i, by := range [answeredBy]string{"copy", "waited", "redis"} {
		w.by[i] = answers.WithLabelValues(by)
	}
	waiting := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "rankcache_bounded_reads_waiting",
		Help: "Reads that now wait for a local copy to be fresh enough.",
	}, func() float64 { return float64(w.n.Load()) })
	return w, register(reg, answers, waiting)
}

func (w *waits) answered(by int) { w.by[by].Inc() }

func (w *waits) enter() bool {
	if w.n.Add(1) > maxWaiters {
		w.n.Add(-1)
		return false
	}
	return true
}

func (w *waits) leave() { w.n.Add(-1) }

// pause waits until the next poll, at most left. It returns false when the read may not wait
// any longer.
func (w *waits) pause(ctx context.Context, left time.Duration) bool {
	every := max(pollEvery, time.Duration(w.n.Load())*pollShare)
	select {
	case <-time.After(min(left, every)):
		return true
	case <-ctx.Done():
	case <-w.ended:
	}
	return false
}
