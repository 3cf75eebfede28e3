package profile

import (
	"context"
	"errors"
	"time"

	"github.com/sony/gobreaker/v2"
)

// The circuit breaker before the source. While it is open, loads fail at once
// and pages wait for nothing; then one call at a time tries again.
const (
	breakAfter      = 5                // failures in a row
	breakRequests   = 20               // or, of at least so many calls
	breakRatio      = 0.5              // this part failed
	breakWindow     = 10 * time.Second // within so long
	breakWindowStep = time.Second
	breakFor        = time.Second
)

func (c *Cache) newBreaker() *gobreaker.CircuitBreaker[struct{}] {
	return gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Interval:     breakWindow,
		BucketPeriod: breakWindowStep,
		Timeout:      breakFor,
		ReadyToTrip: func(n gobreaker.Counts) bool {
			return n.ConsecutiveFailures >= breakAfter ||
				n.Requests >= breakRequests && float64(n.TotalFailures) >= breakRatio*float64(n.Requests)
		},
		OnStateChange: c.breakerChanged,
		IsExcluded:    func(err error) bool { return errors.Is(err, context.Canceled) }, // Run is ending
	})
}

func (c *Cache) breakerChanged(_ string, from, to gobreaker.State) {
	switch {
	case to == gobreaker.StateOpen && from == gobreaker.StateClosed:
		c.log.Warn("profiles are not loaded for now: the profile service fails", "last_error", c.lastErr.Load())
	case to == gobreaker.StateClosed:
		c.log.Info("profiles are loaded again")
	}
}

// work is one of the workers that make the calls.
func (c *Cache) work(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.queue.ready:
		}
		for calls := c.take(); len(calls) > 0; calls = c.take() {
			c.load(ctx, calls) // also after the end of ctx, when it fails at once: a call that was taken has to land
		}
	}
}

func (c *Cache) take() []*call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.queue.take(c.opts.Batch)
}

// load asks the source for the members of some calls, together a batch at most.
func (c *Cache) load(ctx context.Context, calls []*call) {
	var flights []*flight
	var members []string
	for _, k := range calls {
		for _, f := range k.flights {
			flights, members = append(flights, f), append(members, f.member)
		}
	}
	answers := make([]Answer, len(members))
	asked := c.now()
	err := c.ask(ctx, members, answers)
	c.land(calls, c.arrivals(flights, answers, asked, err))
}

// ask makes one call within its time-out, unless the breaker is open.
func (c *Cache) ask(ctx context.Context, members []string, answers []Answer) error {
	ctx, cancel := context.WithTimeout(ctx, c.opts.CallTimeout)
	defer cancel()
	_, err := c.breaker.Execute(func() (struct{}, error) {
		start := time.Now()
		err := c.source.Load(ctx, members, answers)
		if err != nil {
			c.lastErr.Store(err.Error()) // before the breaker hears of it
		}
		c.metrics.loaded(len(members), time.Since(start), err)
		return struct{}{}, err
	})
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		c.metrics.refused.Inc()
	}
	return err
}
