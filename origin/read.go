package origin

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/wire"
)

const MaxAround = (rankcache.MaxTop - 1) / 2 // the most neighbours on each side of a member

type reader struct{ *link }

// Read implements [rankcache.Reader]. Each answer is of one instant of its board. A board that does not exist is empty,
// and a member that is not on the board has rank 0. Distinct scores are not counted: a script would have to read all
// the members ahead. An error wraps [rankcache.ErrUnavailable] if Redis is unreachable or late.
//
// One query for rows or for standings alone is a transaction; for a page of 50 rows that
// costs Redis a third less than a script. All others, and several queries, are scripts in one
// pipeline, in a cluster one for each node: several transactions could not share it there.
func (r reader) Read(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer) {
	op := "batch"
	if len(qs) == 1 {
		q, a := &qs[0], &as[0]
		switch op = "whole"; {
		case q.Trimmed:
			r.readTrimmed(ctx, q, a)
			return
		case checkQuery(q) != nil:
		case q.Ladder != nil && q.Limit == 0:
			r.readApproximate(ctx, q, a)
			return
		case !q.Plain() || r.dataKey(q.Board) != "":
		case len(q.Members) == 0 && q.Limit > 0:
			r.readPage(ctx, q, a)
			return
		case q.Limit == 0:
			r.readStandings(ctx, q, a)
			return
		}
	}
	r.readAll(ctx, op, qs, as)
}

func checkQuery(q *rankcache.Query) error {
	switch n := q.Neighbours(); {
	case q.Scores != nil && len(q.Scores) != len(q.Members):
		return fmt.Errorf("%d scores of %d members", len(q.Scores), len(q.Members))
	case q.Start < 0 || q.Limit < 0 || q.Limit > rankcache.MaxTop || q.Around < 0 || n > MaxAround:
		return fmt.Errorf("%d rows from %d and %d neighbours: want 0 to %d from 0 or more, and up to %d", q.Limit, q.Start, n, rankcache.MaxTop, MaxAround)
	}
	return nil
}

func (r reader) readPage(ctx context.Context, q *rankcache.Query, a *rankcache.Answer) {
	err := r.call(ctx, "page", func(ctx context.Context) error {
		var rows *redis.ZSliceCmd
		key := r.names.BoardKey(q.Board)
		stamp, err := r.transaction(ctx, q.Board, func(p redis.Pipeliner) {
			rows = zRange(ctx, p, key, q.Start, q.Limit, q.Order)
		})
		if err == nil {
			a.Begin(q, rankcache.SourceRedis, stamp, stamp.At)
			a.Entries, err = toEntries(key, rows.Val())
		}
		return err
	})
	if err != nil {
		a.Fail(err)
	}
}

// readTrimmed reads the scores that members have beside the sorted set.
func (r reader) readTrimmed(ctx context.Context, q *rankcache.Query, a *rankcache.Answer) {
	err := r.call(ctx, "scores", func(ctx context.Context) error {
		var scores *redis.SliceCmd
		key := r.names.CompanionKey(q.Board, wire.Scores)
		stamp, err := r.transaction(ctx, q.Board, func(p redis.Pipeliner) { scores = p.HMGet(ctx, key, q.Members...) })
		if err != nil {
			return err
		}
		a.Begin(q, rankcache.SourceRedis, stamp, stamp.At)
		found, err := toScores(key, q.Members, scores.Val())
		for i := range a.Own {
			a.Own[i].Score, a.Own[i].Trimmed = found[a.Own[i].Member]
		}
		return err
	})
	if err != nil {
		a.Fail(err)
	}
}

func zRange(ctx context.Context, p redis.Pipeliner, key string, start, limit int, dir rankcache.Direction) *redis.ZSliceCmd {
	first, last := int64(start), int64(start+limit-1)
	if dir == rankcache.Ascending {
		return p.ZRangeWithScores(ctx, key, first, last)
	}
	return p.ZRevRangeWithScores(ctx, key, first, last)
}

func zRank(ctx context.Context, p redis.Pipeliner, key, member string, dir rankcache.Direction) *redis.IntCmd {
	if dir == rankcache.Ascending {
		return p.ZRank(ctx, key, member)
	}
	return p.ZRevRank(ctx, key, member)
}

// readAll reads by scripts. An error that call explains is the first of the answers'.
func (r reader) readAll(ctx context.Context, op string, qs []rankcache.Query, as []rankcache.Answer) {
	calls, asked := make([]scriptCall, 0, len(qs)), make([]int, 0, len(qs))
	for i := range qs {
		if err := checkQuery(&qs[i]); err != nil {
			as[i].Fail(err)
			continue
		}
		if qs[i].Trimmed {
			r.readTrimmed(ctx, &qs[i], &as[i])
			continue
		}
		calls, asked = append(calls, r.scriptCall(&qs[i])), append(asked, i)
	}
	if len(calls) == 0 {
		return
	}
	_ = r.call(ctx, op, func(ctx context.Context) (first error) { // each answer has its error
		at := time.Now()
		for i, reply := range runAll(ctx, r.client, wholeScript, calls) {
			q, a := &qs[asked[i]], &as[asked[i]]
			if err := setWhole(r.total, calls[i].keys, q, a, reply, at); err != nil {
				a.Fail(explain(ctx, op+" "+string(q.Board), err))
				first = cmp.Or(first, err)
			}
		}
		return first
	})
}

