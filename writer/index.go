package writer

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/kafka"
)

// ending appends the index's entry of a board with a period. None is born after its expiry.
func (a *adopter) ending(dst []redis.Z, b rankcache.BoardID, r *rules) []redis.Z {
	if r.end == 0 || a.now().UnixMilli() >= r.expires {
		return dst
	}
	return append(dst, redis.Z{Score: float64(r.end), Member: string(b)})
}

// index has boards closed after their end. The controller finds boards in the index, so it must have them
// before they are born.
func (a *adopter) index(ctx context.Context, boards []redis.Z) error {
	if len(boards) == 0 {
		return nil
	}
	if err := a.client.ZAddNX(ctx, a.names.Ends, boards...).Err(); err != nil {
		return fmt.Errorf("index of ends %s: %w", a.names.Ends, err)
	}
	return nil
}

// indexAgain does so with boards whose birth may be read again: a cluster can lose the index alone. Error: ctx's.
func (w *Writer) indexAgain(ctx context.Context, of *round, records []*kafka.Message, jobs []*job, fed fedJobs) error {
	var boards []redis.Z
	for i := range jobs {
		if !of.mayBeLost(records[i]) {
			continue
		}
		for _, j := range append(fed.of(i), jobs[i]) {
			if j.rules.durable() && j.Refusal == nil && !j.waits {
				boards = w.applier.ending(boards, j.Board, &j.rules)
			}
		}
	}
	return w.retry(ctx, "redis", func() error { return w.applier.index(ctx, boards) })
}
