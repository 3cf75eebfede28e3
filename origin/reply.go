package origin

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/wire"
)

// toEntries converts rows that go-redis has parsed.
func toEntries(key string, rows []redis.Z) ([]rankcache.Entry, error) {
	entries := make([]rankcache.Entry, len(rows))
	for i, row := range rows {
		member, _ := row.Member.(string)
		score, err := finite(key, member, row.Score)
		if err != nil {
			return nil, err
		}
		entries[i] = rankcache.Entry{Member: member, Score: score}
	}
	return entries, nil
}

// pairsToEntries converts the list member, score, member, score, ... of a script or a scan.
func pairsToEntries[T any](key string, pairs []T) ([]rankcache.Entry, error) {
	entries := make([]rankcache.Entry, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		member, _ := any(pairs[i]).(string)
		score, err := toScore(key, member, pairs[i+1])
		if err != nil {
			return nil, err
		}
		entries = append(entries, rankcache.Entry{Member: member, Score: score})
	}
	return entries, nil
}

// toScore parses a score as Redis writes it.
func toScore(key, member string, v any) (float64, error) {
	text, _ := v.(string)
	if f, ok := v.(float64); ok { // of RESP3
		return finite(key, member, f)
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, &badReply{key, fmt.Sprintf("holds the score %.40q of member %.40q", text, member)}
	}
	return finite(key, member, f)
}

// finite rejects an infinite score, which JSON can't carry, and turns -0 into 0.
func finite(key, member string, f float64) (float64, error) {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return 0, &badReply{key, fmt.Sprintf("holds the score %v of member %.40q", f, member)}
	}
	return f + 0, nil
}

// setStandings sets score and rank of members.
func setStandings(key string, own []rankcache.Own, ranks []*redis.IntCmd, scores []*redis.FloatCmd) (err error) {
	for i := range own {
		if ranks[i].Err() != nil { // not on the board: firstError returns every other error
			continue
		}
		if own[i].Score, err = finite(key, own[i].Member, scores[i].Val()); err != nil {
			return err
		}
		own[i].Rank = int(ranks[i].Val()) + 1
	}
	return nil
}

// toScores maps the members to their scores, without those that are not on the board.
func toScores(key string, members []string, v any) (map[string]float64, error) {
	list, _ := v.([]any)
	if len(list) != len(members) {
		return nil, &badReply{key, fmt.Sprintf("answered %d scores, want %d", len(list), len(members))}
	}
	scores := make(map[string]float64, len(members))
	for i, m := range members {
		if list[i] == nil {
			continue
		}
		score, err := toScore(key, m, list[i])
		if err != nil {
			return nil, err
		}
		scores[m] = score
	}
	return scores, nil
}

// dataKey returns the key of what members have beside their scores, "" for boards whose members have nothing.
func (l *link) dataKey(b rankcache.BoardID) string {
	if l.hasData == nil || !l.hasData(b) {
		return ""
	}
	return l.names.CompanionKey(b, wire.Data)
}

// joinData joins members, as they are on a board's rows, with their data in Redis, which can be newer than the rows.
func (l *link) joinData(ctx context.Context, key string, rows []rankcache.Entry) error {
	if key == "" || len(rows) == 0 {
		return nil
	}
	members := make([]string, len(rows))
	for i := range rows {
		members[i] = rows[i].Member
	}
	values, err := l.client.HMGet(ctx, key, members...).Result()
	if err != nil {
		return err
	}
	for i, v := range values {
		text, _ := v.(string)
		rows[i].Member = rankcache.JoinData(rows[i].Member, text)
	}
	return nil
}

// toData converts the list member, data, member, data, ... of a script.
func toData(key string, list any) (d *rankcache.Data, err error) {
	if list == nil {
		return nil, nil
	}
	pairs, ok := list.([]any)
	if !ok {
		return nil, &badReply{key, fmt.Sprintf("answered %T for the data of members", list)}
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		member, _ := pairs[i].(string)
		text, _ := pairs[i+1].(string)
		d = d.With(member, text)
	}
	return d, nil
}
