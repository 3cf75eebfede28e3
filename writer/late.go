package writer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"rankcache/class"
	"rankcache/internal/kafka"
	"rankcache/internal/redisclock"
	"rankcache/rooms"
)

// maxAhead is how long before its period a command may arrive, and how far its time may be ahead of the clock.
const maxAhead = time.Minute

// outside returns why a command that has arrived at a time is too late or too early for a period, or nil. Arrival
// decides and not the time at which Redis applies the command, so that an outage of Redis loses none.
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

// clockLimit returns how far the clocks may differ for a command of a class (nil: none) to be judged by them.
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

// ClockError returns why this writer judges no command of some class, or nil: the clocks differ by too much.
func (p *processor) ClockError() error { return p.applier.clock.Check(p.strictestClock()) }

// CompareClock compares this clock with Redis's, for ClockError. The error: Redis did not tell its time.
func (p *processor) CompareClock(ctx context.Context) error {
	return p.applier.clock.Compare(ctx, redisclock.Good)
}

// answerOutside sets outcomes of jobs outside of their period, and changes no score: the order's record if it came in
// time, else the refusal. Posts of durable classes don't come here: a first one may be in the topic.
func (a *applier) answerOutside(ctx context.Context, jobs []*job) error {
	if !anyToSend(jobs) {
		return nil
	}
	if err := a.clock.Compare(ctx, clockTolerance); err != nil {
		return unavailable(err)
	}
	jobs = slices.DeleteFunc(slices.Clone(jobs), func(j *job) bool { return j.done || j.waits })
	var failed error
	for i, reply := range a.askRecords(ctx, jobs) {
		failed = cmp.Or(failed, a.answerFromRecord(ctx, jobs[i], reply))
	}
	if failed != nil {
		return unavailable(failed)
	}
	return nil
}

func (a *applier) answerFromRecord(ctx context.Context, j *job, reply recordReply) error {
	record, forgotten, err := reply()
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
	if forgotten || j.rules.isGone(a.now()) {
		j.Refusal = refusals["too_old"]
	}
	return nil
}

// recordTime returns the time of a record in Unix milliseconds, or that of its poll for a record without.
func recordTime(m *kafka.Message, polled time.Time) int64 {
	if at := m.Timestamp.UnixMilli(); m.TimestampType != kafka.NoTime && at > 0 {
		return at
	}
	return polled.UnixMilli()
}

// arrival returns when the broker has appended a record, or the time of its poll if the sender chose the record's time.
func arrival(m *kafka.Message, polled time.Time) time.Time {
	if brokerDates(m) {
		return m.Timestamp
	}
	return polled
}

// brokerDates reports whether a record's time is that at which the broker has appended it.
func brokerDates(m *kafka.Message) bool { return m.TimestampType == kafka.LogAppendTime }
