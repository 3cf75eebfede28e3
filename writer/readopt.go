package writer

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/tick"
)

const (
	// readoptEvery is how often boards are looked for whose sum is wrong.
	readoptEvery = time.Second
	// readoptPage is about how many are adopted each time.
	readoptPage = 100
)

// forgetScript removes a field of a hash if its value is unchanged.
var forgetScript = redis.NewScript(`if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then redis.call('HDEL', KEYS[1], ARGV[1]) end return 0`)

// readopter adopts boards whose sum in Redis is wrong. It is safe for concurrent use.
type readopter struct{ *adopter }

// readopt adopts the boards of which a sidecar has found that their sum in Redis is
// wrong, until ctx ends.
func (a readopter) readopt(ctx context.Context) {
	limit := logLimit()
	for range tick.Every(ctx, readoptEvery) {
		if err := a.readoptOnce(ctx); err != nil && ctx.Err() == nil {
			limit.Do(func() { a.log.Warn("boards with a wrong sum not adopted, retrying", "err", err) })
		}
	}
}

func (a readopter) readoptOnce(ctx context.Context) error {
	fields, _, err := a.client.HScan(ctx, a.names.Readopt, 0, "", readoptPage).Result()
	if err != nil {
		return err
	}
	for i := 0; i+1 < len(fields); i += 2 {
		board, run := rankcache.BoardID(fields[i]), fields[i+1]
		if err := a.readoptBoard(ctx, board, run); err != nil && asRefusal(err) == nil {
			return err
		}
		if err := forgetScript.Run(ctx, a.client, []string{a.names.Readopt}, fields[i], run).Err(); err != nil {
			return err
		}
	}
	return nil
}

// readoptBoard adopts the board if run is still its run.
func (a readopter) readoptBoard(ctx context.Context, b rankcache.BoardID, run string) error {
	if n, err := strconv.ParseUint(run, 10, 53); b.Check() != nil || err != nil || n == 0 {
		return nil // not of a sidecar
	}
	_, kind, _ := a.tiers.File().Board(b)
	for range 3 { // the first may learn the number of buckets, and the eras
		if err := a.prepare(ctx, b, rules{kind: kind, keep: keepAsItIs}, run); err != nil {
			return err
		}
	}
	return nil
}
