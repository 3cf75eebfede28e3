package writer

import (
	"cmp"
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"rankcache/internal/kafka"
	"rankcache/internal/redisclock"
	"rankcache/internal/retry"
	"rankcache/rooms"
	"rankcache/wire"
)

const (
	// Pauses between attempts while Redis or Kafka is unavailable. Those of Redis are
	// short: a failover, a moving slot and an adoption are over in little time.
	firstPause    = 20 * time.Millisecond
	maxRedisPause = 200 * time.Millisecond
	maxKafkaPause = 2 * time.Second
	// timesEvery is the time between warnings of the command topic's setting.
	timesEvery = 10 * time.Minute
)

// processor takes commands from their bytes to Redis and Kafka: what the command topic and
// posts have in common. It is safe for concurrent use.
type processor struct {
	*refuser
	opts     Options
	applier  *applier
	rooms    *roomSets
	topics   *topics
	commands *commandLog
	rewinds  *rewinder
	rolling  *rolling
	waits    *waits
	stall    *stall
	named    atomic.Pointer[round] // the last round whose masters the ledger knows
	naming   singleflight.Group
	metrics  *metrics
	log      *slog.Logger
	// producer is set while the writer runs; posted commands use it at any time.
	producer            atomic.Pointer[producer]
	consumer            atomic.Pointer[consumer] // likewise
	timesLog, commitLog rate.Sometimes
}

func newProcessor(opts Options) *processor {
	m, stall := newMetrics(opts.Registerer), &stall{}
	applier := newApplier(opts, m)
	return &processor{refuser: newRefuser(opts.Names.Refused, m, opts.Log), opts: opts, applier: applier, rooms: newRoomSets(opts, applier.clock.Now),
		topics: newTopics(opts.Topics, opts.Names, opts.Tiers, m), commands: &commandLog{tiers: opts.Tiers, metrics: m, stall: stall, log: opts.Log, every: readLogEvery},
		rewinds: newRewinder(opts, applier.adopter, m.rewind), rolling: &rolling{adopter: applier.adopter}, waits: newWaits(), stall: stall, metrics: m, log: opts.Log, timesLog: rate.Sometimes{Interval: timesEvery}, commitLog: logLimit()}
}

// acceptRecord returns the job of a record of the command topic, as [processor.accept] does.
func (p *processor) acceptRecord(m *kafka.Message, polled time.Time) (j *job, err error) {
	at, arrived := recordTime(m, polled), arrival(m, polled)
	if j, err = p.accept(m.Value, at, arrived); brokerDates(m) {
		j.clockLimit = maxClockDifference
	}
	return j, err
}

// accept returns the job of a command that has arrived at a time; at is the time of a command without one. After an
// error, which is a [*Refusal], the job has the command if it could be decoded.
func (p *processor) accept(data []byte, at int64, arrived time.Time) (*job, error) {
	c, err := DecodeCommand(data, at)
	if err != nil {
		return &job{Command: c}, err
	}
	return p.check(c, arrived)
}

// check returns the job of a command, and the [*Refusal] of one that is not allowed.
func (p *processor) check(c *Command, arrived time.Time) (j *job, err error) {
	j = &job{Command: c}
	if j.rules, j.outside, err = resolve(c, p.opts.Tiers.File(), arrived); err != nil {
		return j, err
	}
	if err := p.opts.Names.CheckBoard(c.Board); err != nil {
		return j, &Refusal{"board", err}
	}
	j.clockLimit = clockLimit(j.rules.kind)
	if j.rules.durable() && c.At > arrived.Add(maxAhead).UnixMilli() {
		j.outside = cmp.Or(j.outside, refusals["early"])
	}
	if p.opts.Tiers.Mode(c.Board, c.Room) == rooms.ModeBlocked && c.Op != wire.OpForget {
		return j, errBlocked
	}
	return j, nil
}

// countKey counts a record whose sequence among those of its member or board is chance.
func (p *processor) countKey(j *job, key []byte) {
	if kind := j.rules.kind; kind != nil && kind.Durable && kind.Ordered() && string(key) != commandKey(j.Command, kind) {
		p.metrics.otherKeys.WithLabelValues(kind.Name()).Inc()
	}
}

// strictestClock returns the least of the limits of all classes.
func (p *processor) strictestClock() time.Duration {
	limit := maxClockDifference
	for _, kind := range p.opts.Tiers.File().Classes {
		limit = min(limit, clockLimit(kind))
	}
	return limit
}

// ClockError returns why this writer judges no command of some class, or nil: the clocks differ by too much.
func (p *processor) ClockError() error { return p.applier.clock.Check(p.strictestClock()) }

// CompareClock compares this clock with Redis's, for ClockError. The error: Redis did not tell its time.
func (p *processor) CompareClock(ctx context.Context) error {
	return p.applier.clock.Compare(ctx, redisclock.Good)
}

// retry is [retry.Do] for the writer's servers.
func (p *processor) retry(ctx context.Context, of string, attempt func() error) error {
	most := maxKafkaPause
	if of == "redis" {
		most = maxRedisPause
	}
	return retry.Do(ctx, of, retry.Policy{First: firstPause, Most: most, Failed: p.metrics.retries.WithLabelValues(of).Inc, Log: p.log, Every: time.Second}, func() error { return p.stall.failed(attempt()) })
}
