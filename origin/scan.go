package origin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/masters"
	"rankcache/wire"
)

// scanCount is the number of rows per ZSCAN: about 1 ms of Redis's CPU, during which it serves no other client.
const scanCount = 1000

// ErrOtherRun reports a board that began another run, or lost writes, while it was read.
var ErrOtherRun = errors.New("another run of the board")

// scanner reads all of one board.
type scanner struct{ *link }

// Scan reads the whole board in batches and passes each to fn, which owns it. It returns the board's stamps before the
// first batch and after the last. A member that did not change meanwhile is seen; one that did is seen with any of its
// scores, or not at all, and then has an update with a seq above before's. Members with data are as
// [rankcache.JoinData] joins them. A member may come twice. If the board began another run or its seq fell, the batches
// don't belong to one history, which is an [ErrOtherRun]; an error of fn is returned as it is.
func (s scanner) Scan(ctx context.Context, b rankcache.BoardID, fn func([]rankcache.Entry) error) (before, after rankcache.Stamp, err error) {
	ctx = asLoad(ctx)
	if before, err = s.stamp(ctx, b); err != nil {
		return before, after, err
	}
	for cursor := uint64(0); ; {
		var batch []rankcache.Entry
		if batch, cursor, err = s.scanBatch(ctx, b, cursor); err != nil {
			return before, after, err
		}
		if err = fn(batch); err != nil {
			return before, after, err
		}
		if cursor == 0 {
			break
		}
	}
	if after, err = s.stamp(ctx, b); err == nil && (after.Run != before.Run || after.Seq < before.Seq) {
		err = fmt.Errorf("scan of board %s: %w: its state was %v and is %v: Redis was restarted or failed over, or the board expired, was deleted or is added up again; scan again", b, ErrOtherRun, before.State, after.State)
	}
	return before, after, err
}

// MaxAll is the most members that All reads.
const MaxAll = 5000

// All returns every member of a board of up to [MaxAll], worst first and joined with its data as by Scan, all of the
// instant that the stamp describes. A larger board is an error: Redis would serve
// no other client for more than about 2 ms.
func (s scanner) All(ctx context.Context, b rankcache.BoardID) (entries []rankcache.Entry, stamp rankcache.Stamp, err error) {
	err = s.call(ctx, "all", func(ctx context.Context) (err error) {
		var rows *redis.ZSliceCmd
		var texts *redis.MapStringStringCmd
		stamp, err = s.transaction(ctx, b, func(p redis.Pipeliner) {
			rows = zRange(ctx, p, s.names.BoardKey(b), 0, MaxAll, rankcache.Ascending)
			if data := s.dataKey(b); data != "" {
				texts = p.HGetAll(ctx, data)
			}
		})
		if err == nil && stamp.Members > MaxAll {
			err = &badReply{s.names.BoardKey(b), fmt.Sprintf("has %d members, which are too many to be read at once", stamp.Members)}
		}
		if err == nil {
			entries, err = toEntries(s.names.BoardKey(b), rows.Val())
		}
		for i := 0; texts != nil && i < len(entries); i++ {
			entries[i].Member = rankcache.JoinData(entries[i].Member, texts.Val()[entries[i].Member])
		}
		return err
	})
	return entries, stamp, err
}

// Meta returns the board's meta, and whether it has one.
func (s scanner) Meta(ctx context.Context, b rankcache.BoardID) (meta wire.Meta, found bool, err error) {
	key := s.names.MetaKey(b)
	err = s.call(ctx, "meta", func(ctx context.Context) error {
		value, err := s.client.Get(ctx, key).Result()
		if found = err == nil; found {
			meta, err = wire.ParseMeta(value)
		}
		if err := notNil(err); err != nil {
			return fmt.Errorf("key %q: %w", key, err)
		}
		return nil
	})
	return meta, found, err
}

