package profile

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
)

// The circuit breaker: while it is open loads fail at once and pages do not wait; then one call at a time tries.
const (
	breakAfter      = 5                // failures in a row
	breakRequests   = 20               // or, of at least so many calls
	breakRatio      = 0.5              // this part failed
	breakWindow     = 10 * time.Second // within so long
	breakWindowStep = time.Second
	breakFor        = time.Second
)

// guardedSource calls the source within a time-out and through a circuit breaker.
type guardedSource struct {
	source  Source
	timeout time.Duration
	log     *slog.Logger
	metrics *metrics
	breaker *gobreaker.CircuitBreaker[struct{}]
	lastErr atomic.Value // text of the last error, for the log when the breaker opens
}

func newGuardedSource(source Source, timeout time.Duration, log *slog.Logger, m *metrics) *guardedSource {
	s := &guardedSource{source: source, timeout: timeout, log: log, metrics: m}
	s.breaker = gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Interval:     breakWindow,
		BucketPeriod: breakWindowStep,
		Timeout:      breakFor,
		ReadyToTrip: func(n gobreaker.Counts) bool {
			return n.ConsecutiveFailures >= breakAfter ||
				n.Requests >= breakRequests && float64(n.TotalFailures) >= breakRatio*float64(n.Requests)
		},
		OnStateChange: s.logState,
		IsExcluded:    func(err error) bool { return errors.Is(err, context.Canceled) }, // Run is ending
	})
	return s
}

func (s *guardedSource) logState(_ string, from, to gobreaker.State) {
	switch {
	case to == gobreaker.StateOpen && from == gobreaker.StateClosed:
		s.log.Warn("circuit breaker of the profile service is open: profiles are not loaded", "last_error", s.lastErr.Load())
	case to == gobreaker.StateClosed:
		s.log.Info("circuit breaker of the profile service is closed: profiles are loaded again")
	}
}

func (s *guardedSource) load(ctx context.Context, members []string, answers []Answer) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	_, err := s.breaker.Execute(func() (struct{}, error) {
		start := time.Now()
		err := s.source.Load(ctx, members, answers)
		if err != nil {
			s.lastErr.Store(err.Error()) // before the breaker changes its state
		}
		s.metrics.loaded(len(members), time.Since(start), err)
		return struct{}{}, err
	})
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		s.metrics.refused.Inc()
	}
	return err
}
