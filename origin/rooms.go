package origin

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"

	"rankcache"
)

// RoomBoards returns the boards now running in each room, sorted, read in one
// pipeline. Ids that name no board are ignored and counted. A room whose set
// could not be read is missing from the map, and the error joins the reasons; a
// room without boards is there with none.
func (o *Origin) RoomBoards(ctx context.Context, uids []string) (map[string][]rankcache.BoardID, error) {
	rooms := make(map[string][]rankcache.BoardID, len(uids))
	answers := make([]*redis.StringSliceCmd, len(uids))
	err := o.call(ctx, "rooms", func(ctx context.Context) error {
		_, err := o.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, uid := range uids {
				answers[i] = p.SMembers(ctx, o.names.RoomKey(uid))
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
		rooms[uid] = o.legal(ids)
	}
	if err == nil {
		return rooms, nil
	}
	return rooms, joinFew(errs)
}

// legal keeps the ids that name a board.
func (o *Origin) legal(ids []string) []rankcache.BoardID {
	boards := make([]rankcache.BoardID, 0, len(ids))
	for _, id := range ids {
		b, err := rankcache.ParseBoardID(id)
		if err != nil {
			o.metrics.badBoards.Inc()
			continue
		}
		boards = append(boards, b)
	}
	slices.Sort(boards)
	return boards
}
