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
	"rankcache/internal/metric"
	"rankcache/rooms"
)

// MaxWait is the longest that a read waits for the local copy, whatever its [rankcache.Query].Wait is.
const MaxWait = 5 * time.Second

const (
	// maxWaiters is how many reads wait for local copies at once; a further one goes to Redis without waiting.
	maxWaiters = 1024
	// pollEvery is the pause between two polls of a copy, as long as few reads wait.
	pollEvery = 2 * time.Millisecond
	// pollShare is what each waiting read adds to that pause: all together poll 20,000 times a second at most.
	pollShare = 50 * time.Microsecond
)

// ErrNotReached reports that Redis has not counted up to [rankcache.Query].MinSeq: it lost writes or never had it.
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

// bounds judges the copies that have answered queries with bounds: one that does not meet them, and does not so within
// Wait, counts as missing. The error is [ErrWriteLost] if a local copy has been through another state than MinState.
type bounds struct {
	next   source
	copies *copies // read again while one is behind
	tiers  func() *rooms.Tiers
	lags   bool // see Config.OriginLags
	waits  *waits
}

func newBounds(cfg Config, reg prometheus.Registerer, next source) (b *bounds, err error) {
	b = &bounds{next: next, tiers: cfg.Tiers, lags: cfg.OriginLags}
	b.waits, err = newWaits(reg)
	return b, err
}

// toJudge reports whether a copy has answered, so that bounds can be compared with it.
func toJudge(a *rankcache.Answer) bool {
	return a.Err == nil || errors.Is(a.Err, rankcache.ErrRankMode)
}

// read has all queries wait at once: the last has no longer to wait than the first.
func (b *bounds) read(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer, at []int) {
	var began time.Time // zero: none has waited
	pass(ctx, qs, as, at, func(i int) bool {
		if !qs[i].Bounded() || !toJudge(&as[i]) {
			return false
		}
		b.settle(ctx, qs[i:i+1], as[i:i+1], &began)
		return settled(&qs[i], &as[i])
	}, b.next)
}

// settle leaves the answer of a copy that meets the bounds of a query, or an error. It sets when the first query began
// to wait.
func (b *bounds) settle(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer, began *time.Time) {
	q, a := &qs[0], &as[0]
	by, v := answeredCopy, b.judge(q, a)
	if v == behind && q.Wait > 0 && b.waits.enter() {
		if by = answeredWaited; began.IsZero() {
			*began = time.Now()
		} else { // while others were waited for
			v = b.again(ctx, qs, as)
		}
		if v == behind {
			v = b.await(ctx, qs, as, began.Add(min(q.Wait, MaxWait)))
		}
		b.waits.leave()
	}
	if v != enough && v != lost {
		by = answeredRedis
		a.Fail(rankcache.ErrNotKept)
	}
	b.waits.answered(by)
}

// await reads the copy again while it is behind q; the verdict is unknown once it is the end or there is none.
func (b *bounds) await(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer, end time.Time) verdict {
	for {
		left := time.Until(end)
		if left <= 0 || !b.waits.pause(ctx, left) {
			return unknown
		}
		if v := b.again(ctx, qs, as); v != behind {
			return v
		}
	}
}

// again judges the copy of now.
func (b *bounds) again(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer) verdict {
	b.copies.copy(ctx, qs, as, false)
	if as[0].Err != nil {
		return unknown
	}
	return b.judge(&qs[0], &as[0])
}

// judge returns whether the answer of a copy meets the bounds of q, and makes it an error if its board has been through
// another state. Redis may be further than a hot page. A copy that is too old by its age decides nothing.
func (b *bounds) judge(q *rankcache.Query, a *rankcache.Answer) verdict {
	if a.Seq < q.MinSeq || q.MaxAge != 0 && time.Since(a.CurrentAt) > q.MaxAge {
		return behind
	}
	if a.Source != rankcache.SourceLocal {
		return min(compare(&q.MinState, a.State), unknown)
	}
	board, open := b.copies.boards.Get(q.Board)
	if !open { // since it has answered
		return unknown
	}
	v, have := compareLocal(&q.MinState, board, a.State)
	switch {
	case v == lost && b.lags: // the copy may be of the history that is lost
		return unknown
	case v == lost:
		a.Fail(&WriteLostError{q.MinState, have, rankcache.SourceLocal})
	case v == unknown && have.Run == q.MinState.Run && b.tiers().Durable(q.Board):
		return enough // its sum is forgotten, but no other change of the run had that seq
	}
	return v
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
	set := metric.New(reg, "bounded_reads_")
	answers := set.Counters("total", "Reads with max_age_ms, min_seq or min_state of a board that has a local copy, by answer: from the copy at once (copy), after waiting for it (waited), or by Redis (redis).", "answer")
	for i, by := range [answeredBy]string{"copy", "waited", "redis"} {
		w.by[i] = answers.WithLabelValues(by)
	}
	set.GaugeFunc("waiting", "Reads that now wait for a local copy to be fresh enough.", func() float64 { return float64(w.n.Load()) })
	return w, set.Err()
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

// pause waits until the next poll, at most left. It returns false when the read may not wait any longer.
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
