package writer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"rankcache/class"
	"rankcache/internal/kafka"
	"rankcache/internal/redisclock"
	"rankcache/rooms"
	"rankcache/wire"
)

// maxAhead is how long before its period a command may arrive, and how far its time may
// be ahead of the clock.
const maxAhead = time.Minute

// outside returns why a command that has arrived at a time is too late or too early for a
// period, or nil. Arrival decides and not the time at which Redis applies the command, so
// that an outage of Redis loses none.
func outside(p class.Period, grace time.Duration, arrived time.Time) *Refusal {
	switch {
	case p.Tag == "":
		return nil
	case arrived.Sub(p.End) > grace:
		return &Refusal{"late", fmt.Errorf("period %s ended at %s, more than %v before the command arrived at %s",
			p.Tag, p.End.Format(time.RFC3339), grace, arrived.In(p.End.Location()).Format(time.RFC3339))}
	case p.Start.Sub(arrived) > maxAhead:
		return &Refusal{"early", fmt.Errorf("period %s begins at %s, more than %v after the command arrived: check the clock of the sender",
			p.Tag, p.Start.Format(time.RFC3339), maxAhead)}
	}
	return nil
}

// How far the writer's clock and Redis's may differ: beyond the grace of a class by
// clockTolerance, and never by more than maxClockDifference, as orders are forgotten by them, too.
const (
	clockTolerance     = time.Second
	maxClockDifference = time.Minute
)

// clockLimit returns how far the clocks may differ for a command of a class (nil: none) to be
// judged by them.
func clockLimit(kind *rooms.Class) time.Duration {
	if kind == nil || !kind.Calendar().Periodic() {
		return maxClockDifference
	}
	return min(kind.Grace+clockTolerance, maxClockDifference)
}

// strictestClock returns the least of the limits of all classes.
func (p *processor) strictestClock() time.Duration {
	limit := maxClockDifference
	for _, kind := range p.opts.Tiers.File().Classes {
		limit = min(limit, clockLimit(kind))
	}
	return limit
}

// ClockError returns why this writer judges no command of some class, or of any, or nil: its
// clock and Redis's differ by too much.
func (p *processor) ClockError() error { return p.applier.clock.Check(p.strictestClock()) }

// CompareClock compares this machine's clock with Redis's, for ClockError, unless that was done
// lately. The error is that Redis did not tell its time.
func (p *processor) CompareClock(ctx context.Context) error {
	return p.applier.clock.Compare(ctx, redisclock.Good)
}

// maxLookUps is how many orders are looked up at the same time.
const maxLookUps = 16

// answerOutside sets the outcomes of jobs outside of their period: that of the order's
// record if it was applied in time, else the refusal, which is for good: the clocks are compared
// before. It changes no score.
func (a *applier) answerOutside(ctx context.Context, jobs []*job) error {
	if !anyToSend(jobs) {
		return nil
	}
	if err := a.clock.Compare(ctx, clockTolerance); err != nil {
		return unavailable(err)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxLookUps)
	for _, j := range jobs {
		if !j.done && !j.waits {
			g.Go(func() error { return a.answerFromRecord(ctx, j) })
		}
	}
	if err := g.Wait(); err != nil {
		return unavailable(err)
	}
	return nil
}

func (a *applier) answerFromRecord(ctx context.Context, j *job) error {
	record, err := a.record(ctx, j.Command)
	switch {
	case err != nil:
		return a.finish(j, "", err)
	case record != "":
		return a.fromRecord(j, record)
	}
	if j.waits, err = a.mayBeLost(ctx, j); err != nil || j.waits {
		return err
	}
	if err := a.clock.Check(j.clockLimit); err != nil {
		return err
	}
	j.Outcome, j.done = Outcome{Refusal: j.outside}, true
	return nil
}

// record returns the record of a command's order id, or nothing if it is not known.
func (a *applier) record(ctx context.Context, c *Command) (string, error) {
	meta, err := a.meta(ctx, c.Board)
	if errors.Is(err, wire.ErrMeta) {
		return "", errMeta
	}
	if err != nil || meta.Buckets == 0 { // no such board
		return "", err
	}
	for set := range 2 {
		key := a.names.OrdersKey(c.Board, set, wire.OrderBucket(c.OrderID, meta.Buckets))
		record, err := a.client.HGet(ctx, key, orderField(c.OrderID)).Result()
		if !errors.Is(err, redis.Nil) {
			return record, err
		}
	}
	return "", nil
}

// recordTime returns the time of a record in Unix milliseconds, or that of its poll for a
// record without.
func recordTime(m *kafka.Message, polled time.Time) int64 {
	if at := m.Timestamp.UnixMilli(); m.TimestampType != kafka.NoTime && at > 0 {
		return at
	}
	return polled.UnixMilli()
}

// arrival returns when the broker has appended a record, or the time of its poll if the
// sender chose the record's time.
func arrival(m *kafka.Message, polled time.Time) time.Time {
	if brokerDates(m) {
		return m.Timestamp
	}
	return polled
}

// brokerDates reports whether a record's time is that at which the broker has appended it.
func brokerDates(m *kafka.Message) bool { return m.TimestampType == kafka.LogAppendTime }
