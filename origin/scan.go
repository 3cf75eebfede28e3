package origin

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"rankcache"
)

// scanCount is how many rows are asked for at a time: about 1 ms of Redis's
// time, in which it serves nobody else.
const scanCount = 1000

// Scan reads the whole board in pieces and gives each to fn, which owns it. It
// returns the board's total read before the first piece and after the last. A
// member that did not change meanwhile is seen; one that did is seen with any
// of its scores, or not at all, and then has an update with a seq above before.
// A member may come twice. A total that fell says that Redis lost writes on the
// way, which is an error; so is one from fn, returned as it is.
func (o *Origin) Scan(ctx context.Context, b rankcache.BoardID, fn func([]rankcache.Entry) error) (before, after uint64, err error) {
	if before, err = o.readTotal(ctx, b); err != nil {
		return 0, 0, err
	}
	for cursor := uint64(0); ; {
		var piece []rankcache.Entry
		if piece, cursor, err = o.scanPiece(ctx, b, cursor); err != nil {
			return before, 0, err
		}
		if err = fn(piece); err != nil {
			return before, 0, err
		}
		if cursor == 0 {
			break
		}
	}
	if after, err = o.readTotal(ctx, b); err == nil && after < before {
		err = fmt.Errorf("scan of board %s: its total fell from %d to %d: Redis was restarted, failed over or the board expired; scan again", b, before, after)
	}
	return before, after, err
}

func (o *Origin) scanPiece(ctx context.Context, b rankcache.BoardID, cursor uint64) (piece []rankcache.Entry, next uint64, err error) {
	key := o.names.BoardKey(b)
	err = o.call(ctx, "scan", func(ctx context.Context) error {
		var pairs []string
		pairs, next, err = o.client.ZScan(ctx, key, cursor, "", scanCount).Result()
		if err == nil {
			piece, err = pairsToEntries(key, pairs)
		}
		return err
	})
	return piece, next, err
}

func (o *Origin) readTotal(ctx context.Context, b rankcache.BoardID) (total uint64, err error) {
	key := o.total.key(o.names, b)
	if key == "" {
		return 0, nil
	}
	err = o.call(ctx, "total", func(ctx context.Context) error {
		text, err := o.client.Get(ctx, key).Result()
		if errors.Is(err, redis.Nil) {
			return nil
		}
		if err == nil {
			total, err = toTotal(key, text)
		}
		return err
	})
	return total, err
}
