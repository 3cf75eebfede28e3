package check

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/timestamp"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

const (
	scrapeEvery   = time.Minute      // between two samples of a series, unless its case sets another
	evaluateEvery = 15 * time.Second // between two looks of an alert
)

var promQL = parser.NewParser(parser.Options{})

// series are samples in memory that Prometheus's own engine can query. Its
// database would do as well, but needs the clouds' libraries.
type series []storage.Series

// parseSeries reads promtool's notation, such as a{b="c"} 0+10x5 _ stale, with a sample
// every so often.
func parseSeries(t *testing.T, lines []string, every time.Duration) (all series) {
	t.Helper()
	for _, line := range lines {
		name, values, err := promQL.ParseSeriesDesc(line)
		if err != nil {
			t.Fatalf("series %s: %v", line, err)
		}
		var samples []chunks.Sample
		for i, v := range values {
			if !v.Omitted {
				samples = append(samples, sample{time.Duration(i) * every, v.Value})
			}
		}
		all = append(all, storage.NewListSeries(name, samples))
	}
	return all
}

// sample implements [chunks.Sample].
type sample struct {
	at    time.Duration
	value float64
}

func (s sample) T() int64                    { return s.at.Milliseconds() }
func (s sample) F() float64                  { return s.value }
func (sample) ST() int64                     { return 0 }
func (sample) H() *histogram.Histogram       { return nil }
func (sample) FH() *histogram.FloatHistogram { return nil }
func (sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample         { return s }

// Querier implements [storage.Queryable].
func (s series) Querier(int64, int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		var found []storage.Series
		for _, one := range s {
			if matches(one.Labels(), matchers) {
				found = append(found, one)
			}
		}
		return &seriesSet{all: found}
	}}, nil
}

func matches(l labels.Labels, matchers []*labels.Matcher) bool {
	for _, m := range matchers {
		if !m.Matches(l.Get(m.Name)) {
			return false
		}
	}
	return true
}

// seriesSet implements [storage.SeriesSet].
type seriesSet struct {
	all []storage.Series
	now storage.Series
}

func (s *seriesSet) Next() bool {
	if len(s.all) == 0 {
		return false
	}
	s.now, s.all = s.all[0], s.all[1:]
	return true
}
func (s *seriesSet) At() storage.Series              { return s.now }
func (*seriesSet) Err() error                        { return nil }
func (*seriesSet) Warnings() annotations.Annotations { return nil }

// firing returns how many instances of an alert fire at a time, by Prometheus's
// rule: its expression has held for each look of its "for".
func firing(t *testing.T, expr string, hold time.Duration, s series, at time.Duration) (n int) {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{Logger: slog.New(slog.DiscardHandler), MaxSamples: 1e6, Timeout: time.Minute, Parser: promQL})
	defer engine.Close()
	query, err := engine.NewRangeQuery(context.Background(), s, nil, expr, timestamp.Time(0).Add(at-hold), timestamp.Time(0).Add(at), evaluateEvery)
	if err != nil {
		t.Fatal(err)
	}
	defer query.Close()
	matrix, err := query.Exec(context.Background()).Matrix()
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	for _, one := range matrix {
		if len(one.Floats) == int(hold/evaluateEvery)+1 {
			n++
		}
	}
	return n
}
