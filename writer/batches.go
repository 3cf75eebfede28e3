package writer

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/redis/go-redis/v9"

	"rankcache/internal/kafka"
	"rankcache/internal/redisclock"
	"rankcache/wire"
)

// applyBatches reads until ctx ends and applies what was read until work ends.
func (p *processor) applyBatches(ctx, work context.Context, c *consumer, applied chan<- *appliedBatch) error {
	both, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(work, func() { cancel(context.Cause(work)) })()
	var last *batch
	for {
		b, err := c.next(both, last)
		if b == nil {
			return err
		}
		last = b
		end := p.stall.take(&p.stall.applying)
		done, err := p.applyBatch(work, b)
		end()
		if errors.Is(err, errStale) {
			continue
		}
		if err != nil {
			return err
		}
		select {
		case applied <- done:
		case <-work.Done():
			return context.Cause(work)
		}
	}
}

// applyBatch decodes and applies a batch. Its only errors are that ctx has ended, and errStale.
func (p *processor) applyBatch(ctx context.Context, b *batch) (*appliedBatch, error) {
	p.metrics.batch.Observe(float64(len(b.records)))
	p.checkTimes(b.records)
	polled, err := p.awaitClock(ctx, b)
	if err == nil {
		err = p.retry(ctx, "redis", func() error { return p.rolling.settle(ctx) })
	}
	if err != nil {
		return nil, err
	}
	jobs, record := make([]*job, 0, len(b.records)), make([]*kafka.Message, 0, len(b.records))
	var messages []message
	var told []heard
	for _, m := range b.records {
		if wire.IsMarker(m.Value) { // its offset is committed with the others
			continue
		}
		j, err := p.acceptRecord(m, polled)
		if b.round.wasPublished(m) && (err != nil || !j.rules.durable()) {
			continue
		}
		if err == nil && j.rules.durable() && p.rewinds.deniedBy() != nil {
			b.leave(m)
			continue
		}
		if b.round.number > 0 {
			j.round, j.place, j.origin = b.round, b.round.place(m, polled), originOf(m)
		}
		if err != nil {
			messages = append(messages, p.refuseRecord(asRefusal(err), j.Command, m))
			told = appendHeard(told, m, Outcome{Refusal: asRefusal(err)}, nil)
			continue
		}
		p.countKey(j, m.Key)
		jobs, record = append(jobs, j), append(record, m)
	}
	fed, err := p.applyJobs(ctx, b.round, jobs)
	if err == nil {
		err = p.indexAgain(ctx, b.round, record, jobs, fed)
	}
	if err != nil {
		return nil, err
	}
	for i, j := range jobs {
		all := append([]*job{j}, fed.of(i)...)
		p.rewinds.mark(b.round, record[i], all...)
		if !b.keep(record[i], all...) {
			told = appendHeard(told, record[i], j.toPost(), fed.of(i))
		}
		if j.waits {
			continue
		}
		if j.Refusal != nil {
			if !j.told {
				messages = append(messages, p.refuseRecord(j.Refusal, j.Command, record[i]))
			}
			continue
		}
		messages = p.appendMessages(messages, j, fed.of(i))
		for _, f := range fed.of(i) {
			if f.Refusal != nil && !f.told {
				messages = append(messages, p.refuseFed(f, record[i]))
			}
		}
	}
	b.cap()
	return &appliedBatch{b, messages, told}, nil
}

// awaitClock waits until the batch can be judged by the clocks, and returns when it was polled by
// that of Redis. Its only error is that ctx has ended.
func (p *processor) awaitClock(ctx context.Context, b *batch) (polled time.Time, err error) {
	limit := maxClockDifference
	if slices.ContainsFunc(b.records, func(m *kafka.Message) bool { return !brokerDates(m) }) {
		limit = p.strictestClock()
	}
	err = p.retry(ctx, "clock", func() error { return p.applier.clock.Agrees(ctx, redisclock.Good, limit) })
	return p.applier.clock.At(b.polled), err
}

// applyJobs applies jobs of a round, and then those that they feed, which it returns.
func (p *processor) applyJobs(ctx context.Context, of *round, jobs []*job) (fedJobs, error) {
	begin := time.Now()
	defer func() { p.metrics.apply.Observe(time.Since(begin).Seconds()) }()
	if err := p.applyIn(ctx, of, jobs); err != nil {
		return nil, err
	}
	p.rooms.add(ctx, jobs)
	fed := p.fed(jobs)
	if all := fed.all(); len(all) > 0 {
		if err := p.applyIn(ctx, of, all); err != nil {
			return fed, err
		}
	}
	fed, rolled := p.rolled(jobs, fed)
	if len(rolled) > 0 {
		return fed, p.applyIn(ctx, of, rolled)
	}
	return fed, nil
}

// applyIn applies jobs while a round lasts. Its only errors are that ctx has ended, and errStale.
func (p *processor) applyIn(ctx context.Context, of *round, jobs []*job) error {
	return p.retry(ctx, "redis", func() error {
		var err error
		if !p.rewinds.stale(of) {
			err = p.applier.apply(ctx, jobs)
		}
		if errors.Is(err, errOtherEra) {
			p.rewinds.fenced(of)
		}
		if p.rewinds.stale(of) {
			return backoff.Permanent(errStale)
		}
		return err
	})
}

// checkTimes warns if the senders choose the times of the records and there are periods to be late for.
func (p *processor) checkTimes(records []*kafka.Message) {
	if len(records) == 0 || brokerDates(records[0]) || !p.opts.Tiers.File().Periodic() {
		return
	}
	p.timesLog.Do(func() {
		p.log.Warn("commands count as arrived when they are polled, so that those of ended periods are refused after an outage: set message.timestamp.type=LogAppendTime on the command topic",
			"topic", p.opts.Names.Commands)
	})
}

// indexAgain does so with boards whose birth may be read again: a cluster can lose the index alone. Error: ctx's.
func (p *processor) indexAgain(ctx context.Context, of *round, records []*kafka.Message, jobs []*job, fed fedJobs) error {
	var boards []redis.Z
	for i := range jobs {
		if !of.mayBeLost(records[i]) {
			continue
		}
		for _, j := range append(fed.of(i), jobs[i]) {
			if j.rules.durable() && j.Refusal == nil && !j.waits {
				boards = p.applier.ending(boards, j.Board, &j.rules)
			}
		}
	}
	return p.retry(ctx, "redis", func() error { return p.applier.index(ctx, boards) })
}
