package writer

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"rankcache/wire"
)

// answerOutside sets outcomes of jobs outside of their period, and changes no score: the order's record if it came in
// time, else the refusal. Posts of durable classes don't come here: a first one may be in the topic.
func (a *caller) answerOutside(ctx context.Context, jobs []*job) error {
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

func (a *caller) answerFromRecord(ctx context.Context, j *job, reply recordReply) error {
	record, forgotten, err := reply()
	switch {
	case err != nil:
		return a.finish(j, "", err)
	case record != "":
		return a.fromRecord(j, record)
	}
	if j.waits, err = a.lost.mayBeLost(ctx, j); err != nil || j.waits {
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

// recordReply returns the record of an order id, or nothing if it is not known, and then whether it may be forgotten.
type recordReply func() (record string, forgotten bool, err error)

// errOtherBuckets tells that a board has another number of buckets than was asked with.
var errOtherBuckets = errors.New("the board has another number of buckets")

// askRecord asks for the record of a command's order id in a pipeline.
func (a *caller) askRecord(ctx context.Context, p redis.Pipeliner, c *Command) recordReply {
	n := a.buckets.of(c.Board)
	meta := p.Get(ctx, a.names.MetaKey(c.Board))
	var sets [2]*redis.StringCmd
	for set := range sets {
		sets[set] = p.HGet(ctx, a.names.OrdersKey(c.Board, set, wire.OrderBucket(c.OrderID, uint16(n))), orderField(c.OrderID))
	}
	return func() (string, bool, error) {
		m, err := wire.ParseMeta(meta.Val())
		switch {
		case errors.Is(meta.Err(), redis.Nil):
			return "", false, nil
		case meta.Err() != nil:
			return "", false, meta.Err()
		case err != nil:
			return "", false, errMeta
		case int(m.Buckets) != n:
			return "", false, errors.Join(errOtherBuckets, a.buckets.note(c.Board, strconv.Itoa(int(m.Buckets))))
		}
		for _, set := range sets {
			if record, err := set.Result(); !errors.Is(err, redis.Nil) {
				return record, false, err
			}
		}
		return "", c.At < m.OrdersSince(), nil
	}
}

// askRecords asks for the records of the order ids of jobs, all at once.
func (a *caller) askRecords(ctx context.Context, jobs []*job) []recordReply {
	replies := make([]recordReply, len(jobs))
	if len(jobs) == 0 {
		return replies
	}
	_, _ = a.client.Pipelined(ctx, func(pipe redis.Pipeliner) error { // each reply has its own error
		for i, j := range jobs {
			replies[i] = a.askRecord(ctx, pipe, j.Command)
		}
		return nil
	})
	return replies
}

// fromRecord sets the outcome of a job from the record of its order id.
func (a *caller) fromRecord(j *job, record string) error {
	if !strings.HasPrefix(record, mark(j.Command)) {
		return a.finish(j, "!order_conflict", nil)
	}
	return a.finish(j, "="+record, nil)
}
