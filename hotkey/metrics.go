package hotkey

import (
	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
	"rankcache/internal/metric"
)

type metrics struct {
	promotions *prometheus.CounterVec
	demotions  *prometheus.CounterVec
	flips      prometheus.Counter
	evictions  prometheus.Counter
	refreshes  *prometheus.CounterVec
	hits       prometheus.Counter
	lost       prometheus.Counter

	counted map[rankcache.BoardID]counted // the part of hits that is each page's; only tick uses it
}

type counted struct {
	page *page
	hits uint64
}

func newMetrics(reg prometheus.Registerer, t *Tracker) *metrics {
	set := metric.New(reg, "hot_")
	m := &metrics{
		promotions: set.Counters("promotions_total", "Boards promoted to hot, by cause.", "cause"),
		demotions:  set.Counters("demotions_total", "Hot boards demoted, by reason.", "reason"),
		flips:      set.Counter("flips_total", "Promotions of boards that were demoted less than 5 minutes before."),
		evictions:  set.Counter("evictions_total", "Hot boards demoted because the cap was reached by hotter ones."),
		refreshes:  set.Counters("page_refreshes_total", "Pages of hot boards read from Redis, by result.", "result"),
		lost:       set.Counter("lost_boards_total", "Hot boards that Redis has lost: pages are kept until --hot-stale."),
		hits:       set.Counter("page_hits_total", "Reads answered from the local page of a hot board."),
	}
	set.CounterFunc("page_misses_total", "Reads of hot boards that found no fresh page.", func() float64 { return float64(t.misses.Load()) })
	set.GaugeFunc("boards", "Boards that are hot now.", func() float64 { return float64(len(*t.pages.Load())) })
	set.GaugeFunc("page_age_seconds", "Age of the oldest page that is served.", func() float64 { return t.oldestPage().Seconds() })
	set.GaugeFunc("verdict_age_seconds", "Time since a new verdict was seen, -1 before the first.", t.verdictAge)
	set.Must()
	return m
}

func (m *metrics) countTransition(c transition) {
	if c.cause != "" {
		m.promotions.WithLabelValues(string(c.cause)).Inc()
	} else {
		m.demotions.WithLabelValues(c.reason).Inc()
	}
	if c.flip {
		m.flips.Inc()
	}
	if c.reason == reasonEvicted {
		m.evictions.Inc()
	}
}

// countHits adds the hits of the pages since the last call: a counter shared by all readers would be contended.
func (m *metrics) countHits(pages pageMap) {
	next := make(map[rankcache.BoardID]counted, len(pages))
	for b, p := range pages {
		hits, before := p.hits.Load(), uint64(0)
		if c := m.counted[b]; c.page == p {
			before = c.hits
		}
		m.hits.Add(float64(hits - before))
		next[b] = counted{p, hits}
	}
	m.counted = next
}
