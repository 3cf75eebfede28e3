package origin

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
	"rankcache/internal/metric"
)

type metrics struct {
	seconds   *prometheus.HistogramVec // by op; its count is the number of round trips
	errors    *prometheus.CounterVec   // by op and kind
	badBoards prometheus.Counter       // invalid board ids in rooms' sets
}

func newMetrics(reg prometheus.Registerer) metrics {
	set := metric.New(reg, "redis_")
	defer set.Must()
	return metrics{
		seconds:   set.Histograms("seconds", "Time of one round trip to Redis, retries included.", prometheus.ExponentialBuckets(0.0001, 2.5, 10), "op"), // 0.1 ms to 0.38 s
		errors:    set.Counters("errors_total", "Round trips to Redis that failed: unavailable, refused (Redis answered an error) or canceled by the caller.", "op", "kind"),
		badBoards: set.Counter("bad_room_boards_total", "Ids read from rooms' sets of boards that name no board and were ignored."),
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
