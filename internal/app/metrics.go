package app

import (
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
	"rankcache/localboard"
	"rankcache/sidecar/adminapi"
)

// registerProcess registers what every long-running command tells of itself:
// which version it is and what its readiness probe answers.
func registerProcess(reg prometheus.Registerer, r *adminapi.Readiness) {
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "rankcache_build_info", Help: "1, with the version as label.",
		ConstLabels: prometheus.Labels{"version": Version, "goversion": runtime.Version()}})
	build.Set(1)
	ready := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "rankcache_ready", Help: "1 while the readiness probe is answered with 200.",
	}, func() float64 {
		if r.Now().State == adminapi.StateReady {
			return 1
		}
		return 0
	})
	reg.MustRegister(build, ready)
}

// boardAges tells how old the boards are that are answered from local memory.
// They are asked for when a scrape comes, so that a board that is dropped leaves
// nothing behind.
type boardAges struct {
	boards *localboard.Boards
	status func() []rankcache.BoardStatus
	label  func(rankcache.BoardID) string // those of boards with the same one are combined
}

var boardAgeDesc = prometheus.NewDesc("rankcache_board_age_seconds",
	"Time since a whole board that is answered from local memory was last known to equal Redis. Of combined boards: the most.", []string{"board"}, nil)

// Describe implements [prometheus.Collector].
func (boardAges) Describe(out chan<- *prometheus.Desc) { out <- boardAgeDesc }

// Collect implements [prometheus.Collector].
func (a boardAges) Collect(out chan<- prometheus.Metric) {
	oldest := make(map[string]time.Duration)
	for _, s := range a.status() {
		board, open := a.boards.Get(s.Board)
		if !open {
			continue
		}
		if at := board.CurrentAt(); !at.IsZero() {
			label := a.label(s.Board)
			oldest[label] = max(oldest[label], time.Since(at))
		}
	}
	for label, age := range oldest {
		out <- prometheus.MustNewConstMetric(boardAgeDesc, prometheus.GaugeValue, age.Seconds(), label)
	}
}
