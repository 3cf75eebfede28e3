package writer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/time/rate"

	"rankcache/internal/masters"
	"rankcache/internal/tick"
	"rankcache/rooms"
	"rankcache/wire"
)

const (
	// cutEvery is how often it is looked how large the log is. Each time at most 10,000 entries are cut, by Redis's own
	// limit, which no server writes in as long.
	cutEvery = 250 * time.Millisecond
	// logFaultLasts is for how long a failure is told.
	logFaultLasts = 10 * time.Second
)

// redisLog is the log of changes in Redis: a stream of each server, to which apply.lua appends. It is safe for
// concurrent use.
type redisLog struct {
	*Options
	metrics *metrics
	limit   rate.Sometimes
	last    atomic.Pointer[logFailure]
}

type logFailure struct {
	at  time.Time
	err error
}

func newRedisLog(opts *Options, m *metrics) *redisLog {
	return &redisLog{Options: opts, metrics: m, limit: logLimit()}
}

// follows reports whether anybody follows the changes of a job's board.
func (opts *Options) follows(j *job) bool {
	return opts.PublishAll || opts.Tiers.Mode(j.Board, j.Room) == rooms.ModeSuperHot
}

// has reports whether the changes of a call are to be logged.
func (l *redisLog) has(jobs []*job) bool {
	return l.LogSize > 0 && slices.ContainsFunc(jobs, l.follows)
}

// failed takes the error behind the replies of a call that the log did not take, and returns these. The changes stand,
// and readers find that they miss some.
func (l *redisLog) failed(replies []any) []any {
	last := len(replies) - 1
	l.metrics.logFailed.Inc()
	l.fail(fmt.Errorf("XADD: %v", replies[last]))
	return replies[:last]
}

func (l *redisLog) fail(err error) {
	l.last.Store(&logFailure{time.Now(), err})
	l.limit.Do(func() {
		l.Log.Warn("the log in Redis does not take changes: sidecars read them from the boards", "key", wire.LogKey, "err", err)
	})
}

// fault returns why the log did not take changes lately, or nil.
func (l *redisLog) fault() error {
	if last := l.last.Load(); last != nil && time.Since(last.at) < logFaultLasts {
		return fmt.Errorf("the log of changes in Redis (key %s) fails: %w: check that the key is of nothing else, and that the user may use it", wire.LogKey, last.err)
	}
	return nil
}

// run cuts the log, if there is one, until ctx ends.
func (l *redisLog) run(ctx context.Context) {
	if l.LogSize <= 0 {
		return
	}
	for range tick.Every(ctx, cutEvery) {
		err := masters.Each(ctx, l.Redis, func(ctx context.Context, _ string, node redis.Cmdable) error { return l.cut(ctx, node) })
		if err != nil && ctx.Err() == nil {
			l.fail(err)
		}
	}
}

// cut removes the first entries of a server's log that is too large, about as many as it is too large.
func (l *redisLog) cut(ctx context.Context, node redis.Cmdable) error {
	var size, entries *redis.IntCmd
	_, err := node.Pipelined(ctx, func(p redis.Pipeliner) error {
		size, entries = p.MemoryUsage(ctx, wire.LogKey), p.XLen(ctx, wire.LogKey)
		return nil
	})
	if errors.Is(err, redis.Nil) {
		return entries.Err()
	}
	if err != nil || size.Val() <= l.LogSize {
		return err
	}
	keep := float64(entries.Val()) * float64(l.LogSize) / float64(size.Val())
	return node.XTrimMaxLenApprox(ctx, wire.LogKey, int64(keep), 0).Err()
}
