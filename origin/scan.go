package origin

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"rankcache"
)

// scanCount is the number of rows per ZSCAN: about 1 ms of Redis's CPU, during
// which it serves no other client.
const scanCount = 1000

// Scan reads the whole board in batches and passes each to fn, which owns it. It
// returns the board's stamps before the first batch and after the last. A member that
// did not change meanwhile is seen; one that did is seen with any of its scores, or
// not at all, and then has an update with a seq above before's. A member may come
// twice. If the board began another run or its seq fell, the batches don't belong to
// one history, which is an error; an error of fn is returned as it is.
func (o *Origin) Scan(ctx context.Context, b rankcache.BoardID, fn func([]rankcache.Entry) error) (before, after rankcache.Stamp, err error) {
	if before, err = o.stamp(ctx, b); err != nil {
		return before, after, err
	}
	for cursor := uint64(0); ; {
		var batch []rankcache.Entry
		if batch, cursor, err = o.scanBatch(ctx, b, cursor); err != nil {
			return before, after, err
		}
		if err = fn(batch); err != nil {
			return before, after, err
		}
		if cursor == 0 {
			break
		}
	}
	if after, err = o.stamp(ctx, b); err == nil && (after.Run != before.Run || after.Seq < before.Seq) {
		err = fmt.Errorf("scan of board %s: its state was %v and is %v: Redis was restarted or failed over, or the board expired, was deleted or is added up again; scan again", b, before.State, after.State)
	}
	return before, after, err
}

func (o *Origin) scanBatch(ctx context.Context, b rankcache.BoardID, cursor uint64) (batch []rankcache.Entry, next uint64, err error) {
	key := o.names.BoardKey(b)
	err = o.call(ctx, "scan", func(ctx context.Context) error {
		var pairs []string
		pairs, next, err = o.client.ZScan(ctx, key, cursor, "", scanCount).Result()
		if err == nil {
			batch, err = pairsToEntries(key, pairs)
		}
		return err
	})
	return batch, next, err
}

// stamp reads one board's stamp.
func (o *Origin) stamp(ctx context.Context, b rankcache.BoardID) (stamp rankcache.Stamp, err error) {
	err = o.call(ctx, "total", func(ctx context.Context) (err error) {
		stamp, err = o.transaction(ctx, b, func(redis.Pipeliner) {})
		return err
	})
	return stamp, err
}
