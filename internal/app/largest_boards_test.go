package app

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"rankcache"
)

func TestLargestBoards(t *testing.T) {
	known := map[rankcache.BoardID]int{"small": 3, "large": 900, "none": 0, "b": 50, "a": 50, "c": 50}
	for most, want := range map[int][]string{
		0: nil, 1: {"large 900"}, 3: {"large 900", "a 50", "b 50"}, 100: {"large 900", "a 50", "b 50", "c 50", "small 3"},
	} {
		l := largestBoards{most, func() map[rankcache.BoardID]int { return maps.Clone(known) }}
		series := make(chan prometheus.Metric, len(known))
		l.Collect(series)
		close(series)
		var got []string
		for m := range series {
			var sample dto.Metric
			must(t, m.Write(&sample))
			got = append(got, fmt.Sprint(sample.Label[0].GetValue(), " ", sample.Gauge.GetValue()))
		}
		if !slices.Equal(got, want) {
			t.Errorf("the largest %d are %v, want %v", most, got, want)
		}
	}
}
