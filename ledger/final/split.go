package final

import (
	"context"
	"fmt"

	"rankcache"
	"rankcache/class"
	"rankcache/ledger"
	"rankcache/wire"
)

// proved returns all members of a board or its n shards, each proved by the ledger, and sets its final's state.
func (f *Finalizer) proved(ctx context.Context, made *ledger.Final, n int) (rows []rankcache.Entry, err error) {
	if n == 0 {
		rows, stamp, err := f.read(ctx, made.Board)
		if err == nil && stamp.Run == 0 {
			err = fmt.Errorf("board %s has no checksum, or is not in Redis", made.Board)
		}
		if err != nil {
			return nil, err
		}
		made.State, made.Members = stamp.State, len(rows)
		return rows, f.compare(ctx, made, rows)
	}
	made.HasSum = true
	for _, shard := range class.ShardIDs(made.Board, n) {
		some, err := f.provedShard(ctx, made, shard)
		if err != nil {
			return nil, err
		}
		rows = append(rows, some...)
	}
	made.Members = len(rows)
	return rows, nil
}

// provedShard returns a shard's members, and adds its state to the final's: the latest run, sums of seqs and checksums.
// One without a meta, unknown to the ledger, had no member: another is closed, no command can come.
func (f *Finalizer) provedShard(ctx context.Context, made *ledger.Final, id rankcache.BoardID) ([]rankcache.Entry, error) {
	part := *made
	part.Board = id
	rows, stamp, err := f.read(ctx, id)
	if err != nil || stamp.Run == 0 {
		return nil, err
	}
	if stamp.Life < rankcache.LifeClosed {
		return nil, fmt.Errorf("%w: shard %s is not closed yet", ErrBehind, id)
	}
	part.State = stamp.State
	if err := f.compare(ctx, &part, rows); err != nil {
		return nil, err
	}
	made.Run, made.Seq, made.Sum = max(made.Run, stamp.Run), made.Seq+stamp.Seq, (made.Sum+stamp.Sum)&wire.SumMask
	return rows, nil
}

// isFirst reports whether a shard is the first one of a whole board that Redis has.
func (f *Finalizer) isFirst(ctx context.Context, whole, shard rankcache.BoardID) (bool, error) {
	for i := 0; class.ShardID(whole, i) != shard; i++ {
		if _, found, err := f.opts.Origin.Meta(ctx, class.ShardID(whole, i)); found || err != nil {
			return false, err
		}
	}
	return true, nil
}
