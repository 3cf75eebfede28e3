package origin

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"rankcache"
)

// Sample is what a copy of a board is compared with, all of one instant.
type Sample struct {
	rankcache.Stamp
	// Given has the score of each asked member that is on the board.
	Given map[string]float64
	// Random are members at random ranks; one may come twice.
	Random []rankcache.Entry
}

// Sample returns the scores of the members and of random more, chosen by rank.
func (o *Origin) Sample(ctx context.Context, b rankcache.BoardID, members []string, random int) (sample Sample, err error) {
	call := scriptCall{keys: o.keys(b), args: []any{len(members)}}
	for _, m := range members {
		call.args = append(call.args, m)
	}
	for range random {
		call.args = append(call.args, rand.Float64())
	}
	err = o.call(ctx, "sample", func(ctx context.Context) (err error) {
		at := time.Now()
		list, err := fields(call.keys[0], o.runAll(ctx, sampleScript, []scriptCall{call})[0], 4)
		if err != nil {
			return err
		}
		if sample.Stamp, err = toStamp(call.keys, list[2], list[3], at); err != nil {
			return err
		}
		if sample.Given, err = toScores(call.keys[0], members, list[0]); err != nil {
			return err
		}
		rows, _ := list[1].([]any)
		sample.Random, err = pairsToEntries(call.keys[0], rows)
		return err
	})
	return sample, err
}

// toScores pairs the members with their scores; nil is a member that is not on
// the board.
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
