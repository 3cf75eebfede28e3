package writer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"rankcache/internal/kafka"
	"rankcache/internal/tick"
	"rankcache/rooms"
)

// stallAfter is how long a batch may be applied, or published, before the writer tells that it does not get on.
const stallAfter = 30 * time.Second

// stall knows since when batches are in hand, and the last error. It is safe for concurrent use.
type stall struct {
	applying, publishing atomic.Pointer[time.Time] // nil: no batch
	last                 atomic.Pointer[error]
}

// take notes that a stage has a batch, until done is called.
func (s *stall) take(stage *atomic.Pointer[time.Time]) (done func()) {
	s.last.Store(nil)
	stage.Store(new(time.Now()))
	return func() { stage.Store(nil) }
}

// failed notes an error of an attempt, which it returns.
func (s *stall) failed(err error) error {
	if err != nil {
		s.last.Store(&err)
	}
	return err
}

// lasts returns for how long the batch that is longest in hand is.
func (s *stall) lasts() (longest time.Duration) {
	for _, stage := range []*atomic.Pointer[time.Time]{&s.applying, &s.publishing} {
		if since := stage.Load(); since != nil {
			longest = max(longest, time.Since(*since))
		}
	}
	return longest
}

// fault returns why the writer does not get on, nil while it does.
func (s *stall) fault() error {
	took := s.lasts()
	if took < stallAfter {
		return nil
	}
	err := errors.New("no answer")
	if last := s.last.Load(); last != nil {
		err = *last
	}
	return fmt.Errorf("commands stand still for %v: %w", took.Round(time.Second), err)
}

const (
	// lookAtLog is how often the command topic is judged for the classes, readLogEvery its settings are read.
	lookAtLog    = time.Second
	readLogEvery = 30 * time.Second
)

// commandLog knows whether the command topic is fit for the durable classes in force. It is safe for concurrent use.
type commandLog struct {
	tiers   Tiers
	metrics *metrics
	stall   *stall
	log     *slog.Logger
	every   time.Duration               // readLogEvery, except in tests
	last    atomic.Pointer[logSettings] // nil: not read yet
}

// logSettings are the settings of the command topic as they were read.
type logSettings struct {
	kafka.CommandLog
	unknown error // the user may not read them
}

// fit returns why posts of a durable class are not to be taken. Where the settings can't be read they are.
func (s *logSettings) fit(kind *rooms.Class) error {
	if s.unknown != nil {
		return nil
	}
	if err := s.Fit(kind.Orders); err != nil {
		return fmt.Errorf("%w: class %s: %w", errUnfit, kind.Name(), err)
	}
	return nil
}

func (l *commandLog) read(ctx context.Context, from *producer) error {
	found, err := from.commandLog(ctx)
	if err != nil && !kafka.Refused(err) {
		return err
	}
	settings := &logSettings{CommandLog: found}
	if err != nil {
		settings.unknown = fmt.Errorf("%w: grant DescribeConfigs on it", err)
	}
	l.last.Store(settings)
	return nil
}

// run looks after the topic until ctx is done, and logs what has changed.
func (l *commandLog) run(ctx context.Context, from *producer) {
	var read time.Time
	said := ""
	for range tick.NowAndEvery(ctx, lookAtLog) {
		if l.tiers.File().DurableOrders() > 0 && time.Since(read) >= l.every && l.read(ctx, from) == nil {
			read = time.Now()
		}
		state, refused := l.state()
		l.metrics.unfit.Set(float64(refused))
		l.metrics.stalled.Set(l.stall.lasts().Seconds())
		if state.Error != said && state.Error != "" && l.last.Load() != nil {
			l.log.Warn("the command topic of durable classes", "state", state.State, "err", state.Error)
		}
		said = state.Error
	}
}

// answer is how a service answered a call of the status, or what is known of the command topic for durable classes.
type answer struct {
	State   string  `json:"state"` // ok, failing; of the command topic also unknown
	Latency float64 `json:"latency_ms"`
	Error   string  `json:"error,omitempty"`
}

// state returns how the topic is for durable classes, the first error, and how many of them are refused.
func (l *commandLog) state() (st answer, refused int) {
	last := l.last.Load()
	for _, c := range l.tiers.File().Classes {
		switch {
		case !c.Durable:
			continue
		case last == nil:
			return answer{State: "unknown", Error: "its settings have not been read yet"}, 0
		case last.unknown != nil:
			return answer{State: "unknown", Error: last.unknown.Error()}, 0
		}
		st.State = cmp.Or(st.State, "ok")
		if err := last.fit(c); err != nil {
			if refused++; refused == 1 {
				st = answer{State: "failing", Error: err.Error()}
			}
		}
	}
	return st, refused
}
