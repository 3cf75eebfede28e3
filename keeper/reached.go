package keeper

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/time/rate"

	"rankcache/internal/tick"
	"rankcache/wire"
)

// Reached tells up to when a replica of Redis in another region has what its master had: up to the newest time that the
// master's keeper wrote, which comes to the replica behind all that was written before. Its methods may be called
// concurrently.
//
// The time is of the master's clock, and is compared with this machine's. Where that is behind, the time of which a
// value was first seen here counts, so that nothing is taken for younger than it is since then; where it is ahead, all
// seems older.
type Reached struct {
	value *Value
	log   *slog.Logger
	limit rate.Sometimes
	last  atomic.Pointer[reached] // nil: unknown
}

type reached struct{ written, at time.Time } // a time of the keeper, and what that was by this machine's clock

const skewed = time.Second // by how much a keeper's time may be later than this machine's before that is told

// NewReached returns what a value's time tells. It starts nothing.
func NewReached(value *Value, log *slog.Logger) *Reached {
	return &Reached{value: value, log: log, limit: rate.Sometimes{First: 1, Interval: time.Minute}}
}

// At returns up to when the replica, read from now on, has all that the master had; zero: no keeper has written.
func (r *Reached) At() time.Time {
	if last := r.last.Load(); last != nil {
		return last.at
	}
	return time.Time{}
}

// Run looks for the newest time until ctx is done; it returns nil.
func (r *Reached) Run(ctx context.Context) error {
	for range tick.NowAndEvery(ctx, DefaultEvery) {
		r.look(ctx)
	}
	return nil
}

// look takes the newest time. A replica that does not answer is where it was.
func (r *Reached) look(ctx context.Context) {
	now := time.Now()
	written, err := r.value.written(ctx)
	last := r.last.Load()
	switch {
	case errors.Is(err, errNone), errors.Is(err, wire.ErrWritten), redis.HasErrorPrefix(err, "NOPERM"), redis.HasErrorPrefix(err, "WRONGTYPE"):
		r.last.Store(nil)
		r.limit.Do(func() {
			r.log.Warn("the ages of answers are unknown: check that rankcache keep runs in the writing region, with the same --hot-instance", "key", r.value.Written, "err", err)
		})
	case err != nil, last != nil && last.written.Equal(written):
	default:
		if written.Sub(now) > skewed {
			r.limit.Do(func() {
				r.log.Warn("this machine's clock is behind that of the writing region's Redis: ages are too low by that", "behind", written.Sub(now))
			})
		}
		r.last.Store(&reached{written, now.Add(-max(0, now.Sub(written)))})
	}
}
