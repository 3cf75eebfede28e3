package live

import (
	"github.com/prometheus/client_golang/prometheus"

	"rankcache/internal/metric"
)

type metrics struct {
	versions, diffs, pagesSent, diffsSent, skipped prometheus.Counter
	resumedBy                                      [2]prometheus.Counter
}

func newMetrics(h *Hub, reg prometheus.Registerer) (*metrics, error) {
	set := metric.New(reg, "live_")
	sent := set.Counters("updates_total", "Updates sent on live streams: whole pages (page) and diffs (diff).", "update")
	resumes := set.Counters("resumes_total", "Live streams that were opened with the id of an earlier event: those that went on with a diff (diff), and those whose id is not known here, which began with the page (page).", "with")
	m := &metrics{
		versions:  set.Counter("versions_total", "Versions of pages that were made for live streams: one for each change, at most one each --live-interval for a key (board, direction, rows, profiles)."),
		diffs:     set.Counter("diffs_total", "Diffs between two versions that were encoded as server-sent events, each once for all streams that need it."),
		skipped:   set.Counter("skipped_total", "Versions that streams did not send, because the client was still taking an earlier one."),
		pagesSent: sent.WithLabelValues("page"), diffsSent: sent.WithLabelValues("diff"),
		resumedBy: [2]prometheus.Counter{resumes.WithLabelValues("page"), resumes.WithLabelValues("diff")},
	}
	set.GaugeFunc("streams", "Live streams that are open now.", func() float64 { return float64(h.Streams()) })
	return m, set.Err()
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
