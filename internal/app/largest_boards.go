package app

import (
	"cmp"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
)

var largestDesc = prometheus.NewDesc("rankcache_largest_board_members",
	"Members of the largest boards that this process knows: the super-hot ones, whether they are kept in memory or refused, and the hot ones.", []string{"board"}, nil)

// largestBoards collects the members of the largest boards at each scrape. A board without
// members has no series, so that a caller of the API cannot make one by a name of his own.
type largestBoards struct {
	most    int
	members func() map[rankcache.BoardID]int // of all known boards; it is changed
}

// Describe implements [prometheus.Collector].
func (largestBoards) Describe(out chan<- *prometheus.Desc) { out <- largestDesc }

// Collect implements [prometheus.Collector].
func (l largestBoards) Collect(out chan<- prometheus.Metric) {
	members := l.members()
	maps.DeleteFunc(members, func(_ rankcache.BoardID, n int) bool { return n == 0 })
	boards := slices.SortedFunc(maps.Keys(members), func(a, b rankcache.BoardID) int {
		return cmp.Or(cmp.Compare(members[b], members[a]), cmp.Compare(a, b))
	})
	for _, id := range boards[:min(l.most, len(boards))] {
		out <- prometheus.MustNewConstMetric(largestDesc, prometheus.GaugeValue, float64(members[id]), string(id))
	}
}
