package rooms

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	fileBad, superHot prometheus.Gauge
	redisErrors       prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) metrics {
	m := metrics{
		fileBad: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "rankcache_rooms_file_bad",
			Help: "1 while the newest rooms file is refused and the last good one is in force.",
		}),
		superHot: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "rankcache_rooms_super_hot_boards",
			Help: "Boards that the rooms in force make super-hot.",
		}),
		redisErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "rankcache_rooms_redis_errors_total",
			Help: "Times that Redis could not say which boards run in the rooms.",
		}),
	}
	reg.MustRegister(m.fileBad, m.superHot, m.redisErrors)
	return m
}
