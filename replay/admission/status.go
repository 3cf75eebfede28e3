package admission

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
)

// Refusal is a wanted board that is not kept in memory.
type Refusal struct {
	Board   rankcache.BoardID `json:"board"`
	Members int               `json:"members"` // as last known; 0: unknown
	Bytes   int64             `json:"bytes"`   // estimate; 0: unknown
	Reason  string            `json:"reason"`
	Since   time.Time         `json:"since"`
}

// Status is the state of the budget, for operators.
type Status struct {
	Budget     int64     `json:"budget_bytes"`               // 0: none
	Used       int64     `json:"used_bytes"`                 // by the admitted boards, estimated
	Filling    int64     `json:"filling_bytes"`              // more by the boards that are being filled now
	ForFilling int64     `json:"reserved_for_filling_bytes"` // more, kept free for the board that takes most
	Waiting    int       `json:"waiting_to_be_filled"`       // boards, for memory
	Admitted   int       `json:"admitted"`
	LetGo      int       `json:"lingering_let_go"` // boards of ended periods that there is no room for
	Refused    []Refusal `json:"refused"`          // and boards of unknown size; in the order of naming
}

var (
	budgetDesc   = prometheus.NewDesc("rankcache_memory_budget_bytes", "Memory budget of all local boards, those being filled included; 0 for none.", nil, nil)
	fillingDesc  = prometheus.NewDesc("rankcache_memory_filling_bytes", "Estimated memory that boards take beside that while they are filled.", nil, nil)
	boardsDesc   = prometheus.NewDesc("rankcache_memory_boards_bytes", "Estimated memory of the admitted boards.", nil, nil)
	admittedDesc = prometheus.NewDesc("rankcache_memory_admitted_boards", "Super-hot boards that are kept in memory.", nil, nil)
	refusedDesc  = prometheus.NewDesc("rankcache_memory_refused_boards", "Super-hot boards that are not kept in memory, by reason: over budget, or of unknown size.", []string{"reason"}, nil)
)

// collector reads the state when it is scraped.
type collector struct{ a *Admission }

func (collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{budgetDesc, boardsDesc, fillingDesc, admittedDesc, refusedDesc} {
		out <- d
	}
}

func (c collector) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	c.a.mu.Lock()
	defer c.a.mu.Unlock()
	var count [kindAdmitted + 1]float64
	for i, id := range c.a.wanted {
		if v, known := c.a.verdict[id]; known && (v.admitted() || i < c.a.firm) { // else nobody expects it in memory
			count[v.kind]++
		}
	}
	gauge(budgetDesc, float64(c.a.budget))
	gauge(fillingDesc, float64(c.a.fills.taken))
	gauge(boardsDesc, float64(c.a.held))
	gauge(admittedDesc, count[kindAdmitted])
	gauge(refusedDesc, count[kindRefused], "over_budget")
	gauge(refusedDesc, count[kindUnknown], "unknown_size")
}