// Home returns the state of a board, none if it is not there, and the history that its server has at the same moment: the
// first [wire.EraLen] digits of master_replid. The error wraps [rankcache.ErrUnavailable].
func (s scanner) Home(ctx context.Context, b rankcache.BoardID) (state rankcache.State, era string, err error) {
	key := s.names.MetaKey(b)
	err = s.call(ctx, "home", func(ctx context.Context) (err error) {
		var node redis.Cmdable = s.client
		if cluster, ok := s.client.(*redis.ClusterClient); ok {
			if node, err = cluster.MasterForKey(ctx, key); err != nil {
				return err
			}
		}
		var before, after, value *redis.StringCmd
		_, _ = node.Pipelined(ctx, func(p redis.Pipeliner) error { // on one connection
			before, value, after = p.Info(ctx, "replication"), p.Get(ctx, key), p.Info(ctx, "replication")
			return nil
		})
		if era, err = masters.Era(before.Result()); err != nil || notNil(value.Err()) != nil {
			return errors.Join(err, notNil(value.Err()))
		}
		if again, err := masters.Era(after.Result()); err != nil || again != era || value.Err() != nil {
			return err
		}
		meta, err := wire.ParseMeta(value.Val())
		state, era = meta.State, era[:wire.EraLen]
		return err
	})
	return state, era, err
}

func (s scanner) scanBatch(ctx context.Context, b rankcache.BoardID, cursor uint64) (batch []rankcache.Entry, next uint64, err error) {
	key := s.names.BoardKey(b)
	err = s.call(ctx, "scan", func(ctx context.Context) error {
		var pairs []string
		pairs, next, err = s.client.ZScan(ctx, key, cursor, "", scanCount).Result()
		if err == nil {
			batch, err = pairsToEntries(key, pairs)
		}
		if err == nil {
			err = s.joinData(ctx, s.dataKey(b), batch)
		}
		return err
	})
	return batch, next, err
}

// stamp reads one board's stamp.
func (s scanner) stamp(ctx context.Context, b rankcache.BoardID) (stamp rankcache.Stamp, err error) {
	err = s.call(ctx, "total", func(ctx context.Context) (err error) {
		stamp, err = s.transaction(ctx, b, func(redis.Pipeliner) {})
		return err
	})
	return stamp, err
}

// bulkReader reads many boards or rooms at once, for the background work.
type bulkReader struct{ *link }

// RoomBoards returns the boards now running in each room, sorted, read in one pipeline. Invalid board ids are skipped
// and counted. A room whose set could not be read is missing from the map, and the error joins the reasons; a room
// without boards has an empty list.
func (b bulkReader) RoomBoards(ctx context.Context, uids []string) (map[string][]rankcache.BoardID, error) {
	rooms := make(map[string][]rankcache.BoardID, len(uids))
	answers := make([]*redis.StringSliceCmd, len(uids))
	err := b.call(ctx, "rooms", func(ctx context.Context) error {
		_, err := b.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, uid := range uids {
				answers[i] = p.SMembers(ctx, b.names.RoomKey(uid))
			}
			return nil
		})
		return err
	})
	var errs []error
	for i, uid := range uids {
		ids, failed := answers[i].Result()
		if failed != nil {
			errs = append(errs, explain(ctx, "rooms "+uid, failed))
			continue
		}
		rooms[uid] = b.validBoards(ids)
	}
	if err == nil {
		return rooms, nil
	}
	return rooms, joinFew(errs)
}

// validBoards returns the ids that are board ids, sorted.
func (b bulkReader) validBoards(ids []string) []rankcache.BoardID {
	boards := make([]rankcache.BoardID, 0, len(ids))
	for _, id := range ids {
		board := rankcache.BoardID(id)
		if b.names.CheckBoard(board) != nil {
			b.metrics.badBoards.Inc()
			continue
		}
		boards = append(boards, board)
	}
	slices.Sort(boards)
	return boards
}

// joinFew joins the first few errors: a thousand boards on one unreachable Redis fail for the same reason.
func joinFew(errs []error) error {
	const maxJoined = 3
	var few []error
	for _, err := range errs {
		if err != nil && len(few) < maxJoined {
			few = append(few, err)
		}
	}
	return errors.Join(few...)
}
