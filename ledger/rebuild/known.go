package rebuild

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/class"
	"rankcache/ledger"
	"rankcache/rooms"
	"rankcache/wire"
)

const knownAtOnce = 1000 // how many boards are read at a time

// known returns the boards of a master that the ledger has and that may be lost.
func (m *Mender) known(ctx context.Context, d damaged) (boards []ledger.Known, err error) {
	file := m.opts.File()
	if !slices.ContainsFunc(file.Classes, func(c *rooms.Class) bool { return c.Ledger }) {
		return nil, errors.New("no class has a ledger: give rankcache ledger the --rooms of the writers")
	}
	for after := rankcache.BoardID(""); ; {
		page, err := m.opts.Store.Known(ctx, after, knownAtOnce)
		if err != nil || len(page) == 0 {
			slices.SortFunc(boards, func(a, b ledger.Known) int { return cmp.Compare(b.At, a.At) })
			return boards, err
		}
		for _, k := range page {
			if lives(file, k.Board, k.At) && m.isOn(ctx, d, k.Board) {
				boards = append(boards, k)
			}
		}
		after = page[len(page)-1].Board
	}
}

// hasFinal reports whether a board has a final, or is a shard of one that has.
func (m *Mender) hasFinal(ctx context.Context, k *ledger.Known) (bool, error) {
	board, _, of := m.opts.File().Board(k.Board)
	if k.Final || !of || board.Whole() == k.Board {
		return k.Final, nil
	}
	final, err := m.opts.Store.FinalOf(ctx, board.Whole(), 0, 0)
	return final != nil, err
}

// open reports whether Redis has a shard of the same board that is not closed.
func (m *Mender) open(ctx context.Context, b rankcache.BoardID) (bool, error) {
	board, kind, of := m.opts.File().Board(b)
	if !of || board.Whole() == b {
		return false, nil
	}
	for _, shard := range class.ShardIDs(board.Whole(), kind.Shards()) {
		value, err := m.opts.Redis.Get(ctx, m.opts.Names.MetaKey(shard)).Result()
		if errors.Is(err, redis.Nil) {
			continue
		}
		if err != nil {
			return false, err
		}
		if meta, err := wire.ParseMeta(value); err != nil || meta.Life < wire.LifeClosed {
			return err == nil, err
		}
	}
	return false, nil
}

// isLost reports whether Redis lacks changes of a board. One with a final of which Redis has nothing is not lost.
func (m *Mender) isLost(ctx context.Context, d damaged, k *ledger.Known) (bool, error) {
	var meta, lease *redis.StringCmd
	_, err := m.opts.Redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		meta, lease = p.Get(ctx, m.opts.Names.MetaKey(k.Board)), p.Get(ctx, m.opts.Names.AdopterKey(k.Board))
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return false, err
	}
	if errors.Is(meta.Err(), redis.Nil) {
		final, err := m.hasFinal(ctx, k)
		if final && err == nil {
			return m.open(ctx, k.Board)
		}
		return err == nil, err
	}
	now, err := wire.ParseMeta(meta.Val())
	switch {
	case err != nil:
		return false, fmt.Errorf("board %s: %w", k.Board, err)
	case now.Life >= wire.LifeClosed:
		return false, nil
	case now.Era == d.era: // it has begun in this era, which it may only as a whole; a rebuild that has died may hold it
		return now.Adopting && strings.HasPrefix(lease.Val(), "rebuild:"), nil
	}
	return now.Seq < k.State.Seq || now.Run < k.State.Run, nil
}

// isOn reports whether a master has a board's slot.
func (m *Mender) isOn(ctx context.Context, d damaged, b rankcache.BoardID) bool {
	cluster, ok := m.opts.Redis.(*redis.ClusterClient)
	if !ok {
		return true
	}
	its, err := cluster.MasterForKey(ctx, m.opts.Names.MetaKey(b))
	that, err2 := cluster.MasterForKey(ctx, m.opts.Names.AppliedKey(d.tag))
	return err != nil || err2 != nil || its == that
}
