package origin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
)

// Tops returns the first n rows of each board, read in one pipeline; each top is of
// one instant of its board. The i-th is nil if board i could not be read; the error
// joins the reasons.
func (o *Origin) Tops(ctx context.Context, boards []rankcache.BoardID, n int) ([]*rankcache.Top, error) {
	if n < 1 || n > rankcache.MaxTop {
		return make([]*rankcache.Top, len(boards)), fmt.Errorf("tops of %d rows: want 1 to %d", n, rankcache.MaxTop)
	}
	tops := make([]*rankcache.Top, len(boards))
	err := o.pages(ctx, "tops", boards, n, func(i int, page rankcache.Page) {
		tops[i] = &rankcache.Top{Board: boards[i], Entries: page.Entries,
			State: page.State, Members: page.Members, PublishedAt: page.At}
	})
	return tops, err
}

// pages reads the first n rows of each board in one pipeline and passes those that
// could be read to got. It uses a script per board, because several transactions
// can't share a pipeline in a cluster.
func (o *Origin) pages(ctx context.Context, op string, boards []rankcache.BoardID, n int, got func(int, rankcache.Page)) error {
	calls := make([]scriptCall, len(boards))
	for i, b := range boards {
		calls[i] = scriptCall{o.keys(b), []any{"ZREVRANGE", 0, n}}
	}
	var errs []error
	err := o.call(ctx, op, func(ctx context.Context) error {
		at := time.Now()
		for i, answer := range runAll(ctx, o.client, pageScript, calls) {
			page, err := o.toPage(calls[i].keys, answer, at)
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

// Sample is a part of a board, all of one instant, with which a copy is compared.
type Sample struct {
	rankcache.Stamp
	// Given holds the score of each given member that is on the board.
	Given map[string]float64
	// Random are members at random ranks, possibly with repetitions.
	Random []rankcache.Entry
}

// Sample returns the scores of the given members and of random others.
func (o *Origin) Sample(ctx context.Context, b rankcache.BoardID, members []string, random int) (sample Sample, err error) {
	call := scriptCall{keys: o.keys(b), args: []any{len(members)}}
	for _, m := range members {
		call.args = append(call.args, m)
	}
	for range random {
		call.args = append(call.args, rand.Float64())
	}
	err = o.call(ctx, "sample", func(ctx context.Context) (err error) {
		at := time.Now()
		list, err := fields(call.keys[0], runAll(ctx, o.client, sampleScript, []scriptCall{call})[0], 4)
		if err != nil {
			return err
		}
		if sample.Stamp, err = o.toStamp(call.keys, list[2], list[3], at); err != nil {
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

// RoomBoards returns the boards now running in each room, sorted, read in one
// pipeline. Invalid board ids are skipped and counted. A room whose set could not
// be read is missing from the map, and the error joins the reasons; a room without
// boards has an empty list.
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
		rooms[uid] = o.validBoards(ids)
	}
	if err == nil {
		return rooms, nil
	}
	return rooms, joinFew(errs)
}

// validBoards returns the ids that are board ids, sorted.
func (o *Origin) validBoards(ids []string) []rankcache.BoardID {
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
