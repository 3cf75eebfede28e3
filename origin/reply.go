package origin

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
)

// toEntries turns rows as go-redis parsed them into entries.
func toEntries(key string, rows []redis.Z) ([]rankcache.Entry, error) {
	entries := make([]rankcache.Entry, len(rows))
	for i, row := range rows {
		member, _ := row.Member.(string)
		score, err := normal(key, member, row.Score)
		if err != nil {
			return nil, err
		}
		entries[i] = rankcache.Entry{Member: member, Score: score}
	}
	return entries, nil
}

// pairsToEntries turns the list member, score, member, score, ... of a script
// or a scan into entries.
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

// toScore reads a score as Redis writes it.
func toScore(key, member string, v any) (float64, error) {
	text, _ := v.(string)
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, &badReply{key, fmt.Sprintf("gave the score %.40q of member %.40q", text, member)}
	}
	return normal(key, member, f)
}

// normal refuses an infinite score, which no update or page can carry, and
// makes -0 the 0 that it is everywhere else.
func normal(key, member string, f float64) (float64, error) {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return 0, &badReply{key, fmt.Sprintf("holds the score %v of member %.40q", f, member)}
	}
	return f + 0, nil
}

// toTotal reads the value of a total's key; a missing key is 0, which means
// unknown, never "nothing was applied".
func toTotal(key string, v any) (uint64, error) {
	switch v := v.(type) {
	case nil:
		return 0, nil
	case string:
		if n, err := strconv.ParseUint(v, 10, 64); err == nil {
			return n, nil
		}
		return 0, &badReply{key, fmt.Sprintf("holds %.40q, which is no count", v)}
	}
	return 0, &badReply{key, fmt.Sprintf("answered %T", v)}
}

// toStamp reads the number of members and the total, as every script returns
// them.
func toStamp(keys []string, members, total any, at time.Time) (rankcache.Stamp, error) {
	n, ok := members.(int64)
	if !ok {
		return rankcache.Stamp{}, &badReply{keys[0], fmt.Sprintf("answered %T for its size", members)}
	}
	seq, err := toTotal(keys[len(keys)-1], total)
	return rankcache.Stamp{Seq: seq, Members: int(n), At: at}, err
}
