package serve

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"rankcache/internal/httpserve"
	"rankcache/internal/tick"
)

const (
	// historyEvery and historyFor bound what is kept: 180 points, some 15 KiB.
	historyEvery = 5 * time.Second
	historyFor   = 15 * time.Minute
)

// metricHistory keeps figures of the last 15 minutes, taken from the process's own metrics, so that the operator's page
// has plots of the time before it was opened. mu is a leaf.
type metricHistory struct {
	from prometheus.Gatherer
	last *gathered // owned by Run

	mu     sync.Mutex
	points []historyPoint // oldest first
}

// historyPoint is the figures of the 5 s before At. A figure is null where there is nothing to tell: no request, no
// board.
type historyPoint struct {
	At         time.Time `json:"at"`
	Local      *float64  `json:"local"` // reads answered per second, by source
	Hot        *float64  `json:"hot"`
	Redis      *float64  `json:"redis"`
	Failed     *float64  `json:"failed"`       // requests per second with an answer of 500 or more
	Updates    *float64  `json:"updates"`      // applied per second
	AgeS       *float64  `json:"age_s"`        // of the oldest local board
	Behind     *float64  `json:"behind"`       // updates that the board furthest behind lacks
	P99Ms      *float64  `json:"p99_ms"`       // of requests to the data port
	RedisP99Ms *float64  `json:"redis_p99_ms"` // of calls to Redis
}

// Run takes a point every 5 s until ctx ends.
func (h *metricHistory) Run(ctx context.Context) error {
	for range tick.NowAndEvery(ctx, historyEvery) {
		h.take(time.Now())
	}
	return nil
}

func (h *metricHistory) take(at time.Time) {
	families, err := h.from.Gather()
	if err != nil { // an operator finds it at /metrics
		return
	}
	now := &gathered{at: at, families: make(map[string]*dto.MetricFamily, len(families))}
	for _, f := range families {
		now.families[f.GetName()] = f
	}
	before := h.last
	h.last = now
	if before == nil {
		return
	}
	p := now.point(before)
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.points) == int(historyFor/historyEvery) {
		h.points = slices.Delete(h.points, 0, 1)
	}
	h.points = append(h.points, p)
}

// serve answers GET /history.
func (h *metricHistory) serve(w http.ResponseWriter, _ *http.Request) {
	h.mu.Lock()
	points := append([]historyPoint{}, h.points...)
	h.mu.Unlock()
	httpserve.WriteJSON(w, http.StatusOK, map[string]any{"every_s": int(historyEvery.Seconds()), "points": points})
}
