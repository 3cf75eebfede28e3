package origin

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
)

type auditor struct{ *link } // reads what local copies are compared with

// Sample is a part of a board, all of one instant, with which a copy is compared.
type Sample struct {
	rankcache.Stamp
	Given  map[string]float64 // holds the score of each given member that is on the board
	Random []rankcache.Entry  // members at random ranks, possibly with repetitions
	Data   *rankcache.Data    // what all these have beside their scores
}

// Sample returns the scores of the given members and of random others.
func (a auditor) Sample(ctx context.Context, b rankcache.BoardID, members []string, random int) (sample Sample, err error) {
	call := scriptCall{keys: a.keys(b), args: []any{flag(a.dataKey(b) != ""), len(members)}}
	if data := a.dataKey(b); data != "" {
		call.keys = append(call.keys, data)
	}
	for _, m := range members {
		call.args = append(call.args, m)
	}
	for range random {
		call.args = append(call.args, rand.Float64())
	}
	err = a.call(ctx, "sample", func(ctx context.Context) (err error) {
		at := time.Now()
		list, err := fields(call.keys[0], runAll(ctx, a.client, sampleScript, []scriptCall{call})[0], 5)
		if err != nil {
			return err
		}
		if sample.Stamp, err = a.total.stamp(call.keys, list[2], list[3], at); err != nil {
			return err
		}
		if sample.Data, err = toData(call.keys[0], list[4]); err != nil {
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

// ServerID returns the run_id of the Redis process that has the board. It is another one after a restart or a failover.
func (a auditor) ServerID(ctx context.Context, b rankcache.BoardID) (id string, err error) {
	err = a.call(ctx, "server", func(ctx context.Context) error {
		server, err := a.server(ctx, b)
		if err != nil {
			return err
		}
		text, err := server.Info(ctx, "server").Result()
		if err == nil {
			id, err = runID(text)
		}
		return err
	})
	return id, err
}

// server returns the client of the process that has the board.
func (a auditor) server(ctx context.Context, b rankcache.BoardID) (redis.Cmdable, error) {
	if cluster, ok := a.client.(*redis.ClusterClient); ok {
		return cluster.MasterForKey(ctx, a.names.BoardKey(b))
	}
	return a.client, nil
}

func runID(info string) (string, error) {
	for line := range strings.Lines(info) {
		if id, ok := strings.CutPrefix(line, "run_id:"); ok {
			return strings.TrimSpace(id), nil
		}
	}
	return "", &badReply{"INFO server", "has no run_id"}
}

// Readopt asks a writer to add up the members of a board whose sum in Redis is wrong, and to begin a new run. If the
// board's run is another one by then, an adding up that was begun is ended, and nothing else happens.
func (a auditor) Readopt(ctx context.Context, b rankcache.BoardID, run uint64) error {
	return a.call(ctx, "readopt", func(ctx context.Context) error {
		return a.client.HSet(ctx, a.names.Readopt, string(b), run).Err()
	})
}
