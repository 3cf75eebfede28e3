package origin

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/wire"
)

const (
	// SizesPage is about how many keys Redis looks at for one page of [Origin.Sizes], and the most keys of one
	// pipeline: less than 1 ms of Redis's CPU, during which it serves no other client.
	SizesPage    = 200
	usageSamples = 20 // bounds of how many members MEMORY USAGE adds up the memory
)

// Size is how large a sorted set is.
type Size struct {
	Key     string
	Members int
	// Board and Meta are set for a board of rankcache's writer; Meta is nil for every other sorted set.
	Board rankcache.BoardID
	Meta  *wire.Meta
	// The other fields are set by [Origin.Measure].

	Bytes int64 // of the sorted set and its companions, as Redis estimates them; 0: it does not tell
	// Orders counts the kept order ids of a board, and OrdersBytes is what their hashes take, 0 if Redis does not tell.
	Orders, OrdersBytes int64
	Expires             time.Time // by the clock of this process; zero: never
}

type sizer struct{ *link }

// Sizes walks all keys of Redis, in a cluster those of each master in turn, and passes the sorted sets of each page to
// fn, which owns them; a page may be empty. A key that is there all the time is seen, possibly twice. An error of fn
// ends the walk and is returned as it is. It needs Redis 6 (SCAN with TYPE).
func (r sizer) Sizes(ctx context.Context, fn func([]Size) error) error {
	masters, err := r.masters(ctx)
	if err != nil {
		return err
	}
	for _, master := range masters {
		if err := r.sizesOf(ctx, master, fn); err != nil {
			return err
		}
	}
	return nil
}

// masters returns the clients of the servers that have keys. They are the client's and not closed by the caller.
func (r sizer) masters(ctx context.Context) (masters []redis.Cmdable, err error) {
	cluster, ok := r.client.(*redis.ClusterClient)
	if !ok {
		return []redis.Cmdable{r.client}, nil
	}
	var mu sync.Mutex // the masters are visited at the same time
	err = r.call(ctx, "masters", func(ctx context.Context) error {
		return cluster.ForEachMaster(ctx, func(_ context.Context, master *redis.Client) error {
			mu.Lock()
			defer mu.Unlock()
			masters = append(masters, master)
			return nil
		})
	})
	return masters, err
}

func (r sizer) sizesOf(ctx context.Context, master redis.Cmdable, fn func([]Size) error) error {
	for cursor := uint64(0); ; {
		var keys []string
		err := r.call(ctx, "scan_keys", func(ctx context.Context) (err error) {
			keys, cursor, err = master.ScanType(ctx, cursor, "", SizesPage, "zset").Result()
			return err
		})
		if err != nil {
			return err
		}
		page, err := r.readSizes(ctx, keys)
		if err != nil {
			return err
		}
		if err := fn(page); err != nil || cursor == 0 {
			return err
		}
	}
}

// SizesOf returns the boards' sizes in their order, in one pipeline: SizesPage are enough. The caller's slice.
func (r sizer) SizesOf(ctx context.Context, boards []rankcache.BoardID) ([]Size, error) {
	keys := make([]string, len(boards))
	for i, b := range boards {
		keys[i] = r.names.BoardKey(b)
	}
	return r.readSizes(ctx, keys)
}

