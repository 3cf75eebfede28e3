package roomsync

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	fileBad, superHot, dynamic, dynamicBad, sharedRead prometheus.Gauge
	redisErrors                                        prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) metrics {
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
		reg.MustRegister(g)
		return g
	}
	m := metrics{
		fileBad: gauge("rankcache_rooms_file_bad",
			"1 while the newest rooms file is refused and the last good one is in force."),
		superHot: gauge("rankcache_rooms_super_hot_boards",
			"Boards that the rooms in force make super-hot."),
		dynamic: gauge("rankcache_rooms_dynamic_entries",
			"Rooms and boards that are set at run time."),
		dynamicBad: gauge("rankcache_rooms_dynamic_bad_entries",
			"Entries of the hash of rooms set at run time that are ignored because they can't be read."),
		sharedRead: gauge("rankcache_rooms_dynamic_read_timestamp_seconds",
			"When the hash of rooms set at run time was last read, in Unix time; 0 before the first time."),
		redisErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "rankcache_rooms_redis_errors_total",
			Help: "Times that Redis could not say which rooms are set at run time or which boards run in rooms.",
		}),
	}
	reg.MustRegister(m.redisErrors)
	return m
}
