package writer

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/time/rate"

	"rankcache"
	"rankcache/internal/tick"
	"rankcache/wire"
)

const (
	// maxKnownRooms limits the boards of rooms that are remembered; they are forgotten beyond that, and added again.
	maxKnownRooms = 100_000
	// sweepEvery is how often boards that have ended are taken out of their rooms, and sweepPage how many at once.
	sweepEvery = time.Second
	sweepPage  = 100
)

// roomSets keeps the sets of boards that run in each room: commands put them in, and they leave when nothing can arrive
// any more, by an index in Redis that any writer may work on. It is safe for concurrent use.
type roomSets struct {
	client redis.UniversalClient
	names  wire.Names
	now    func() time.Time
	log    *slog.Logger
	limit  rate.Sometimes

	mu    sync.Mutex // nothing is called under it
	known map[roomBoard]bool
}

type roomBoard struct {
	room  string
	board rankcache.BoardID
}

func newRoomSets(opts Options, now func() time.Time) *roomSets {
	return &roomSets{client: opts.Redis, names: opts.Names, now: now, log: opts.Log, limit: logLimit(), known: make(map[roomBoard]bool)}
}

// add puts applied jobs' boards into the sets of the rooms that they name. The next command retries.
func (s *roomSets) add(ctx context.Context, jobs []*job) {
	added := s.unknown(jobs)
	if len(added) == 0 {
		return
	}
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, j := range added {
			if over := j.rules.over; over != 0 { // before it is in the set, so that it is never left there
				p.ZAdd(ctx, s.names.RoomEnds, redis.Z{Score: float64(over), Member: string(j.Board) + " " + j.Room})
			}
			p.SAdd(ctx, s.names.RoomKey(j.Room), string(j.Board))
		}
		return nil
	})
	if err != nil {
		s.limit.Do(func() { s.log.Warn("boards not added to their rooms", "err", err) })
	}
	if err == nil || isWrongType(err) { // nothing is changed by trying again
		s.note(added)
	}
}

// isWrongType reports whether a room's set is a key of another type. A pipeline changes the others.
func isWrongType(err error) bool { return redis.HasErrorPrefix(err, "WRONGTYPE") }

// unknown returns the jobs whose boards are not known to be in their rooms' sets.
func (s *roomSets) unknown(jobs []*job) (unknown []*job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range jobs {
		if j.Room != "" && j.done && j.Refusal == nil && !s.known[roomBoard{j.Room, j.Board}] && !j.rules.isOver(s.now()) {
			unknown = append(unknown, j)
		}
	}
	return unknown
}

func (s *roomSets) note(jobs []*job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known)+len(jobs) > maxKnownRooms {
		clear(s.known)
	}
	for _, j := range jobs {
		s.known[roomBoard{j.Room, j.Board}] = true
	}
}

// run takes boards out of their rooms when they have ended, until ctx ends.
func (s *roomSets) run(ctx context.Context) {
	for range tick.Every(ctx, sweepEvery) {
		if err := s.sweep(ctx); err != nil && ctx.Err() == nil {
			s.limit.Do(func() { s.log.Warn("ended boards can't be removed from their rooms, retrying", "err", err) })
		}
	}
}

// sweep takes out those that have ended, the earliest sweepPage of them.
func (s *roomSets) sweep(ctx context.Context) error {
	ended, err := s.client.ZRangeByScore(ctx, s.names.RoomEnds, &redis.ZRangeBy{Min: "-inf", Max: strconv.FormatInt(s.now().UnixMilli(), 10), Count: sweepPage}).Result()
	if err != nil || len(ended) == 0 {
		return err
	}
	_, err = s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, member := range ended {
			board, room, _ := strings.Cut(member, " ")
			p.SRem(ctx, s.names.RoomKey(room), board)
		}
		return nil
	})
	if err != nil && !isWrongType(err) {
		return err
	}
	members := make([]any, len(ended))
	for i, member := range ended {
		members[i] = member
	}
	return s.client.ZRem(ctx, s.names.RoomEnds, members...).Err()
}
