package writer

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"rankcache/wire"
)

// recordReply returns the record of an order id, or nothing if it is not known, and then whether it may be forgotten.
type recordReply func() (record string, forgotten bool, err error)

// errOtherBuckets tells that a board has another number of buckets than was asked with.
var errOtherBuckets = errors.New("the board has another number of buckets")

// askRecord asks for the record of a command's order id in a pipeline.
func (a *applier) askRecord(ctx context.Context, p redis.Pipeliner, c *Command) recordReply {
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
func (a *applier) askRecords(ctx context.Context, jobs []*job) []recordReply {
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
func (a *applier) fromRecord(j *job, record string) error {
	if !strings.HasPrefix(record, mark(j.Command)) {
		return a.finish(j, "!order_conflict", nil)
	}
	return a.finish(j, "="+record, nil)
}

// lookUp looks whether order ids of posts that will wait are known: a repeat is answered at once, and not appended
// again, unless boards that it feeds may lack it. Its error is that of Redis.
func (p *poster) lookUp(ctx context.Context, posts []*posted) error {
	jobs := make([]*job, len(posts))
	for i, post := range posts {
		jobs[i] = post.job
	}
	for i, reply := range p.applier.askRecords(ctx, jobs) {
		post := posts[i]
		record, _, err := reply()
		if refusal := asRefusal(err); refusal != nil {
			post.err, err = refusal, nil
		}
		if err != nil {
			return unavailable(err)
		}
		if record != "" && len(post.rules.kind.Feeds)+len(post.rules.kind.RolledBy) == 0 {
			if err := p.applier.fromRecord(post.job, record); err != nil {
				return err
			}
			post.waits = !post.done
		}
	}
	return nil
}
