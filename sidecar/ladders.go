package sidecar

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"rankcache"
	"rankcache/internal/metric"
)

const (
	// ladderEvery is how old a ladder gets before a newer one is asked for, ladderLives until it is not used.
	ladderEvery, ladderLives = 10 * time.Second, 30 * time.Second
	ladderRetry              = time.Second // how long after one was asked for it is asked for again
	// maxLadders is of how many boards ladders are kept, some 60 KB each; loads are asked for at the same time.
	maxLadders, maxLadderLoads = 256, 4
)

// Ladders has the ladders of boards, by which ranks are told approximately.
type Ladders interface {
	// Ladder returns the newest ladder of a board, nil if it has none yet.
	Ladder(context.Context, rankcache.BoardID) (*rankcache.Ladder, error)
}

// ladders keeps those of boards with approximate ranks. No read waits: what has none is counted by Redis.
type ladders struct {
	next    source
	source  Ladders
	timeout time.Duration
	log     *slog.Logger
	errLog  rate.Sometimes
	loads   *semaphore.Weighted
	results *prometheus.CounterVec
	ranks   *prometheus.CounterVec

	mu     sync.Mutex
	boards map[rankcache.BoardID]*keptLadder
}

type keptLadder struct {
	ladder *rankcache.Ladder
	asked  time.Time // when a newer one was asked for last
}

func newLadders(cfg Config, reg prometheus.Registerer, next source) (*ladders, error) {
	set := metric.New(reg, "")
	l := &ladders{next: next, source: cfg.Ladders, timeout: cmp.Or(cfg.Limits.Timeout, DefaultOriginTimeout), log: cfg.Log, errLog: rate.Sometimes{First: 1, Interval: 10 * time.Second}, loads: semaphore.NewWeighted(maxLadderLoads), boards: make(map[rankcache.BoardID]*keptLadder)}
	l.results = set.Counters("ladder_loads_total", "Ladders of boards, for approximate ranks, that were asked for, by result: ok, none (another process makes it), error.", "result")
	l.ranks = set.Counters("approximate_reads_total", "Reads with rank_mode=approx that Redis has answered, by what the ranks are from: ladder, or exact while there is none.", "by")
	return l, set.Err()
}

// read adds the ladder of a query for which approximate ranks will do. Neighbours and percentiles need exact ones.
func (l *ladders) read(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer, at []int) {
	q, a := &qs[0], &as[0]
	if len(qs) > 1 || q.Mode != rankcache.Approx {
		l.next.read(ctx, qs, as, at)
		return
	}
	if len(q.Members) > 0 && q.Around == 0 && !q.Gap && q.Range == nil && (q.Limit == 0 || a.Err == nil || !q.Percentile) {
		q.Ladder = l.of(q)
	}
	l.next.read(ctx, qs, as, at)
	l.learn(q, a)
}

// of returns the ladder for q, nil if there is none of its MaxAge.
func (l *ladders) of(q *rankcache.Query) *rankcache.Ladder {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := l.boards[q.Board]
	if kept == nil || kept.ladder == nil {
		return nil
	}
	age := time.Since(kept.ladder.At)
	if age > ladderLives || q.MaxAge != 0 && age > q.MaxAge {
		return nil
	}
	return kept.ladder
}

// learn counts an answer to q, and asks for a newer ladder where it is time.
func (l *ladders) learn(q *rankcache.Query, a *rankcache.Answer) {
	if a.Err != nil {
		return
	}
	used, counted := false, false
	for i := range a.Own {
		used = used || a.Own[i].Ladder != nil
		counted = counted || a.Own[i].Ladder == nil && a.Own[i].Source == rankcache.SourceRedis
	}
	switch {
	case used:
		l.ranks.WithLabelValues("ladder").Inc()
	case counted:
		l.ranks.WithLabelValues("exact").Inc()
	}
	if a.Members >= rankcache.MinLadder && (used || counted) {
		l.renew(q.Board, q.Ladder != nil && !used)
	}
}

// renew asks for a newer ladder of a board if the one that is kept is not young, or is of another run.
func (l *ladders) renew(board rankcache.BoardID, other bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := l.boards[board]
	if kept == nil {
		l.makeRoom()
		board = rankcache.BoardID(strings.Clone(string(board)))
		kept = new(keptLadder)
		l.boards[board] = kept
	}
	if other {
		kept.ladder = nil
	}
	now := time.Now()
	if kept.ladder != nil && now.Sub(kept.ladder.At) < ladderEvery || now.Sub(kept.asked) < ladderRetry || !l.loads.TryAcquire(1) {
		return
	}
	kept.asked = now
	board = rankcache.BoardID(strings.Clone(string(board)))
	go l.load(board, kept)
}

// makeRoom lets a ladder go if there are too many, one that is not used any more if there is any.
func (l *ladders) makeRoom() {
	if len(l.boards) < maxLadders {
		return
	}
	var any rankcache.BoardID
	for any = range l.boards {
		if kept := l.boards[any]; time.Since(kept.asked) > ladderLives {
			break
		}
	}
	delete(l.boards, any)
}

func (l *ladders) load(board rankcache.BoardID, kept *keptLadder) {
	defer l.loads.Release(1)
	ctx, cancel := context.WithTimeout(context.Background(), l.timeout)
	defer cancel()
	ladder, err := l.ask(ctx, board)
	switch {
	case err != nil:
		l.results.WithLabelValues("error").Inc()
		l.errLog.Do(func() {
			l.log.Warn("a board has no ladder, so that Redis counts its ranks", "board", board, "err", err)
		})
		return
	case ladder == nil:
		l.results.WithLabelValues("none").Inc()
		return
	}
	l.results.WithLabelValues("ok").Inc()
	l.mu.Lock()
	defer l.mu.Unlock()
	kept.ladder = ladder
}

// ask makes a panic an error: no caller's stack could recover it.
func (l *ladders) ask(ctx context.Context, board rankcache.BoardID) (ladder *rankcache.Ladder, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("%w: %v", ErrFault, fault)
		}
	}()
	return l.source.Ladder(ctx, board)
}
