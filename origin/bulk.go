package origin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
)

// bulkReader reads many boards or rooms at once, for the background work.
type bulkReader struct{ *link }

// Tops returns the first n rows of each board, read in one pipeline; each top is of
// one instant of its board. The i-th is nil if board i could not be read; the error
// joins the reasons.
func (b bulkReader) Tops(ctx context.Context, boards []rankcache.BoardID, n int) ([]*rankcache.Top, error) {
	if n < 1 || n > rankcache.MaxTop {
		return make([]*rankcache.Top, len(boards)), fmt.Errorf("tops of %d rows: want 1 to %d", n, rankcache.MaxTop)
	}
	tops := make([]*rankcache.Top, len(boards))
	err := b.pages(ctx, "tops", boards, n, func(i int, page rankcache.Page) {
		tops[i] = &rankcache.Top{Board: boards[i], Entries: page.Entries,
			State: page.State, Members: page.Members, Life: page.Life, PublishedAt: page.At}
	})
	return tops, err
}

// pages reads the first n rows of each board in one pipeline and passes those that
// could be read to got. It uses a script per board, because several transactions
// can't share a pipeline in a cluster.
func (b bulkReader) pages(ctx context.Context, op string, boards []rankcache.BoardID, n int, got func(int, rankcache.Page)) error {
	calls := make([]scriptCall, len(boards))
	for i, id := range boards {
		calls[i] = scriptCall{b.keys(id), []any{"ZREVRANGE", 0, n}}
	}
	var errs []error
	err := b.call(ctx, op, func(ctx context.Context) error {
		at := time.Now()
		for i, answer := range runAll(ctx, b.client, pageScript, calls) {
			page, err := toPage(b.total, calls[i].keys, answer, at)
			if err == nil {
				got(i, page)
			}
			errs = append(errs, err)
		}
		return cmp.Or(errs...)
	})
	if err == nil {
		return nil
	}
	for i := range errs {
		errs[i] = explain(ctx, op+" "+string(boards[i]), errs[i])
	}
	return joinFew(errs)
}

// RoomBoards returns the boards now running in each room, sorted, read in one
// pipeline. Invalid board ids are skipped and counted. A room whose set could not
// be read is missing from the map, and the error joins the reasons; a room without
// boards has an empty list.
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

// joinFew joins the first few errors: a thousand boards on one unreachable Redis
// fail for the same reason.
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
