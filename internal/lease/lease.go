// Package lease elects one of several processes by a key in Redis that expires.
//
// A process that was paused may not know that its lease has expired, and Redis does not refuse what it writes then:
// what is done under a lease must do no harm when two do it.
package lease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/tick"
)

// ErrLost is the cause of the end of work under a lease that another process has.
var ErrLost = errors.New("another process has the lease")

// Lease belongs to at most one process at a time, as far as Redis and clocks allow.
type Lease struct {
	Redis redis.Cmdable
	Key   string
	ID    string // differs from that of every other process
	TTL   time.Duration
}

// Both compare and act in one step: between a GET and a DEL the lease could expire and be acquired by another process.
var (
	renewScript   = redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0`)
	releaseScript = redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)
)

// Acquire takes the lease if it is free. Otherwise left is the time until it expires unless it is renewed.
func (l *Lease) Acquire(ctx context.Context) (acquired bool, left time.Duration, err error) {
	pipe := l.Redis.Pipeline()
	set := pipe.SetNX(ctx, l.Key, l.ID, l.TTL)
	ttl := pipe.PTTL(ctx, l.Key)
	if _, err := pipe.Exec(ctx); err != nil {
		return false, 0, fmt.Errorf("acquire the lease %s: %w", l.Key, err)
	}
	return set.Val(), min(max(ttl.Val(), 0), l.TTL), nil
}

// Run runs work whenever this process has the lease, until ctx is done. ended is told why a turn ended or none begins.
func (l *Lease) Run(ctx context.Context, work func(context.Context), ended func(error)) {
	for ctx.Err() == nil {
		acquired, left, err := l.Acquire(ctx)
		wait := l.Retry(left)
		if acquired {
			err, wait = l.Hold(ctx, work), tick.Jitter(l.TTL/2)
		}
		if err != nil && ctx.Err() == nil {
			ended(err)
		}
		tick.Sleep(ctx, wait)
	}
}

// Hold runs work once the lease is acquired, then releases it. Its error is the cause that ended work's context.
func (l *Lease) Hold(ctx context.Context, work func(context.Context)) error {
	held, lost := context.WithCancelCause(ctx)
	kept := make(chan struct{})
	go func() { defer close(kept); l.keepAlive(held, lost) }()
	defer func() {
		lost(nil)
		<-kept
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.TTL/2)
		defer cancel()
		_ = l.Release(ctx) // if that fails, it expires
	}()
	work(held)
	return context.Cause(held)
}

// Retry returns when to try again to acquire a lease that is held for so long: not all processes at the same time.
func (l *Lease) Retry(left time.Duration) time.Duration { return left + rand.N(l.TTL/5) }

// Renew extends the lease. It returns false if the lease is lost.
func (l *Lease) Renew(ctx context.Context) (bool, error) {
	n, err := renewScript.Run(ctx, l.Redis, []string{l.Key}, l.ID, l.TTL.Milliseconds()).Int()
	if err != nil {
		return false, fmt.Errorf("renew the lease %s: %w", l.Key, err)
	}
	return n == 1, nil
}

// Release deletes the lease, so that the next process need not wait.
func (l *Lease) Release(ctx context.Context) error {
	return releaseScript.Run(ctx, l.Redis, []string{l.Key}, l.ID).Err()
}

// keepAlive renews the lease until ctx is done, and calls lost once another has it or its life is over.
func (l *Lease) keepAlive(ctx context.Context, lost context.CancelCauseFunc) {
	renewed := time.Now()
	for range tick.Every(ctx, l.TTL/4) {
		begin := time.Now()
		attempt, cancel := context.WithTimeout(ctx, l.TTL/2)
		ok, err := l.Renew(attempt)
		cancel()
		switch {
		case ok:
			renewed = begin
		case err == nil:
			lost(ErrLost)
			return
		case time.Since(renewed) > l.TTL:
			lost(err)
			return
		}
	}
}