// readSizes reads the number of members and the metas of sorted sets.
func (r sizer) readSizes(ctx context.Context, keys []string) ([]Size, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	page := make([]Size, len(keys))
	err := r.call(ctx, "sizes", func(ctx context.Context) error {
		members, metas := make([]*redis.IntCmd, len(keys)), make([]*redis.StringCmd, len(keys))
		_, _ = r.client.Pipelined(ctx, func(p redis.Pipeliner) error { // each command has its own error
			for i, key := range keys {
				page[i].Key, members[i] = key, p.ZCard(ctx, key)
				if board, ok := r.names.BoardOfKey(key); ok {
					page[i].Board, metas[i] = board, p.Get(ctx, r.names.MetaKey(board))
				}
			}
			return nil
		})
		for i := range page {
			if err := page[i].fill(members[i], metas[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return page, err
}

// fill takes the replies about a key. What is no sorted set has no members; with a bad meta it is no board.
func (s *Size) fill(members *redis.IntCmd, meta *redis.StringCmd) error {
	if err := members.Err(); err != nil && !redis.HasErrorPrefix(err, "WRONGTYPE") {
		return err
	}
	s.Members = int(members.Val())
	board := s.Board
	s.Board = ""
	if meta == nil {
		return nil
	}
	value, err := meta.Result()
	if errors.Is(err, redis.Nil) || redis.HasErrorPrefix(err, "WRONGTYPE") {
		return nil
	}
	if err != nil {
		return err
	}
	if m, err := wire.ParseMeta(value); err == nil {
		s.Board, s.Meta = board, &m
	}
	return nil
}

// Measure sets the memory and the expiry of a sorted set and, of a board, the number and the memory of its order ids.
// It calls between before each round trip but the first, and returns its error. found is false if the key is gone.
func (r sizer) Measure(ctx context.Context, s *Size, between func() error) (found bool, err error) {
	err = r.call(ctx, "measure", func(ctx context.Context) error {
		var usage []*redis.IntCmd
		var ttl *redis.DurationCmd
		_, _ = r.client.Pipelined(ctx, func(p redis.Pipeliner) error { // each command has its own error
			usage, ttl = append(usage, p.MemoryUsage(ctx, s.Key, usageSamples)), p.PTTL(ctx, s.Key)
			for _, c := range wire.Companions() {
				if s.Meta != nil {
					usage = append(usage, p.MemoryUsage(ctx, r.names.CompanionKey(s.Board, c), usageSamples))
				}
			}
			return nil
		})
		left, err := ttl.Result()
		found = left != -2 // go-redis has no unit for the two special values
		if left > 0 {
			s.Expires = time.Now().Add(left)
		}
		s.Bytes = 0
		for i := 0; i < len(usage) && err == nil; i++ {
			var bytes int64
			bytes, err = usageOf(usage[i])
			s.Bytes += bytes
		}
		return err
	})
	if err != nil || !found || s.Meta == nil {
		return found, err
	}
	return true, r.measureOrders(ctx, s, between)
}

// usageOf returns the answer of MEMORY USAGE, 0 for no key, or where server or user does not have it.
func usageOf(usage *redis.IntCmd) (int64, error) {
	n, err := usage.Result()
	if errors.Is(err, redis.Nil) || refused(err) {
		return 0, nil
	}
	return n, err
}

// measureOrders adds up the hashes of a board's order ids, some at a time.
func (r sizer) measureOrders(ctx context.Context, s *Size, between func() error) error {
	const hashes = SizesPage / 2 // two commands each
	s.Orders, s.OrdersBytes = 0, 0
	for from, all := 0, 2*int(s.Meta.Buckets); from < all; from += hashes {
		if err := between(); err != nil {
			return err
		}
		var ids, usage []*redis.IntCmd
		err := r.call(ctx, "measure_orders", func(ctx context.Context) error {
			_, _ = r.client.Pipelined(ctx, func(p redis.Pipeliner) error { // each command has its own error
				for i := from; i < min(from+hashes, all); i++ {
					key := r.names.OrdersKey(s.Board, i%2, i/2)
					ids, usage = append(ids, p.HLen(ctx, key)), append(usage, p.MemoryUsage(ctx, key, usageSamples))
				}
				return nil
			})
			return s.addOrders(ids, usage)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// addOrders adds hashes of order ids, each of which has an empty placeholder from birth.
func (s *Size) addOrders(ids, usage []*redis.IntCmd) error {
	for i := range ids {
		n, err := ids[i].Result()
		if err != nil {
			return err
		}
		bytes, err := usageOf(usage[i])
		if err != nil {
			return err
		}
		s.Orders, s.OrdersBytes = s.Orders+max(n-1, 0), s.OrdersBytes+bytes
	}
	return nil
}
