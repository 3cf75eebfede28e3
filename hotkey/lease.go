package hotkey

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// lease belongs to at most one poller of the fleet at a time, as far as Redis and
// clocks allow. A poller that was paused may not know that its lease has expired, so
// a second key bounds the rate of calls, see [Poller.poll].
type lease struct {
	rdb redis.Cmdable
	key string
	id  string // differs from that of every other poller
	ttl time.Duration
}

// Both compare and act in one step: between a GET and a DEL the lease could expire
// and be acquired by another poller.
var (
	renewLease   = redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0`)
	releaseLease = redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)
)

// acquire takes the lease if it is free. Otherwise left is the time until it expires
// unless it is renewed.
func (l *lease) acquire(ctx context.Context) (acquired bool, left time.Duration, err error) {
	pipe := l.rdb.Pipeline()
	set := pipe.SetNX(ctx, l.key, l.id, l.ttl)
	ttl := pipe.PTTL(ctx, l.key)
	if _, err := pipe.Exec(ctx); err != nil {
		return false, 0, fmt.Errorf("acquire the poller's lease %s: %w", l.key, err)
	}
	return set.Val(), min(max(ttl.Val(), 0), l.ttl), nil
}

// renew extends the lease. It returns false if the lease is lost.
func (l *lease) renew(ctx context.Context) (bool, error) {
	n, err := renewLease.Run(ctx, l.rdb, []string{l.key}, l.id, l.ttl.Milliseconds()).Int()
	if err != nil {
		return false, fmt.Errorf("renew the poller's lease %s: %w", l.key, err)
	}
	return n == 1, nil
}

// release deletes the lease, so that the next poller need not wait.
func (l *lease) release(ctx context.Context) error {
	return releaseLease.Run(ctx, l.rdb, []string{l.key}, l.id).Err()
}

// keepAlive renews the lease until ctx is done. It calls lost when another poller
// has the lease or when no renewal succeeded for its whole life.
func (l *lease) keepAlive(ctx context.Context, lost context.CancelCauseFunc) {
	tick := time.NewTicker(l.ttl / 4)
	defer tick.Stop()
	for renewed := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		begin := time.Now()
		attempt, cancel := context.WithTimeout(ctx, l.ttl/2)
		ok, err := l.renew(attempt)
		cancel()
		switch {
		case ok:
			renewed = begin
		case err == nil:
			lost(errLeaseLost)
			return
		case time.Since(renewed) > l.ttl:
			lost(err)
			return
		}
	}
}
