package origin

import (
	"context"
	"errors"
	"slices"

	"github.com/redis/go-redis/v9"

	"rankcache"
)

// bulkReader reads many boards or rooms at once, for the background work.
type bulkReader struct{ *link }

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
