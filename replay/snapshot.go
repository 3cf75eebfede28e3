package replay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rankcache"
)

var errNoTotal = errors.New("no total of the board in Redis, so a snapshot can't be joined to the log")

// snapshot loads the board from Redis and returns the total that the log has to
// reach before the two belong together. Members that have changed during the
// scan have updates beyond before, which the log brings.
func (g *gate) snapshot(ctx context.Context) (after uint64, err error) {
	var entries []rankcache.Entry
	begin := time.Now()
	before, after, err := g.origin.Scan(ctx, g.f.id, func(es []rankcache.Entry) error {
		entries = append(entries, es...)
		return ctx.Err()
	})
	if err == nil && before == 0 {
		err = errNoTotal
	}
	if err == nil {
		err = g.f.load(g.epoch, before, entries)
	}
	if err != nil {
		return 0, fmt.Errorf("load board %s from Redis: %w", g.f.id, err)
	}
	g.metrics.snapshots.Inc()
	g.log.Info("board loaded from Redis", "board", g.f.id, "members", len(entries), "seq", before, "took", time.Since(begin))
	return after, nil
}

var errPassed = errors.New("the board has begun anew meanwhile")

// load takes a snapshot that was asked for in an epoch.
func (f *follower) load(epoch int, seq uint64, es []rankcache.Entry) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.epoch != epoch || f.dropped {
		return errPassed
	}
	return f.board.Load(seq, es)
}
