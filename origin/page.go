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

// pageReader answers requests about one board.
type pageReader struct{ *link }

// Page returns up to limit rows of the board from the 0-based index start on, with
// the board's members and state of the same instant. A board that does not exist is
// empty. The error wraps [rankcache.ErrUnavailable] if Redis is unreachable or
// late.
func (r pageReader) Page(ctx context.Context, b rankcache.BoardID, start, limit int, dir rankcache.Direction) (rankcache.Page, error) {
	if start < 0 || limit < 1 || limit > rankcache.MaxTop {
		return rankcache.Page{}, fmt.Errorf("page of %d rows from %d: want 1 to %d rows from 0 or more", limit, start, rankcache.MaxTop)
	}
	page := rankcache.Page{Start: start}
	err := r.call(ctx, "page", func(ctx context.Context) (err error) {
		var rows *redis.ZSliceCmd
		page.Stamp, err = r.transaction(ctx, b, func(p redis.Pipeliner) {
			rows = zRange(ctx, p, r.names.BoardKey(b), start, limit, dir)
		})
		if err == nil {
			page.Entries, err = toEntries(r.names.BoardKey(b), rows.Val())
		}
		return err
	})
	return page, err
}

// Standings returns the standing of each member, in the order of members and all
// of the one instant that the stamp describes. A member that is not on the board
// has rank 0.
func (r pageReader) Standings(ctx context.Context, b rankcache.BoardID, members []string, dir rankcache.Direction) (
	standings []rankcache.Standing, stamp rankcache.Stamp, err error) {
	err = r.call(ctx, "standings", func(ctx context.Context) (err error) {
		key := r.names.BoardKey(b)
		ranks := make([]*redis.IntCmd, len(members))
		scores := make([]*redis.FloatCmd, len(members))
		stamp, err = r.transaction(ctx, b, func(p redis.Pipeliner) {
			for i, m := range members {
				ranks[i], scores[i] = zRank(ctx, p, key, m, dir), p.ZScore(ctx, key, m)
			}
		})
		if err == nil {
			standings, err = toStandings(key, members, ranks, scores)
		}
		return err
	})
	return standings, stamp, err
}

// Scores returns the scores that members have beside the sorted set, on a board that keeps
// only its best members there, with the board's state of the same instant: standings without
// ranks, Trimmed where the member has a score.
func (r pageReader) Scores(ctx context.Context, b rankcache.BoardID, members []string) (rows []rankcache.Standing, stamp rankcache.Stamp, err error) {
	err = r.call(ctx, "scores", func(ctx context.Context) (err error) {
		key := r.names.ScoresKey(b)
		var scores *redis.SliceCmd
		stamp, err = r.transaction(ctx, b, func(p redis.Pipeliner) { scores = p.HMGet(ctx, key, members...) })
		if err == nil {
			rows, err = toTrimmed(key, members, scores.Val())
		}
		return err
	})
	return rows, stamp, err
}

// Around returns the rows from n ranks before the member to n after it, and its
// 1-based rank, all of one instant. For a member that is not on the board the
// error wraps [rankcache.ErrUnknownMember] and the page has only a stamp.
func (r pageReader) Around(ctx context.Context, b rankcache.BoardID, member string, n int, dir rankcache.Direction) (page rankcache.Page, rank int, err error) {
	if n < 0 || n > MaxAround {
		return page, 0, fmt.Errorf("%d neighbours: want 0 to %d", n, MaxAround)
	}
	rankCmd, rangeCmd := "ZREVRANK", "ZREVRANGE"
	if dir == rankcache.Ascending {
		rankCmd, rangeCmd = "ZRANK", "ZRANGE"
	}
	err = r.call(ctx, "around", func(ctx context.Context) (err error) {
		at, call := time.Now(), scriptCall{r.keys(b), []any{rankCmd, rangeCmd, member, n}}
		answer := runAll(ctx, r.client, aroundScript, []scriptCall{call})[0]
		page, rank, err = toAround(r.total, call.keys, answer, at)
		return err
	})
	if err == nil && rank == 0 {
		err = fmt.Errorf("board %s, member %.40q: %w", b, member, rankcache.ErrUnknownMember)
	}
	return page, rank, err
}

func zRange(ctx context.Context, p redis.Pipeliner, key string, start, limit int, dir rankcache.Direction) *redis.ZSliceCmd {
	if dir == rankcache.Ascending {
		return p.ZRangeWithScores(ctx, key, int64(start), int64(start+limit-1))
	}
	return p.ZRevRangeWithScores(ctx, key, int64(start), int64(start+limit-1))
}

func zRank(ctx context.Context, p redis.Pipeliner, key, member string, dir rankcache.Direction) *redis.IntCmd {
	if dir == rankcache.Ascending {
		return p.ZRank(ctx, key, member)
	}
	return p.ZRevRank(ctx, key, member)
}
