package writer

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"rankcache/internal/kafka"
	"rankcache/internal/retry"
	"rankcache/rooms"
	"rankcache/wire"
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
	ledger   ledgerTopic
	rewinds  *rewinder
	rolling  *rolling
	waits    *waits
	stall    *stall
	named    atomic.Pointer[round] // the last round whose masters the ledger knows
	naming   singleflight.Group
	metrics  *metrics
	log      *slog.Logger
	// producer is set while the writer runs; posted commands use it at any time.
	producer atomic.Pointer[producer]
	consumer atomic.Pointer[consumer] // likewise
}

func newProcessor(opts Options) *processor {
	m, stall := newMetrics(opts.Registerer), &stall{}
	applier := newApplier(opts, m)
	return &processor{refuser: newRefuser(opts.Names.Refused, m, opts.Log), opts: opts, applier: applier, rooms: newRoomSets(opts, applier.clock.Now),
		topics: newTopics(opts.Topics, opts.Names, opts.Tiers, m), commands: &commandLog{tiers: opts.Tiers, metrics: m, stall: stall, log: opts.Log, every: readLogEvery},
		ledger: ledgerTopic{opts.Names.Ledger, opts.Tiers}, rewinds: newRewinder(opts, applier.adopter, m.rewind), rolling: &rolling{adopter: applier.adopter}, waits: newWaits(), stall: stall, metrics: m, log: opts.Log}
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

var errBlocked = &Refusal{"blocked", errors.New("the operator has blocked this board or its room")}

// appendMessages counts the outcome of a job that is not refused, and appends its update
// and those of the boards that it feeds, if they must be published. Duplicates are published too: a crash
// between Redis and Kafka makes a command a duplicate without its update being in Kafka.
func (p *processor) appendMessages(dst []message, j *job, fed []*job) []message {
	if !j.told {
		p.metrics.countOutcome(&j.Outcome)
		p.audit(j)
		dst = p.appendUpdate(dst, j)
	}
	for _, f := range fed {
		if f.told || f.waits {
			continue
		}
		if p.metrics.countFed(&f.Outcome); f.Refusal == nil {
			dst = p.appendUpdate(dst, f)
		}
	}
	return dst
}

// appendUpdate appends a job's update if it must be published: that of a board that has ended too, as it lingers in
// sidecars. Where boards are not kept any more the topic may be gone, and is not made again. The ledger's topic stays.
func (p *processor) appendUpdate(dst []message, j *job) []message {
	if j.rules.asksLedger() {
		dst = p.ledger.append(dst, &j.Update, j)
		for i := range j.Trims {
			dst = p.ledger.append(dst, &j.Trims[i], j)
		}
	}
	if !p.opts.PublishAll && p.opts.Tiers.Mode(j.Board, j.Room) != rooms.ModeSuperHot || j.rules.isGone(p.applier.now()) {
		return dst
	}
	log := p.opts.Tiers.File().Log(p.opts.Names, j.Board)
	dst = append(dst, updateMessage(&log, &j.Update))
	for i := range j.Trims {
		dst = append(dst, updateMessage(&log, &j.Trims[i]))
	}
	return dst
}

func updateMessage(log *rooms.Log, u *wire.Update) message {
	key := u.Member
	if log.Shared {
		key = string(u.Board)
	}
	return message{topic: log.Topic, key: []byte(key), value: wire.AppendUpdate(nil, u)}
}

// publish returns once Kafka has acknowledged all messages. Its only error is that ctx has ended.
func (p *processor) publish(ctx context.Context, to *producer, messages []message) error {
	if len(messages) == 0 {
		return nil
	}
	begin := time.Now()
	if err := p.nameFirst(ctx, to, messages); err != nil {
		return err
	}
	err := p.retry(ctx, "kafka", func() (err error) {
		messages, err = to.send(ctx, messages)
		return err
	})
	p.metrics.publish.Observe(time.Since(begin).Seconds())
	return err
}

// retry is [retry.Do] for the writer's servers.
func (p *processor) retry(ctx context.Context, of string, attempt func() error) error {
	most := maxKafkaPause
	if of == "redis" {
		most = maxRedisPause
	}
	return retry.Do(ctx, of, retry.Policy{First: firstPause, Most: most, Failed: p.metrics.retries.WithLabelValues(of).Inc, Log: p.log, Every: time.Second}, func() error { return p.stall.failed(attempt()) })
}
