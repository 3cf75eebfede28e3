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
	"rankcache/ledger"
	"rankcache/rooms"
	"rankcache/wire"
)

// knownAtOnce is how many boards are read at a time.
const knownAtOnce = 1000

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
			if k.Final || !lives(file, k.Board, k.At) || !m.isOn(ctx, d, k.Board) {
				continue
			}
			if final, err := m.ofFinal(ctx, file, k.Board); err != nil {
				return nil, err
			} else if !final {
				boards = append(boards, k)
			}
		}
		after = page[len(page)-1].Board
	}
}

// ofFinal reports whether a board is a shard of one that has a final.
func (m *Mender) ofFinal(ctx context.Context, file *rooms.File, b rankcache.BoardID) (bool, error) {
	board, _, of := file.Board(b)
	if !of || board.Whole() == b {
		return false, nil
	}
	final, err := m.opts.Store.FinalOf(ctx, board.Whole(), 0, 0)
	return final != nil, err
}

// isLost reports whether Redis lacks changes of a board that the ledger has.
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
		return true, nil
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
