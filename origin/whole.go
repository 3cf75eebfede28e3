package origin

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
)

// WholePages answers the queries in their order, in one pipeline; in a cluster one for
// each node. Each answer is of one instant of its board, and has its own error. A board
// that does not exist is empty, and a member that is not on the board has rank 0.
// Distinct scores are not counted: the script would have to read all the members ahead.
func (r pageReader) WholePages(ctx context.Context, queries []rankcache.PageQuery) []rankcache.WholePage {
	answers := make([]rankcache.WholePage, len(queries))
	var calls []scriptCall
	var asked []int // the places of the queries that are sent
	for i := range queries {
		if answers[i].Err = checkQuery(&queries[i]); answers[i].Err == nil {
			calls, asked = append(calls, r.wholeCall(&queries[i])), append(asked, i)
		}
	}
	if len(calls) == 0 {
		return answers
	}
	_ = r.call(ctx, "whole", func(ctx context.Context) (first error) { // each answer has its error
		at := time.Now()
		for i, reply := range runAll(ctx, r.client, wholeScript, calls) {
			q, a := &queries[asked[i]], &answers[asked[i]]
			if *a, a.Err = toWhole(r.total, calls[i].keys, q, reply, at); a.Err != nil {
				a.Err = explain(ctx, "whole "+string(q.Board), a.Err)
			}
			first = cmp.Or(first, a.Err)
		}
		return first
	})
	return answers
}

func checkQuery(q *rankcache.PageQuery) error {
	if q.Start < 0 || q.Limit < 0 || q.Limit > rankcache.MaxTop || q.Around < -1 || q.Around > MaxAround {
		return fmt.Errorf("%d rows from %d and %d neighbours: want 0 to %d from 0 or more, and -1 to %d", q.Limit, q.Start, q.Around, rankcache.MaxTop, MaxAround)
	}
	return nil
}

func (r pageReader) wholeCall(q *rankcache.PageQuery) scriptCall {
	rangeCmd, rankCmd, betterCmd, best := "ZREVRANGE", "ZREVRANK", "ZRANGEBYSCORE", "+inf"
	if q.Order == rankcache.Ascending {
		rangeCmd, rankCmd, betterCmd, best = "ZRANGE", "ZRANK", "ZREVRANGEBYSCORE", "-inf"
	}
	if !q.Gap {
		betterCmd = ""
	}
	return scriptCall{r.keys(q.Board), []any{rangeCmd, q.Start, q.Limit, rankCmd, q.Member, q.Around, betterCmd, best, flag(q.Ranked()), flag(q.Form == rankcache.ScoreInteger)}}
}

// flag returns an argument of a script.
func flag(on bool) string {
	if on {
		return "1"
	}
	return ""
}

// RankedStandings returns the standings of members in the direction of q, with how many have
// a better score than each, all of one instant. Distinct scores are not counted, as in
// WholePages. A member that is not on the board has rank 0.
func (r pageReader) RankedStandings(ctx context.Context, q rankcache.PageQuery, members []string) (
	rows []rankcache.Standing, ahead []rankcache.Ahead, stamp rankcache.Stamp, err error) {
	rankCmd, best := "ZREVRANK", "+inf"
	if q.Order == rankcache.Ascending {
		rankCmd, best = "ZRANK", "-inf"
	}
	call := scriptCall{r.keys(q.Board), []any{rankCmd, best, flag(q.Form == rankcache.ScoreInteger)}}
	for _, m := range members {
		call.args = append(call.args, m)
	}
	err = r.call(ctx, "ranked", func(ctx context.Context) (err error) {
		at := time.Now()
		reply := runAll(ctx, r.client, rankedScript, []scriptCall{call})[0]
		rows, ahead, stamp, err = toRanked(r.total, call.keys, members, reply, at)
		return err
	})
	return rows, ahead, stamp, err
}

// toRanked converts the reply of ranked.lua.
func toRanked(total TotalSource, keys, members []string, reply *redis.Cmd, at time.Time) (
	rows []rankcache.Standing, ahead []rankcache.Ahead, stamp rankcache.Stamp, err error) {
	list, err := fields(keys[0], reply, 5)
	if err != nil {
		return nil, nil, stamp, err
	}
	if stamp, err = total.stamp(keys, list[3], list[4], at); err != nil {
		return nil, nil, stamp, err
	}
	ranks, _ := list[0].([]any)
	scores, _ := list[1].([]any)
	counts, _ := list[2].([]any)
	if len(ranks) != len(members) || len(scores) != len(members) || len(counts) != len(members) {
		return nil, nil, stamp, &badReply{keys[0], fmt.Sprintf("answered %d standings, want %d", len(ranks), len(members))}
	}
	for i, m := range members {
		row := rankcache.Standing{Member: m}
		if index, ok := ranks[i].(int64); ok {
			row.Rank = int(index) + 1
			if row.Score, err = toScore(keys[0], m, scores[i]); err != nil {
				return nil, nil, stamp, err
			}
		}
		rows, ahead = append(rows, row), append(ahead, toAhead(counts[i]))
	}
	return rows, ahead, stamp, nil
}

// toWhole converts the reply of whole.lua.
func toWhole(total TotalSource, keys []string, q *rankcache.PageQuery, reply *redis.Cmd, at time.Time) (whole rankcache.WholePage, err error) {
	list, err := fields(keys[0], reply, 10)
	if err != nil {
		return whole, err
	}
	if whole.Stamp, err = total.stamp(keys, list[6], list[7], at); err != nil {
		return whole, err
	}
	whole.Start = q.Start
	whole.Ahead = toAhead(list[8])
	rows, _ := list[0].([]any)
	if whole.Entries, err = pairsToEntries(keys[0], rows); err == nil {
		whole.Own, err = toSurroundings(keys[0], q.Member, list[1:6])
		whole.Own.Ahead = toAhead(list[9])
	}
	return whole, err
}

// toAhead converts the count of members that are ahead.
func toAhead(count any) rankcache.Ahead {
	n, ok := count.(int64)
	if !ok { // it is not wanted, or there is no row
		return rankcache.Ahead{}
	}
	return rankcache.Ahead{Members: int(n), Scores: -1}
}

// toSurroundings converts rank, score, index of the first neighbour, neighbours and the
// row with the nearest better score.
func toSurroundings(key, member string, list []any) (s rankcache.Surroundings, err error) {
	s.Member = member
	index, ok := list[0].(int64)
	if !ok {
		return s, nil
	}
	s.Rank = int(index) + 1
	if s.Score, err = toScore(key, member, list[1]); err != nil {
		return s, err
	}
	first, _ := list[2].(int64)
	s.First = int(first)
	rows, _ := list[3].([]any)
	if s.Neighbours, err = pairsToEntries(key, rows); err != nil {
		return s, err
	}
	row, _ := list[4].([]any)
	better, err := pairsToEntries(key, row)
	if s.HasBetter = len(better) > 0; s.HasBetter {
		s.Better = better[0].Score
	}
	return s, err
}
