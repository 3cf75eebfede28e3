package rebuild

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"rankcache"
	"rankcache/internal/metric"
	"rankcache/internal/tick"
	"rankcache/ledger"
	"rankcache/rooms"
	"rankcache/wire"
)

const (
	// lookEvery is how often damaged masters are looked for, and wantedEvery how often, on one, boards whose
	// commands wait.
	lookEvery, wantedEvery = time.Second, 50 * time.Millisecond
	// wantedAtOnce is how many boards whose commands wait are rebuilt at once.
	wantedAtOnce = 8
	// knownAtOnce is how many boards are read at a time.
	knownAtOnce = 1000
	// reachedWithin is how long the ledger may take to read what there is, until it is asked anew.
	reachedWithin = 10 * time.Minute
)

// MenderOptions configure a [Mender].
type MenderOptions struct {
	Options
	// Paced is another client of the same Redis, for boards that nobody writes: it waits after each call for four times
	// as long as it took. The caller closes it.
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
	// State is whole, rebuilding, behind (the ledger has not read all that there was when it was found that boards
	// may be lost), reading (all boards are there, and writers still read commands again), idle (another ledger does it)
	// or unknown.
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

// Run looks for damaged masters until ctx ends, beside a ledger.
func (m *Mender) Run(ctx context.Context, now ledger.Now) {
	for range tick.NowAndEvery(ctx, lookEvery) {
		if !now.Leads() {
			m.note(func(s *MendStatus) { s.State, s.Error, s.Damaged = "idle", "", []string{} })
			continue
		}
		found, err := m.find(ctx)
		if err != nil {
			m.failed(err)
		} else if len(found) == 0 {
			m.note(func(s *MendStatus) { s.State, s.Error, s.Damaged, s.Wanted, s.Left = "whole", "", []string{}, 0, 0 })
		} else {
			m.mendAll(ctx, now, found)
		}
	}
}

func (m *Mender) failed(err error) {
	m.note(func(s *MendStatus) {
		s.Error = err.Error()
		s.State = cmp.Or(map[bool]string{true: "unknown"}[len(s.Damaged) == 0], s.State)
	})
	m.limit.Do(func() { m.log.Warn("boards that Redis may have lost are not rebuilt, retrying", "err", err) })
}

// mendAll makes masters whole, all at the same time.
func (m *Mender) mendAll(ctx context.Context, now ledger.Now, found []damaged) {
	tags := make([]string, len(found))
	for i, d := range found {
		tags[i] = d.tag
	}
	slices.Sort(tags)
	m.note(func(s *MendStatus) { s.Damaged, s.Wanted, s.Left = tags, 0, 0 })
	var all sync.WaitGroup
	for _, d := range found {
		all.Go(func() {
			if err := m.mend(ctx, now, d); err != nil && ctx.Err() == nil {
				m.failed(err)
			}
		})
	}
	all.Wait()
}

// mend makes a master whole, or returns why that can't be done now. It may be repeated.
func (m *Mender) mend(ctx context.Context, now ledger.Now, d damaged) error {
	begun := time.Now()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go m.watch(ctx, cancel, now, d)
	m.note(func(s *MendStatus) { s.State = "behind" })
	reading, stop := context.WithTimeout(ctx, reachedWithin)
	err := now.Reached(reading)
	stop()
	if err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	m.note(func(s *MendStatus) { s.State, s.Error = "rebuilding", "" })
	boards, err := m.known(ctx, d)
	if err != nil {
		return err
	}
	before := m.Status().Rebuilt
	g, both := errgroup.WithContext(ctx)
	cleared := make(chan struct{})
	g.Go(func() error { return m.mendWanted(both, d, cleared) })
	g.Go(func() error {
		defer close(cleared)
		if err := m.mendOthers(both, d, boards); err != nil {
			return err
		}
		return m.clearOnceHealed(both, d)
	})
	if err := g.Wait(); err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	m.log.Warn("Redis has all boards that the ledger has", "master", d.tag, "rebuilt", m.Status().Rebuilt-before, "took", time.Since(begun))
	return nil
}

// clearOnceHealed takes the mark away as soon as writers have read what they read again.
func (m *Mender) clearOnceHealed(ctx context.Context, d damaged) error {
	for range tick.NowAndEvery(ctx, wantedEvery) {
		err := m.clear(ctx, d)
		if !errors.Is(err, errHealing) {
			return err
		}
		m.note(func(s *MendStatus) { s.State, s.Error = "reading", err.Error() })
	}
	return context.Cause(ctx)
}

// watch ends the work on a master that has another history, or if another ledger is to do it.
func (m *Mender) watch(ctx context.Context, cancel context.CancelCauseFunc, now ledger.Now, d damaged) {
	for range tick.Every(ctx, lookEvery) {
		if err := m.unchanged(ctx, d); err != nil || !now.Leads() {
			cancel(errors.Join(errOver, err))
		}
	}
}

// mendWanted rebuilds boards whose commands wait, and answers for them, until the master is whole.
func (m *Mender) mendWanted(ctx context.Context, d damaged, cleared <-chan struct{}) error {
	before := 0
	for range tick.NowAndEvery(ctx, wantedEvery) {
		boards, err := m.wanted(ctx, d)
		if err != nil {
			return err
		}
		m.note(func(s *MendStatus) { s.Wanted += len(boards) - before })
		before = len(boards)
		var g errgroup.Group
		g.SetLimit(wantedAtOnce)
		for _, b := range boards {
			g.Go(func() error { return m.mendWantedBoard(ctx, d, b) })
		}
		if err := g.Wait(); err != nil {
			m.failed(err) // others go on; it is tried again
		}
		select {
		case <-cleared:
			return nil
		default:
		}
	}
	return context.Cause(ctx)
}

func (m *Mender) mendWantedBoard(ctx context.Context, d damaged, b rankcache.BoardID) error {
	if !m.take(b) {
		return nil // it is asked for again
	}
	defer m.free(b)
	k, err := m.opts.Store.KnownBoard(ctx, b)
	if err != nil {
		return err
	}
	answer := wire.AnswerGo
	if k.Final {
		answer = wire.AnswerEnded
	} else if k.State.Run != 0 {
		err = m.mendBoard(ctx, m.fast, d, &k)
	}
	if err != nil {
		return err
	}
	return m.answer(ctx, d, b, answer)
}

// mendOthers rebuilds all other boards, those that were changed lately first.
func (m *Mender) mendOthers(ctx context.Context, d damaged, boards []ledger.Known) error {
	left := len(boards)
	m.note(func(s *MendStatus) { s.Left += left })
	defer func() { m.note(func(s *MendStatus) { s.Left -= left }) }()
	var failed error // of one; others go on
	for i := range boards {
		k := &boards[i]
		for !m.take(k.Board) {
			tick.Sleep(ctx, wantedEvery)
		}
		err := m.mendBoard(ctx, m.slow, d, k)
		m.free(k.Board)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		failed = cmp.Or(failed, err)
		m.note(func(s *MendStatus) { s.Left--; left-- })
	}
	return failed
}

// known returns the boards of a master that the ledger has and that may be lost.
func (m *Mender) known(ctx context.Context, d damaged) (boards []ledger.Known, err error) {
	file := m.opts.File()
	if !slices.ContainsFunc(file.Classes, func(c *rooms.Class) bool { return c.Ledger }) {
		return nil, errors.New("no class has a ledger: give rankcache ledger the --rooms of the writers")
	}
	for after := rankcache.BoardID(""); ; {
		page, err := m.opts.Store.Known(ctx, after, knownAtOnce)
		if err != nil || len(page) == 0 {
			slices.SortFunc(boards, func(a, b ledger.Known) int { return cmp.Compare(b.At, a.At) })
			return boards, err
		}
		for _, k := range page {
			if !k.Final && lives(file, k.Board, k.At) && m.isOn(ctx, d, k.Board) {
				boards = append(boards, k)
			}
		}
		after = page[len(page)-1].Board
	}
}

// mendBoard rebuilds a board if Redis has lost changes of it.
func (m *Mender) mendBoard(ctx context.Context, with *Rebuilder, d damaged, k *ledger.Known) error {
	if !lives(m.opts.File(), k.Board, k.At) {
		return nil
	}
	lost, err := m.isLost(ctx, d, k)
	if err != nil || !lost {
		return err
	}
	result, err := with.again(ctx, k.Board, d.era)
	switch {
	case errors.Is(err, ErrExpired) || errors.Is(err, errWhole):
		return nil
	case err != nil:
		m.rebuilt.WithLabelValues("failed").Inc()
		return err
	}
	m.count(k.Board, result)
	return nil
}

func (m *Mender) count(b rankcache.BoardID, done *Result) {
	result := "whole"
	if done.Partial != nil {
		result = "partial"
		m.log.Error("a board that Redis had lost was rebuilt, and may lack some of what it had", "board", b, "err", done.Partial)
	}
	m.rebuilt.WithLabelValues(result).Inc()
	m.note(func(s *MendStatus) {
		if s.Rebuilt++; done.Partial != nil {
			s.Partial++
		}
	})
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
