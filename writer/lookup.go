package writer

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"rankcache/wire"
)

// recordReply returns the record of an order id, or nothing if it is not known.
type recordReply func() (record string, err error)

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
	return func() (string, error) {
		m, err := wire.ParseMeta(meta.Val())
		switch {
		case errors.Is(meta.Err(), redis.Nil):
			return "", nil
		case meta.Err() != nil:
			return "", meta.Err()
		case err != nil:
			return "", errMeta
		case int(m.Buckets) != n:
			return "", errors.Join(errOtherBuckets, a.buckets.note(c.Board, strconv.Itoa(int(m.Buckets))))
		}
		for _, set := range sets {
			if record, err := set.Result(); !errors.Is(err, redis.Nil) {
				return record, err
			}
		}
		return "", nil
	}
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
	replies := make([]recordReply, len(posts))
	if len(posts) == 0 {
		return nil
	}
	_, _ = p.applier.client.Pipelined(ctx, func(pipe redis.Pipeliner) error { // each reply has its own error
		for i, post := range posts {
			replies[i] = p.applier.askRecord(ctx, pipe, post.Command)
		}
		return nil
	})
	for i, post := range posts {
		record, err := replies[i]()
		if refusal := asRefusal(err); refusal != nil {
			post.err, err = refusal, nil
		}
		if err != nil {
			return unavailable(err)
		}
		if post.known = record != ""; post.known && len(post.rules.kind.Feeds)+len(post.rules.kind.RolledBy) == 0 {
			if err := p.applier.fromRecord(post.job, record); err != nil {
				return err
			}
		}
	}
	return nil
}
