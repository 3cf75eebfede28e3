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

const (
	// lookAtLog is how often the command topic is judged for the classes, readLogEvery its settings are read.
	lookAtLog    = time.Second
	readLogEvery = 30 * time.Second
)

// commandKey returns a command's key in the command topic: what keeps the sequence of those that don't commute.
func commandKey(c *Command, kind *rooms.Class) string {
	if kind.OrderedAsBoard() {
		return string(c.Board)
	}
	return c.Member
}

// countKey counts a record whose sequence among those of its member or board is chance.
func (p *processor) countKey(j *job, key []byte) {
	if kind := j.rules.kind; kind != nil && kind.Durable && kind.Ordered() && string(key) != commandKey(j.Command, kind) {
		p.metrics.otherKeys.WithLabelValues(kind.Name()).Inc()
	}
}

// errUnfit reports that the command topic does not keep what durable classes need.
var errUnfit = errors.New("posts of durable classes are refused")

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

// logFits returns why a post of a durable class is not to be taken now.
func (p *processor) logFits(ctx context.Context, kind *rooms.Class) error {
	if err := p.rewinds.deniedBy(); err != nil {
		return fmt.Errorf("%w: class %s: %w", errUnfit, kind.Name(), err)
	}
	if p.commands.last.Load() == nil {
		to := p.producer.Load()
		if to == nil {
			return errors.Join(errNotRecorded, errClosed)
		}
		if err := p.retry(ctx, "kafka", func() error { return p.commands.read(ctx, to) }); err != nil {
			return errors.Join(errNotRecorded, err)
		}
	}
	return p.commands.last.Load().fit(kind)
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

// logFault returns why posts of durable classes are refused, nil while none are.
func (w *Writer) logFault() error {
	if err := w.rewinds.deniedBy(); err != nil {
		return fmt.Errorf("%w: %w", errUnfit, err)
	}
	if st, refused := w.commands.state(); refused > 0 {
		return fmt.Errorf("%s (%d classes)", st.Error, refused)
	}
	return nil
}
