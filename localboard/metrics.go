package localboard

import "github.com/prometheus/client_golang/prometheus"

var bytesDesc = prometheus.NewDesc("rankcache_board_bytes",
	"Memory of a local board, open or being filled, estimated from its structure.", []string{"board"}, nil)

// collector tells of the boards of the moment, so that one that is dropped leaves
// nothing behind.
type collector struct{ boards *Boards }

// Collector returns the metrics of the boards.
func Collector(boards *Boards) prometheus.Collector { return collector{boards} }

func (collector) Describe(out chan<- *prometheus.Desc) { out <- bytesDesc }

func (c collector) Collect(out chan<- prometheus.Metric) {
	for _, b := range c.boards.All() {
		out <- prometheus.MustNewConstMetric(bytesDesc, prometheus.GaugeValue, float64(b.Bytes()), string(b.ID()))
	}
}
