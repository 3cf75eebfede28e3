package latency

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

type collector struct {
	desc *prometheus.Desc
	h    Histogram
}

func (c *collector) Describe(ch chan<- *prometheus.Desc) { ch <- c.desc }

func (c *collector) Collect(ch chan<- prometheus.Metric) {
	if m, counted := c.h.Metric(c.desc, "x"); counted {
		ch <- m
	}
}

func TestHistogram(t *testing.T) {
	c := &collector{desc: prometheus.NewDesc("took_seconds", "Took.", []string{"of"}, nil)}
	if n := testutil.CollectAndCount(c); n != 0 {
		t.Errorf("%d metrics before the first answer", n)
	}
	c.h.Observe(50*time.Millisecond, 1)
	c.h.Observe(30*time.Microsecond, Every)
	c.h.Observe(2*time.Second, 1)
	const want = `
# HELP took_seconds Took.
# TYPE took_seconds histogram
took_seconds_bucket{of="x",le="5e-05"} 16
took_seconds_bucket{of="x",le="0.0001"} 16
took_seconds_bucket{of="x",le="0.00025"} 16
took_seconds_bucket{of="x",le="0.0005"} 16
took_seconds_bucket{of="x",le="0.001"} 16
took_seconds_bucket{of="x",le="0.0025"} 16
took_seconds_bucket{of="x",le="0.005"} 16
took_seconds_bucket{of="x",le="0.01"} 16
took_seconds_bucket{of="x",le="0.025"} 16
took_seconds_bucket{of="x",le="0.05"} 17
took_seconds_bucket{of="x",le="0.1"} 17
took_seconds_bucket{of="x",le="0.25"} 17
took_seconds_bucket{of="x",le="1"} 17
took_seconds_bucket{of="x",le="+Inf"} 18
took_seconds_sum{of="x"} 2.05048
took_seconds_count{of="x"} 18
`
	if err := testutil.CollectAndCompare(c, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

// TestOneOfSixteen: of many connections with one answer each, too.
func TestOneOfSixteen(t *testing.T) {
	long, short := 0, 0
	s := NewSampler(7)
	for conn := range uint64(160) {
		if s.Next() {
			long++
		}
		if one := NewSampler(conn); one.Next() {
			short++
		}
	}
	if long != 10 || short != 10 {
		t.Errorf("%d of 160 answers of one connection, %d of 160 connections; want 10", long, short)
	}
}

// BenchmarkMeasuring is what measuring adds to an answer: compare it with the CPU of a page.
func BenchmarkMeasuring(b *testing.B) {
	var h Histogram
	b.Run("sampled", func(b *testing.B) {
		s := NewSampler(1)
		for b.Loop() {
			if s.Next() {
				begun := time.Now()
				h.Observe(time.Since(begun), Every)
			}
		}
	})
	b.Run("each", func(b *testing.B) {
		begun := time.Now()
		for b.Loop() {
			h.Observe(time.Since(begun), 1)
		}
	})
}
