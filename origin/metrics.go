package origin

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"rankcache"
)

type metrics struct {
	seconds   *prometheus.HistogramVec // by op; its count is the number of round trips
	errors    *prometheus.CounterVec   // by op and kind
	badBoards prometheus.Counter       // invalid board ids in rooms' sets
}

func newMetrics(reg prometheus.Registerer) metrics {
	f := promauto.With(reg)
	return metrics{
		seconds: f.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "rankcache_redis_seconds",
			Help:    "Time of one round trip to Redis, retries included.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2.5, 10), // 0.1 ms to 0.38 s
		}, []string{"op"}),
		errors: f.NewCounterVec(prometheus.CounterOpts{
			Name: "rankcache_redis_errors_total",
			Help: "Round trips to Redis that failed: unavailable, refused (Redis answered an error) or canceled by the caller.",
		}, []string{"op", "kind"}),
		badBoards: f.NewCounter(prometheus.CounterOpts{
			Name: "rankcache_redis_bad_room_boards_total",
			Help: "Ids read from rooms' sets of boards that name no board and were ignored.",
		}),
	}
}

func (m metrics) observe(op string, took time.Duration, err error) {
	m.seconds.WithLabelValues(op).Observe(took.Seconds())
	if err != nil {
		m.errors.WithLabelValues(op, kind(err)).Inc()
	}
}

func kind(err error) string {
	switch {
	case errors.Is(err, rankcache.ErrUnavailable):
		return "unavailable"
	case errors.Is(err, context.Canceled):
		return "canceled"
	}
	return "refused"
}
