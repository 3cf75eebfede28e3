package serve

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
	"rankcache/localboard"
)

// boardAges collects the ages of local boards at each scrape, so that a dropped board leaves no series.
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
