// Package admission decides which super-hot boards are kept in memory, within a
// budget. A board that does not fit is refused with the reason and answered as
// any other board is: better one room from Redis than a process that is killed
// for its memory.
//
// The path of a board, in order: [Admission.Want] names it; a look asks how large
// those are that are not admitted yet (admission.go), reckons their memory
// (estimate.go), and admits in the order of naming what the admitted ones leave
// room for (decide.go); whoever fills boards is told. Every [DefaultEvery] those
// that were refused are looked at again. An admitted board is never thrown out for
// another; if the admitted ones outgrow the budget, that is told (status.go,
// metrics.go) and no more are admitted.
//
// A board whose size is not known, because Redis does not answer, is not
// admitted: it could not be opened without Redis either, and filling a hundred
// boards blindly is how a process is killed for its memory.
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
	DefaultEvery = 2 * time.Second
	// waitingEvery is how often a look is taken before the first board is known.
	waitingEvery = 250 * time.Millisecond
)

// Size is how large a board is.
type Size struct {
	Members int
	IDBytes int // mean length of its members' ids
}

// Held is what a board takes in memory now.
type Held struct {
	Size
	Bytes int64
	Open  bool // filled; otherwise it still grows
}

// Origin says how large boards are.
type Origin interface {
	// Sizes returns the size of each board, nil for one that is not known, which
	// the error explains.
	Sizes(ctx context.Context, boards []rankcache.BoardID) ([]*Size, error)
}

// Config is what an [Admission] needs.
type Config struct {
	Budget int64         // bytes for all boards; 0: no limit
	Every  time.Duration // 0: DefaultEvery
	Origin Origin
	// Held returns the boards that are in memory.
	Held func() map[rankcache.BoardID]Held
	// Follow is called by Run with the admitted boards when they change; not before
	// the size of a board is known, or there is none to be known.
	Follow func([]rankcache.BoardID)
	Log    *slog.Logger
}

// Admission admits boards. Its methods may be called from any goroutine.
type Admission struct {
	cfg  Config
	kick chan struct{}

	mu      sync.Mutex // nothing is called with it held
	wanted  []rankcache.BoardID
	named   bool
	decided bool
	verdict map[rankcache.BoardID]verdict // of the wanted ones that were looked at
	used    int64
	over    bool // used has outgrown the budget
}

// New returns an Admission that starts nothing.
func New(cfg Config, reg prometheus.Registerer) *Admission {
	cfg.Every = cmp.Or(cfg.Every, DefaultEvery)
	a := &Admission{cfg: cfg, kick: make(chan struct{}, 1), verdict: make(map[rankcache.BoardID]verdict)}
	reg.MustRegister(collector{a})
	return a
}

// Want names the boards that shall be kept, the most important first. It returns
// at once and does not keep the slice.
func (a *Admission) Want(boards []rankcache.BoardID) {
	a.mu.Lock()
	a.wanted, a.named = slices.Clone(boards), true
	a.mu.Unlock()
	select {
	case a.kick <- struct{}{}:
	default:
	}
}

// Run admits boards until ctx is done; it returns nil.
func (a *Admission) Run(ctx context.Context) error {
	for {
		a.look(ctx)
		every := a.cfg.Every
		if !a.Decided() {
			every = min(every, waitingEvery)
		}
		timer := time.NewTimer(every)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-a.kick:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// Decided reports whether the boards to follow have been told once.
func (a *Admission) Decided() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.decided
}

// look decides about every wanted board.
func (a *Admission) look(ctx context.Context) {
	a.mu.Lock()
	wanted, named, before := a.wanted, a.named, a.verdict
	a.mu.Unlock()
	if !named {
		return
	}
	held := a.cfg.Held()
	q := question{budget: a.cfg.Budget, wanted: wanted, before: before, held: held}
	if open := q.unsettled(); len(open) > 0 && a.cfg.Budget > 0 {
		q.ask(ctx, a.cfg.Origin, open)
	}
	verdicts, used := q.decide(time.Now())
	a.settle(wanted, verdicts, used, q.answered)
}

// settle puts verdicts in force and tells what they change.
func (a *Admission) settle(wanted []rankcache.BoardID, verdicts map[rankcache.BoardID]verdict, used int64, answered bool) {
	over := a.cfg.Budget > 0 && used > a.cfg.Budget
	a.mu.Lock()
	before, wasDecided, wasOver := a.verdict, a.decided, a.over
	a.verdict, a.used, a.over, a.decided = verdicts, used, over, wasDecided || answered
	decided := a.decided
	a.mu.Unlock()

	a.tell(wanted, before, verdicts)
	if over != wasOver {
		a.tellOver(over, used)
	}
	if decided && (!wasDecided || !maps.EqualFunc(before, verdicts, sameAdmission)) {
		a.cfg.Follow(admittedOf(wanted, verdicts))
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

// tell logs the boards about which the verdict has changed.
func (a *Admission) tell(wanted []rankcache.BoardID, before, now map[rankcache.BoardID]verdict) {
	for _, id := range wanted {
		was, known := before[id]
		switch v := now[id]; {
		case v.admitted() && known && !was.admitted():
			a.cfg.Log.Info("board is admitted now", "board", id, "bytes", v.bytes, "refused_before", was.reason)
		case !v.admitted() && (!known || was.kind != v.kind):
			a.cfg.Log.Warn("board is not kept in memory", "board", id, "reason", v.reason)
		}
	}
}

func (a *Admission) tellOver(over bool, used int64) {
	if over {
		a.cfg.Log.Warn("boards have outgrown the memory budget: no more are admitted; raise the memory limit or name fewer rooms super-hot",
			"bytes", used, "budget", a.cfg.Budget)
		return
	}
	a.cfg.Log.Info("boards are within the memory budget again", "bytes", used, "budget", a.cfg.Budget)
}
