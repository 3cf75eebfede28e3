package live

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	versions, diffs, pagesSent, diffsSent, skipped prometheus.Counter
	resumedBy                                      [2]prometheus.Counter
}

func newMetrics(h *Hub, reg prometheus.Registerer) (*metrics, error) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := &metrics{
		versions: counter("rankcache_live_versions_total", "Versions of pages that were made for live streams: one for each change, at most one each --live-interval for a key (board, direction, rows, profiles)."),
		diffs:    counter("rankcache_live_diffs_total", "Diffs between two versions that were encoded as server-sent events, each once for all streams that need it."),
		skipped:  counter("rankcache_live_skipped_total", "Versions that streams did not send, because the client was still taking an earlier one."),
	}
	sent := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "rankcache_live_updates_total",
		Help: "Updates sent on live streams: whole pages (page) and diffs (diff).",
	}, []string{"update"})
	m.pagesSent, m.diffsSent = sent.WithLabelValues("page"), sent.WithLabelValues("diff")
	resumes := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "rankcache_live_resumes_total",
		Help: "Live streams that were opened with the id of an earlier event: those that went on with a diff (diff), and those whose id is not known here, which began with the page (page).",
	}, []string{"with"})
	m.resumedBy = [2]prometheus.Counter{resumes.WithLabelValues("page"), resumes.WithLabelValues("diff")}
	streams := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "rankcache_live_streams", Help: "Live streams that are open now.",
	}, func() float64 { return float64(h.Streams()) })
	if reg == nil {
		return m, nil
	}
	return m, errors.Join(reg.Register(m.versions), reg.Register(m.diffs), reg.Register(m.skipped), reg.Register(sent), reg.Register(resumes), reg.Register(streams))
}

func (m *metrics) sent(page bool) {
	if page {
		m.pagesSent.Inc()
		return
	}
	m.diffsSent.Inc()
}

func (m *metrics) resumed(known bool) {
	if known {
		m.resumedBy[1].Inc()
		return
	}
	m.resumedBy[0].Inc()
}
