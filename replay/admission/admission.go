package admission

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"rankcache"
)

// Defaults of [Config].
const (
	DefaultEvery   = 2 * time.Second
	undecidedEvery = 250 * time.Millisecond // the interval of decisions before the first one
)

// Size is the size of a board.
type Size struct {
	Members int
	IDBytes int // mean length of its members' ids
}

// Usage is the memory that a board takes now.
type Usage struct {
	Size
	Bytes int64
	Open  bool // filled; otherwise it grows
}

// Origin reads the sizes of boards.
type Origin interface {
	// Sizes returns the size of each board, nil if it is unknown, for the reason in the error.
	Sizes(ctx context.Context, boards []rankcache.BoardID) ([]*Size, error)
}

// Config configures an [Admission].
type Config struct {
	// Budget returns the bytes for all boards, those being filled too; 0: no limit. It is asked at each decision.
	Budget func() int64
	Every  time.Duration // 0: DefaultEvery
	Origin Origin
	Usage  func() map[rankcache.BoardID]Usage // returns the boards that are in memory
	// Follow is called by Run when the admitted boards change, first when one size is known or no board is wanted.
	Follow func([]rankcache.BoardID)
	Log    *slog.Logger
}

// Admission admits boards. Its methods may be called from any goroutine.
type Admission struct {
	cfg  Config
	wake chan struct{}

	mu      sync.Mutex // no function of the caller is called under it
	wanted  []rankcache.BoardID
	firm    int // of the wanted boards, the others linger
	named   bool
	decided bool
	verdict map[rankcache.BoardID]verdict // of the wanted boards that were decided
	budget  int64                         // at the last decision
	demand
	over  bool // the admitted boards had outgrown the budget
	fills fills
}

// New returns an Admission that starts nothing.
func New(cfg Config, reg prometheus.Registerer) *Admission {
	cfg.Every = cmp.Or(cfg.Every, DefaultEvery)
	a := &Admission{cfg: cfg, wake: make(chan struct{}, 1), verdict: make(map[rankcache.BoardID]verdict)}
	reg.MustRegister(collector{a})
	return a
}

// Want names the boards to keep in memory, the most important first, and those that linger there while others
// leave room: they are let go first, and keep no other out. It returns at once and does not keep the slices.
func (a *Admission) Want(boards, lingering []rankcache.BoardID) {
	a.mu.Lock()
	a.wanted, a.firm, a.named = slices.Concat(boards, lingering), len(boards), true
	a.mu.Unlock()
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// Run admits boards until ctx is done; it returns nil.
func (a *Admission) Run(ctx context.Context) error {
	for {
		a.step(ctx)
		every := a.cfg.Every
		if !a.Decided() {
			every = min(every, undecidedEvery)
		}
		timer := time.NewTimer(every)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-a.wake:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// Decided reports whether Follow has been called.
func (a *Admission) Decided() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.decided
}

// Status returns the last decisions.
func (a *Admission) Status() Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := Status{Budget: a.budget, Used: a.held, Filling: a.fills.taken, ForFilling: a.fill, Waiting: a.fills.waiting.Len(), Refused: []Refusal{}}
	for i, id := range a.wanted {
		switch v, known := a.verdict[id]; {
		case v.admitted():
			s.Admitted++
		case i >= a.firm:
			s.LetGo++
		case known:
			s.Refused = append(s.Refused, Refusal{id, v.size.Members, v.held, v.reason, v.since})
		}
	}
	return s
}

// step decides about every wanted board.
func (a *Admission) step(ctx context.Context) {
	a.mu.Lock()
	wanted, firm, named, before, over := a.wanted, a.firm, a.named, a.verdict, a.over
	a.mu.Unlock()
	if !named {
		return
	}
	d := decision{budget: a.cfg.Budget(), wanted: wanted, firm: firm, before: before, over: over, usage: a.cfg.Usage()}
	if open := d.notAdmitted(); len(open) > 0 && d.budget > 0 {
		d.readSizes(ctx, a.cfg.Origin, open)
	}
	d.decide(time.Now())
	a.apply(&d)
}

// apply stores the verdicts, logs what they change and calls Follow.
func (a *Admission) apply(d *decision) {
	a.mu.Lock()
	before, wasDecided := a.verdict, a.decided
	a.verdict, a.demand, a.over, a.budget, a.decided = d.verdicts, d.demand, d.over, d.budget, wasDecided || d.answered
	decided := a.decided
	a.beginFillsLocked()
	a.mu.Unlock()

	a.logChanges(d, before)
	if decided && (!wasDecided || !maps.EqualFunc(before, d.verdicts, sameAdmission)) {
		a.cfg.Follow(admittedOf(d.wanted, d.verdicts))
	}
}

func sameAdmission(a, b verdict) bool { return a.admitted() == b.admitted() }

func admittedOf(wanted []rankcache.BoardID, verdicts map[rankcache.BoardID]verdict) (admitted []rankcache.BoardID) {
	for _, id := range wanted {
		if verdicts[id].admitted() {
			admitted = append(admitted, id)
		}
	}
	return admitted
}

// logChanges logs the boards whose verdict has changed.
func (a *Admission) logChanges(d *decision, before map[rankcache.BoardID]verdict) {
	for i, id := range d.wanted {
		was, known := before[id]
		switch v := d.verdicts[id]; {
		case v.admitted() && known && !was.admitted():
			a.cfg.Log.Info("board is admitted", "board", id, "bytes", v.held, "refused_before", was.reason)
		case !v.admitted() && (!known || was.kind != v.kind):
			level := slog.LevelWarn
			if i >= d.firm {
				level = slog.LevelInfo
			}
			a.cfg.Log.Log(context.Background(), level, "board is not kept in memory: Redis answers it", "board", id, "reason", v.reason)
		}
	}
}

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

type collector struct{ a *Admission } // reads the state when it is scraped

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
