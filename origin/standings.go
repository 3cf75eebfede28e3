package origin

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
)

// MaxAround is the most neighbours on each side that Around returns.
const MaxAround = (rankcache.MaxTop - 1) / 2

// Standings returns the place of each member, in the order asked for and all of
// one instant, which the stamp describes. A member that is not on the board has
// rank 0.
func (o *Origin) Standings(ctx context.Context, b rankcache.BoardID, members []string, order rankcache.Direction) (
	places []rankcache.Standing, stamp rankcache.Stamp, err error) {
	err = o.call(ctx, "standings", func(ctx context.Context) (err error) {
		key := o.names.BoardKey(b)
		ranks := make([]*redis.IntCmd, len(members))
		scores := make([]*redis.FloatCmd, len(members))
		stamp, err = o.atOnce(ctx, b, func(p redis.Pipeliner) {
			for i, m := range members {
				ranks[i], scores[i] = zRank(ctx, p, key, m, order), p.ZScore(ctx, key, m)
			}
		})
		if err == nil {
			places, err = toStandings(key, members, ranks, scores)
		}
		return err
	})
	return places, stamp, err
}

func toStandings(key string, members []string, ranks []*redis.IntCmd, scores []*redis.FloatCmd) ([]rankcache.Standing, error) {
	places := make([]rankcache.Standing, len(members))
	for i, m := range members {
		places[i].Member = m
		if ranks[i].Err() != nil { // not on the board: firstError let nothing else through
			continue
		}
		score, err := normal(key, m, scores[i].Val())
		if err != nil {
			return nil, err
		}
		places[i].Rank, places[i].Score = int(ranks[i].Val())+1, score
	}
	return places, nil
}

// Around returns the rows from n places before the member to n after it, and
// its 1-based rank, all of one instant. For a member that is not on the board
// the error wraps [rankcache.ErrUnknownMember] and the page has the stamp only.
func (o *Origin) Around(ctx context.Context, b rankcache.BoardID, member string, n int, order rankcache.Direction) (page rankcache.Page, rank int, err error) {
	if n < 0 || n > MaxAround {
		return page, 0, fmt.Errorf("%d neighbours: want 0 to %d", n, MaxAround)
	}
	rankCmd, rangeCmd := "ZREVRANK", "ZREVRANGE"
	if order == rankcache.Ascending {
		rankCmd, rangeCmd = "ZRANK", "ZRANGE"
	}
	err = o.call(ctx, "around", func(ctx context.Context) (err error) {
		at, call := time.Now(), scriptCall{o.keys(b), []any{rankCmd, rangeCmd, member, n}}
		answer := o.runAll(ctx, aroundScript, []scriptCall{call})[0]
		page, rank, err = toAround(call.keys, answer, at)
		return err
	})
	if err == nil && rank == 0 {
		err = fmt.Errorf("board %s, member %.40q: %w", b, member, rankcache.ErrUnknownMember)
	}
	return page, rank, err
}

// toAround reads the answer of around.lua.
func toAround(keys []string, answer *redis.Cmd, at time.Time) (page rankcache.Page, rank int, err error) {
	list, err := fields(keys[0], answer, 5)
	if err != nil {
		return page, 0, err
	}
	if page.Stamp, err = toStamp(keys, list[3], list[4], at); err != nil {
		return page, 0, err
	}
	index, ok := list[0].(int64)
	if !ok {
		return page, 0, nil
	}
	start, _ := list[1].(int64)
	rows, _ := list[2].([]any)
	page.Start = int(start)
	page.Entries, err = pairsToEntries(keys[0], rows)
	return page, int(index) + 1, err
}

func zRange(ctx context.Context, p redis.Pipeliner, key string, start, limit int, order rankcache.Direction) *redis.ZSliceCmd {
	if order == rankcache.Ascending {
		return p.ZRangeWithScores(ctx, key, int64(start), int64(start+limit-1))
	}
	return p.ZRevRangeWithScores(ctx, key, int64(start), int64(start+limit-1))
}

func zRank(ctx context.Context, p redis.Pipeliner, key, member string, order rankcache.Direction) *redis.IntCmd {
	if order == rankcache.Ascending {
		return p.ZRank(ctx, key, member)
	}
	return p.ZRevRank(ctx, key, member)
}
