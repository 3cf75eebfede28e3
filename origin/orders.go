package origin

import (
	"context"
	"math"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/wire"
)

// Orders reports of each order id whether it was applied to the board. Redis may have forgotten those of commands before
// since, in Unix milliseconds, and has, if the board is not there. The error wraps [rankcache.ErrUnavailable].
func (s scanner) Orders(ctx context.Context, b rankcache.BoardID, ids []string) (known []bool, since int64, err error) {
	known = make([]bool, len(ids))
	meta, found, err := s.Meta(ctx, b)
	if err != nil || !found {
		return known, math.MaxInt64, err
	}
	return known, meta.OrdersSince(), s.call(ctx, "orders", func(ctx context.Context) error {
		var records []*redis.BoolCmd
		_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, id := range ids {
				for _, set := range []int{0, 1, wire.PrimeSet} {
					records = append(records, p.HExists(ctx, s.names.OrdersKey(b, set, wire.OrderBucket(id, meta.Buckets)), wire.OrderField(id)))
				}
			}
			return nil
		})
		for i, record := range records {
			known[i*len(ids)/len(records)] = known[i*len(ids)/len(records)] || record.Val()
		}
		return err
	})
}
