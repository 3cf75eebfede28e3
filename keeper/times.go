package keeper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/time/rate"

	"rankcache/internal/masters"
	"rankcache/internal/tick"
	"rankcache/wire"
)

// Times writes the time on each master ([wire.MasterWrittenKey]), which replicas get in order. Two do no harm.
type Times struct {
	redis   *redis.ClusterClient
	timeout time.Duration // of a request
	log     *slog.Logger
	limit   rate.Sometimes

	tags    []string // of the masters
	askedAt time.Time
}

// mastersEvery is how often masters are asked for. A time under a former one's name is true nevertheless.
const mastersEvery = 5 * time.Second

// timeScript writes the time of its master. It has no expiry, as that of publishScript.
var timeScript = redis.NewScript(`
local now = redis.call('TIME')
redis.call('SET', KEYS[1], string.format('%d%06d', now[1], now[2]))
return 0`)

// NewTimes returns what writes times through a client. It starts nothing.
func NewTimes(client *redis.ClusterClient, timeout time.Duration, log *slog.Logger) *Times {
	return &Times{redis: client, timeout: timeout, log: log, limit: rate.Sometimes{First: 1, Interval: 10 * time.Second}}
}

// Run writes until ctx is done; it returns nil.
func (t *Times) Run(ctx context.Context) error {
	for range tick.NowAndEvery(ctx, DefaultEvery) {
		if err := t.write(ctx); err != nil && ctx.Err() == nil {
			t.limit.Do(func() {
				t.log.Warn("the time is not written on all masters: the ages of their replicas grow", "err", err)
			})
		}
	}
	return nil
}

// write writes the time on all masters, by one pipeline for each.
func (t *Times) write(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	var asking error
	if time.Since(t.askedAt) >= mastersEvery {
		asking = t.ask(ctx)
	}
	replies := make([]*redis.Cmd, len(t.tags))
	_, _ = t.redis.Pipelined(ctx, func(p redis.Pipeliner) error { // each reply has its error
		for i, tag := range t.tags {
			replies[i] = timeScript.Eval(ctx, p, []string{wire.MasterWrittenKey(tag)})
		}
		return nil
	})
	errs := []error{asking}
	for i, reply := range replies {
		if err := reply.Err(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", wire.MasterWrittenKey(t.tags[i]), err))
		}
	}
	return errors.Join(errs...)
}

// ask takes the masters of now.
func (t *Times) ask(ctx context.Context) error {
	parts, err := masters.Parts(ctx, t.redis)
	if err != nil {
		return err
	}
	t.askedAt, t.tags = time.Now(), nil
	for _, p := range parts {
		t.tags = append(t.tags, p.Tag)
	}
	return nil
}
