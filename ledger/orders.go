package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/wire"
)

// Verdict tells whether a change is part of the board's history in Redis.
type Verdict uint8

// Verdicts.
const (
	Unknown Verdict = iota // Redis keeps no record of the change's order id any more
	Held                   // Redis has applied the order id at this run and seq
	Lost                   // Redis has not applied the order id, or at another place
)

// Orders is the record that Redis keeps of applied order ids: which of two rows is lost is
// decided by it, as the updates of a dying writer come late. Implementations are safe for
// concurrent use.
type Orders interface {
	// Verdicts returns one verdict for each change. After an error the batch is tried
	// again.
	Verdicts(ctx context.Context, changes []*wire.Update) ([]Verdict, error)
	// Metas returns the states of those of the boards that Redis has.
	Metas(ctx context.Context, boards []rankcache.BoardID) (map[rankcache.BoardID]wire.Meta, error)
}

// verdicts asks orders, which may be nil.
func verdicts(ctx context.Context, orders Orders, changes []*wire.Update) ([]Verdict, error) {
	if orders == nil || len(changes) == 0 {
		return make([]Verdict, len(changes)), nil
	}
	return orders.Verdicts(ctx, changes)
}

// redisOrders reads the records of applied orders from Redis. It is safe for concurrent
// use.
type redisOrders struct {
	client redis.UniversalClient
	names  wire.Names
}

// NewRedisOrders returns the record of applied orders in Redis. The caller closes the
// client.
func NewRedisOrders(client redis.UniversalClient, names wire.Names) Orders {
	return &redisOrders{client, names}
}

// Verdicts reads a record of each change's order id. One that is not there is unknown: it
// may have been forgotten.
func (r *redisOrders) Verdicts(ctx context.Context, changes []*wire.Update) ([]Verdict, error) {
	metas, err := r.Metas(ctx, boardsOf(changes))
	if err != nil {
		return nil, err
	}
	records := make([][2]*redis.StringCmd, len(changes))
	_, err = r.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, u := range changes {
			n := metas[u.Board].Buckets
			if n == 0 || u.OrderID == "" {
				continue
			}
			for set := range records[i] {
				records[i][set] = p.HGet(ctx, r.names.OrdersKey(u.Board, set, wire.OrderBucket(u.OrderID, n)), wire.OrderField(u.OrderID))
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("records of orders in Redis: %w", err)
	}
	verdicts := make([]Verdict, len(changes))
	for i, u := range changes {
		for _, record := range records[i] {
			if record != nil && verdicts[i] == Unknown {
				verdicts[i] = verdict(u, record.Val())
			}
		}
	}
	return verdicts, nil
}

// maxTrims is more than one change trims as a rule. Trims are behind their change.
const maxTrims = 16

// verdict compares a change with its order's record, "" if there is none.
func verdict(u *wire.Update, record string) Verdict {
	run, seq, ok := wire.OrderPlace(record)
	switch {
	case !ok:
		return Unknown
	case run == u.Run && seq == u.Seq, run == u.Run && u.Op == wire.OpTrim && u.Seq > seq && u.Seq-seq <= maxTrims:
		return Held
	}
	return Lost
}

// Metas reads all states in one pipeline.
func (r *redisOrders) Metas(ctx context.Context, boards []rankcache.BoardID) (map[rankcache.BoardID]wire.Meta, error) {
	replies := make([]*redis.StringCmd, len(boards))
	_, err := r.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, b := range boards {
			replies[i] = p.Get(ctx, r.names.MetaKey(b))
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
