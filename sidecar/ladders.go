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
	// ladderEvery is how old a ladder gets before a newer one is asked for, and ladderLives until it is not used any more.
	ladderEvery, ladderLives = 10 * time.Second, 30 * time.Second
	// ladderRetry is how long after one was asked for it is asked for again.
	ladderRetry = time.Second
	// maxLadders is of how many boards ladders are kept, some 60 KB each; loads are asked for at the same time.
	maxLadders, maxLadderLoads = 256, 4
)

// Ladders has the ladders of boards, by which ranks are told approximately.
type Ladders interface {
	// Ladder returns the newest ladder of a board, nil if it has none yet.
	Ladder(context.Context, rankcache.BoardID) (*rankcache.Ladder, error)
}

// ladders keeps those of the boards that callers want approximate ranks of. No read waits for one: what has none is
// counted by Redis.
type ladders struct {
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

// keptLadder is the ladder of a board, nil until there is one.
type keptLadder struct {
	ladder *rankcache.Ladder
	asked  time.Time // when a newer one was asked for last
}

func newLadders(source Ladders, timeout time.Duration, log *slog.Logger, reg prometheus.Registerer) (*ladders, error) {
	set := metric.New(reg, "")
	l := &ladders{source: source, timeout: cmp.Or(timeout, DefaultOriginTimeout), log: log, errLog: rate.Sometimes{First: 1, Interval: 10 * time.Second}, loads: semaphore.NewWeighted(maxLadderLoads), boards: make(map[rankcache.BoardID]*keptLadder)}
	l.results = set.Counters("ladder_loads_total", "Ladders of boards, for approximate ranks, that were asked for, by result: ok, none (another process makes it), error.", "result")
	l.ranks = set.Counters("approximate_reads_total", "Reads with rank_mode=approx that Redis has answered, by what the ranks are from: ladder, or exact while there is none.", "by")
	return l, set.Err()
}

// readApproximate asks Redis for what a lacks of the answer to q, in which approximate ranks will do: those are from the ladder, if there
// is one. What stands next to a member, and percentiles of rows and members of one moment, need exact ranks.
func (r *Reader) readApproximate(ctx context.Context, q *rankcache.Query, a *rankcache.Answer) {
	if len(q.Members) > 0 && q.Around == 0 && !q.Gap && q.Range == nil && (q.Limit == 0 || a.Err == nil || !q.Percentile) {
		q.Ladder = r.ladders.of(q)
	}
	r.flights.read(ctx, q, a)
	r.ladders.learn(q, a)
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
	if l == nil || a.Err != nil {
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

// load asks for the ladder of a board.
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
