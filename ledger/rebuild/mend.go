package rebuild

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"golang.org/x/time/rate"

	"rankcache"
	"rankcache/internal/metric"
	"rankcache/internal/tick"
	"rankcache/ledger"
	"rankcache/rooms"
)

const lookEvery = time.Second // how often damaged masters are looked for

// MenderOptions configure a [Mender].
type MenderOptions struct {
	Options
	// Paced is another client for boards that nobody writes: it waits after each call for four times as long.
	Paced      redis.UniversalClient
	File       func() *rooms.File // in force; nil: not known yet
	Registerer prometheus.Registerer
}

// Mender makes damaged masters of Redis whole: those that may lack boards which the ledger has. Writers mark them.
type Mender struct {
	opts         MenderOptions
	fast, slow   *Rebuilder
	log          *slog.Logger
	limit        rate.Sometimes
	rebuilt      *prometheus.CounterVec // by how
	masters      prometheus.Gauge
	wants, lefts prometheus.Gauge

	mu     sync.Mutex // nothing is called with it held
	status MendStatus
	busy   map[rankcache.BoardID]bool // that are looked at
}

// MendStatus is what a [Mender] does.
type MendStatus struct {
	// State is whole, rebuilding, behind (the ledger has not read all that there was when boards were found lost),
	// reading (writers still read commands again), idle (another ledger does it) or unknown.
	State   string   `json:"state"`
	Error   string   `json:"error,omitempty"`
	Damaged []string `json:"damaged"` // masters
	Wanted  int      `json:"wanted"`  // boards whose commands wait
	Left    int      `json:"left"`    // boards that are still to be looked at, these among them
	Rebuilt int      `json:"rebuilt"` // since the start
	Partial int      `json:"partial"` // of these, of which the ledger did not have all
}

// NewMender returns a Mender. It connects to nothing.
func NewMender(opts MenderOptions) *Mender {
	set := metric.New(opts.Registerer, "ledger_")
	defer set.Must()
	slow := opts.Options
	slow.Redis = opts.Paced
	opts.Paced.AddHook(pace{})
	m := &Mender{opts: opts, fast: New(opts.Options), slow: New(slow), limit: rate.Sometimes{Interval: 10 * time.Second}, busy: make(map[rankcache.BoardID]bool),
		rebuilt: set.Counters("rebuilt_boards_total", "Boards that Redis had lost and that were rebuilt, by result: whole; partial (the ledger did not have all of it); failed (it is tried again).", "result"),
		masters: set.Gauge("damaged_masters", "Masters of Redis that may lack boards which the ledger has."),
		wants:   set.Gauge("wanted_boards", "Boards whose commands wait until they are rebuilt."),
		lefts:   set.Gauge("boards_left", "Boards of damaged masters that are still to be looked at.")}
	m.log = m.fast.opts.Log
	m.status = MendStatus{State: "unknown", Damaged: []string{}}
	return m
}

// Status returns what it does. It may be called at any time.
func (m *Mender) Status() MendStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.status
}

func (m *Mender) note(change func(*MendStatus)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(&m.status)
	m.masters.Set(float64(len(m.status.Damaged)))
	m.wants.Set(float64(m.status.Wanted))
	m.lefts.Set(float64(m.status.Left))
}

// Run looks for damaged masters until ctx ends, beside a ledger, and makes all that it finds whole at the same time.
func (m *Mender) Run(ctx context.Context, now ledger.Now) {
	under := make(map[damaged]*mending)
	var all sync.WaitGroup
	defer all.Wait()
	for range tick.NowAndEvery(ctx, lookEvery) {
		found, known := m.found(ctx, now)
		for d, one := range under {
			if one.ended.Load() || known && !slices.Contains(found, d) {
				one.cancel(errOver)
				delete(under, d)
			}
		}
		for _, d := range found {
			if under[d] == nil {
				under[d] = m.begin(ctx, now, d, &all)
			}
		}
	}
}

// found returns the damaged masters that this ledger has to make whole, and whether these are all.
func (m *Mender) found(ctx context.Context, now ledger.Now) (found []damaged, known bool) {
	if !now.Leads() {
		m.note(func(s *MendStatus) { s.State, s.Error, s.Damaged = "idle", "", []string{} })
		return nil, true
	}
	found, err := m.find(ctx)
	if err != nil { // those that answer are made whole
		m.failed(err)
		return found, false
	}
	tags := make([]string, len(found))
	for i, d := range found {
		tags[i] = d.tag
	}
	slices.Sort(tags)
	m.note(func(s *MendStatus) {
		if s.Damaged = tags; len(tags) == 0 {
			s.State, s.Error = "whole", ""
		}
	})
	return found, true
}

func (m *Mender) failed(err error) {
	m.note(func(s *MendStatus) {
		s.Error = err.Error()
		s.State = cmp.Or(map[bool]string{true: "unknown"}[len(s.Damaged) == 0], s.State)
	})
	m.limit.Do(func() { m.log.Warn("boards that Redis may have lost are not rebuilt, retrying", "err", err) })
}

// take reports whether nobody looks at a board, and has the caller do so.
func (m *Mender) take(b rankcache.BoardID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.busy[b] {
		return false
	}
	m.busy[b] = true
	return true
}

func (m *Mender) free(b rankcache.BoardID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.busy, b)
}
