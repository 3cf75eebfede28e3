// Package retry (no public API) repeats what a server that is away has not done.
package retry

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/time/rate"
)

// Policy tells how attempts are repeated.
type Policy struct {
	First, Most time.Duration // pauses, which grow
	Failed      func()        // called for each attempt that failed and is repeated
	Log         *slog.Logger
	Every       time.Duration // between two lines in the log
}

// Do calls attempt until it succeeds or ctx ends, which is its only error but for attempt's permanent ones
// ([backoff.Permanent]); it comes with that of the last attempt that tells why there was another. of names the server.
func Do(ctx context.Context, of string, p Policy, attempt func() error) error {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = p.First, p.Most
	limit := rate.Sometimes{Interval: p.Every}
	var last error
	_, err := backoff.Retry(ctx, func() (_ struct{}, err error) {
		if err = attempt(); last == nil || ctx.Err() == nil {
			last = err
		}
		return struct{}{}, err
	}, backoff.WithBackOff(pause), backoff.WithMaxElapsedTime(0),
		backoff.WithNotify(func(err error, next time.Duration) {
			p.Failed()
			limit.Do(func() { p.Log.Warn("attempt failed, retrying", "of", of, "in", next, "err", err) })
		}))
	if err != nil && ctx.Err() != nil {
		return errors.Join(context.Cause(ctx), last)
	}
	return err
}