func (r reader) scriptCall(q *rankcache.Query) scriptCall {
	rangeCmd, rankCmd, betterCmd, best := "ZREVRANGE", "ZREVRANK", "ZRANGEBYSCORE", "+inf"
	if q.Order == rankcache.Ascending {
		rangeCmd, rankCmd, betterCmd, best = "ZRANGE", "ZRANK", "ZREVRANGEBYSCORE", "-inf"
	}
	if !q.Gap {
		betterCmd = ""
	}
	around := -1
	if q.Around > 0 {
		around = q.Neighbours()
	}
	least, most := "", ""
	if q.Range != nil {
		from, to := q.RawRange()
		least, most = exact(from), exact(to)
	}
	data := r.dataKey(q.Board)
	args := []any{rangeCmd, q.Start, q.Limit, rankCmd, around, betterCmd, best, flag(q.Ranked()), flag(q.Form.Integer()), least, most, flag(q.Scores != nil), flag(data != "")}
	for i, m := range q.Members {
		if args = append(args, m); q.Scores != nil {
			args = append(args, exact(q.Scores[i]))
		}
	}
	keys := r.keys(q.Board)
	if data != "" {
		keys = append(keys[:len(keys):len(keys)], data)
	}
	return scriptCall{keys, args}
}

// exact returns a score as an argument that Redis reads as the same.
func exact(score float64) string { return strconv.FormatFloat(score, 'g', 17, 64) }

func flag(on bool) string {
	if on {
		return "1"
	}
	return ""
}

// setWhole sets a to the reply of whole.lua.
func setWhole(total TotalSource, keys []string, q *rankcache.Query, a *rankcache.Answer, reply *redis.Cmd, at time.Time) error {
	list, err := fields(keys[0], reply, 7)
	if err != nil {
		return err
	}
	stamp, err := total.stamp(keys, list[3], list[4], at)
	if err != nil {
		return err
	}
	data, err := toData(keys[0], list[6])
	if err != nil {
		return err
	}
	a.Begin(q, rankcache.SourceRedis, stamp, stamp.At)
	a.Data = data
	rows, _ := list[0].([]any)
	owns, _ := list[2].([]any)
	if len(owns) != len(a.Own) {
		return &badReply{keys[0], fmt.Sprintf("answered %d members, want %d", len(owns), len(a.Own))}
	}
	a.Ahead = toAhead(list[1])
	if err = setMatches(keys[0], q, a, list[5]); err != nil {
		return err
	}
	a.Entries, err = pairsToEntries(keys[0], rows)
	for i := range a.Own {
		err = cmp.Or(err, setOwn(keys[0], &a.Own[i], owns[i]))
		a.Own[i].Data = data
	}
	return err
}

// setMatches sets how many rows are before the range of q, and within.
func setMatches(key string, q *rankcache.Query, a *rankcache.Answer, counts any) error {
	if q.Range == nil {
		return nil
	}
	list, _ := counts.([]any)
	if len(list) != 2 {
		return &badReply{key, fmt.Sprintf("answered %d counts of a range, want 2", len(list))}
	}
	before, _ := list[0].(int64)
	within, _ := list[1].(int64)
	a.Start, a.Matches = int(before)+q.Start, int(within)
	return nil
}

// toAhead converts the count of members that are ahead.
func toAhead(count any) rankcache.Ahead {
	n, ok := count.(int64)
	if !ok { // it is not wanted, or there is no row
		return rankcache.Ahead{}
	}
	return rankcache.Ahead{Members: int(n), Scores: -1}
}

// setOwn sets a member to rank, score, neighbours and their index, the nearest better score and the count ahead.
func setOwn(key string, own *rankcache.Own, reply any) (err error) {
	list, ok := reply.([]any)
	if !ok { // it is not on the board
		return nil
	}
	if len(list) != 6 {
		return &badReply{key, fmt.Sprintf("answered %d values of a member, want 6", len(list))}
	}
	index, _ := list[0].(int64)
	first, _ := list[2].(int64)
	neighbours, _ := list[3].([]any)
	better, _ := list[4].([]any)
	own.Rank, own.First, own.Ahead = int(index)+1, int(first), toAhead(list[5])
	if own.Score, err = toScore(key, own.Member, list[1]); err != nil {
		return err
	}
	if own.Neighbours, err = pairsToEntries(key, neighbours); err != nil {
		return err
	}
	row, err := pairsToEntries(key, better)
	if own.HasBetter = len(row) > 0; own.HasBetter {
		own.Better = row[0].Score
	}
	return err
}
