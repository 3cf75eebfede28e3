package keeper

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"rankcache"
	"rankcache/internal/metric"
	"rankcache/internal/tick"
	"rankcache/wire"
)

const DefaultEvery = 300 * time.Millisecond // how often states are read

// boardsAnInterval is the boards of one interval: for more it grows, as each sidecar takes 31 B of each board a time.
const boardsAnInterval = 1000

// Origin reads the states of boards from Redis. A stamp without a time was not read.
type Origin interface {
	Stamps(context.Context, []rankcache.BoardID) ([]rankcache.Stamp, error)
}

// Publisher reads all boards' states and publishes them, unless something newer was since it began. Two do no harm.
type Publisher struct {
	value   *Value
	origin  Origin
	boards  func() []rankcache.BoardID
	every   time.Duration
	log     *slog.Logger
	metrics *metrics
	last    string // the serial that the value is known to have had
}

type metrics struct {
	boards, publishedAt prometheus.Gauge
	published, overtook prometheus.Counter
	errors              prometheus.Counter
}

// New returns a publisher of the states of the boards that a function returns. It starts nothing.
func New(value *Value, origin Origin, boards func() []rankcache.BoardID, every time.Duration, log *slog.Logger, reg prometheus.Registerer) (*Publisher, error) {
	if every < 10*time.Millisecond || every > wire.MaxStatesEvery {
		return nil, fmt.Errorf("states every %v: want 10ms to %v", every, wire.MaxStatesEvery)
	}
	set := metric.New(reg, "keeper_")
	p := &Publisher{value: value, origin: origin, boards: boards, every: every, log: log}
	p.metrics = &metrics{
		boards:      set.Gauge("states_boards", "Boards in the states that this keeper has published last."),
		publishedAt: set.Gauge("states_published_timestamp_seconds", "When this keeper has published the states of boards last; 0: never."),
		published:   set.Counter("states_published_total", "How often this keeper has published the states of boards."),
		overtook:    set.Counter("states_overtaken_total", "How often another keeper has published states while this one read them, so that these were dropped."),
		errors:      set.Counter("states_errors_total", "How often Redis did not answer in full while states were read or published."),
	}
	return p, set.Err()
}

// Run publishes until ctx is done; it returns nil.
func (p *Publisher) Run(ctx context.Context) error {
	p.last = ""
	for ctx.Err() == nil {
		begun := time.Now()
		boards := p.boards()
		every := p.every * time.Duration(1+len(boards)/boardsAnInterval)
		if err := p.publish(ctx, boards, min(every, wire.MaxStatesEvery)); err != nil && ctx.Err() == nil {
			p.metrics.errors.Inc()
			p.log.Warn("the states of boards are not published in full", "err", err)
		}
		tick.Sleep(ctx, max(every-time.Since(begun), every/10))
	}
	return nil
}

// publish reads the states and publishes them, if the serial is still the one from before.
func (p *Publisher) publish(ctx context.Context, boards []rankcache.BoardID, every time.Duration) (err error) {
	before := p.last
	if p.last = ""; before == "" {
		if before, err = p.value.serial(ctx); err != nil {
			return fmt.Errorf("read the serial of %s: %w", p.value.Key, err)
		}
	}
	serial, goesOn := nextSerial(before)
	if !goesOn {
		boards = nil // the key may come and go while they are read, so the first value has none
	}
	states, readErr := p.read(ctx, boards)
	found, err := p.value.replace(ctx, before, wire.AppendStates(nil, p.value.Instance, serial, every, states))
	switch {
	case err != nil:
		return fmt.Errorf("publish states as %s: %w", p.value.Key, err)
	case found != before:
		p.last = found
		p.metrics.overtook.Inc()
		return readErr
	}
	p.last = string(wire.AppendSerial(nil, serial))
	p.metrics.published.Inc()
	p.metrics.boards.Set(float64(len(states)))
	p.metrics.publishedAt.SetToCurrentTime()
	return readErr
}

// nextSerial returns the next serial, and whether one is before it. A key's first is the time in microseconds.
func nextSerial(before string) (serial uint64, goesOn bool) {
	if serial, ok := wire.ParseSerial(before); ok {
		return serial + 1, true
	}
	return uint64(time.Now().UnixMicro()), false // #nosec G115 -- after 1970
}

// read returns the states of the boards that could be read.
func (p *Publisher) read(ctx context.Context, boards []rankcache.BoardID) ([]wire.BoardState, error) {
	stamps, err := p.origin.Stamps(ctx, boards)
	states := make([]wire.BoardState, 0, len(stamps))
	for i, s := range stamps {
		if !s.At.IsZero() {
			states = append(states, wire.BoardState{Board: wire.StateKey(string(boards[i])), State: s.State, Members: s.Members, Life: s.Life, Primed: s.Primed})
		}
	}
	return states, err
}
