package hotkey

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// lease is held by at most one poller of the fleet at a time, as well as Redis
// and clocks allow. A poller that was paused may believe in a lease that has
// run out, so the rate of calls is bounded by a second key, see [Poller.poll].
type lease struct {
	rdb redis.Cmdable
	key string
	id  string // differs from that of every other poller
	ttl time.Duration
}

// Both compare and act in one step: between a GET and a DEL the lease could run
// out and become somebody else's.
var (
	renewLease   = redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0`)
	releaseLease = redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)
)

// acquire takes the lease if nobody has it. Otherwise left is how long it still
// runs unless it is renewed.
func (l *lease) acquire(ctx context.Context) (held bool, left time.Duration, err error) {
	pipe := l.rdb.Pipeline()
	set := pipe.SetNX(ctx, l.key, l.id, l.ttl)
	ttl := pipe.PTTL(ctx, l.key)
	if _, err := pipe.Exec(ctx); err != nil {
		return false, 0, fmt.Errorf("take the poller's lease %s: %w", l.key, err)
	}
	return set.Val(), min(max(ttl.Val(), 0), l.ttl), nil
}

// renew prolongs the lease; false says that it is lost.
func (l *lease) renew(ctx context.Context) (bool, error) {
	n, err := renewLease.Run(ctx, l.rdb, []string{l.key}, l.id, l.ttl.Milliseconds()).Int()
	if err != nil {
		return false, fmt.Errorf("renew the poller's lease %s: %w", l.key, err)
	}
	return n == 1, nil
}

// release gives the lease back, so that the next poller need not wait.
func (l *lease) release(ctx context.Context) error {
	return releaseLease.Run(ctx, l.rdb, []string{l.key}, l.id).Err()
}

// keep renews the lease until ctx is done, and calls lost when it belongs to
// somebody else or could not be renewed for as long as it runs.
func (l *lease) keep(ctx context.Context, lost context.CancelCauseFunc) {
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
