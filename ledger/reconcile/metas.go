package reconcile

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/wire"
)

// Metas returns the states of those of the boards that Redis has.
type Metas func(ctx context.Context, boards []rankcache.BoardID) (map[rankcache.BoardID]wire.Meta, error)

// RedisMetas reads states from Redis, in one pipeline. The caller closes the client.
func RedisMetas(client redis.UniversalClient, names wire.Names) Metas {
	return func(ctx context.Context, boards []rankcache.BoardID) (map[rankcache.BoardID]wire.Meta, error) {
		replies := make([]*redis.StringCmd, len(boards))
		_, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, b := range boards {
				replies[i] = p.Get(ctx, names.MetaKey(b))
			}
			return nil
		})
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, fmt.Errorf("states of boards in Redis: %w", err)
		}
		metas := make(map[rankcache.BoardID]wire.Meta, len(boards))
		for i, reply := range replies {
			if err := reply.Err(); errors.Is(err, redis.Nil) {
				continue
			} else if err != nil {
				return nil, fmt.Errorf("board %s: its state in Redis: %w", boards[i], err)
			}
			if metas[boards[i]], err = wire.ParseMeta(reply.Val()); err != nil {
				return nil, fmt.Errorf("board %s: %w", boards[i], err)
			}
		}
		return metas, nil
	}
}
