package writer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"

	"rankcache"
	"rankcache/class"
	"rankcache/internal/tick"
	"rankcache/rooms"
	"rankcache/wire"
)

// A board of a rolling class is the sum of several boards of another class. What changes one of these changes the
// rolling boards of its period and of the next one, too. What ended periods give is sent by the controller as
// primes, one for each member.

// A writer without a rolling class changes boards and not their sums. So before it applies commands by such a file,
// rolling boards that are there are made incomplete: with the class in force again they would seem whole. So does a
// writer that gets a class while it runs, as to what it has applied.

const (
	settleEvery = time.Second // how often the file is looked at without commands
	settlePage  = 1000        // how many metas are read at once
)

// incompleteScript makes a board that is not closed incomplete for good. KEYS: its meta, the hashes of its primes.
var incompleteScript = redis.NewScript(wire.Script(`local meta = redis.call('GET', KEYS[1])
if not meta or META_UNREADABLE or meta:byte(2) % 16 >= 2 then return 0 end
if meta:byte(2) % 128 >= 64 then redis.call('SETRANGE', KEYS[1], 1, string.char(meta:byte(2) - 64)) end
for i = 2, #KEYS do
  if redis.call('EXISTS', KEYS[i]) == 1 then redis.call('HSET', KEYS[i], '', '') end
end
return 1`))

// rolling follows which rolling classes this writer has. It is safe for concurrent use.
type rolling struct {
	*adopter
	settled atomic.Pointer[rooms.File] // the file by which commands may be applied; nil at the start
	work    singleflight.Group
}

// run settles what changes while there are no commands, until ctx ends.
func (r *rolling) run(ctx context.Context) {
	limit := logLimit()
	for range tick.Every(ctx, settleEvery) {
		if err := r.settle(ctx); err != nil && ctx.Err() == nil {
			limit.Do(func() {
				r.log.Warn("commands wait until boards of rolling classes that came or went are incomplete, retrying", "err", err)
			})
		}
	}
}

// settle returns once commands may be applied by the file in force.
func (r *rolling) settle(ctx context.Context) error {
	file := r.tiers.File()
	if file == r.settled.Load() {
		return nil
	}
	_, err, _ := r.work.Do(fmt.Sprintf("%p", file), func() (any, error) { return nil, r.change(ctx, r.settled.Load(), file) })
	return err
}

// change makes incomplete what the change from one file to another makes so.
func (r *rolling) change(ctx context.Context, from, to *rooms.File) error {
	came := func(c *rooms.Class) bool { return from != nil && lacks(from, c) }
	if from == nil || slices.ContainsFunc(to.Classes, came) || slices.ContainsFunc(from.Classes, func(c *rooms.Class) bool { return lacks(to, c) }) {
		ids, err := r.client.ZRange(ctx, r.names.Ends, 0, -1).Result()
		if err != nil {
			return fmt.Errorf("index of ends %s: %w", r.names.Ends, err)
		}
		ids = slices.DeleteFunc(ids, func(id string) bool {
			_, kind, ok := to.Board(rankcache.BoardID(id))
			return ok && !came(kind)
		})
		for some := range slices.Chunk(ids, settlePage) {
			if err := r.makeIncomplete(ctx, some); err != nil {
				return err
			}
		}
	}
	r.settled.Store(to)
	return nil
}

func lacks(file *rooms.File, c *rooms.Class) bool {
	had := file.Class(c.Name())
	return c.Rolls() && (had == nil || had.Rolling != c.Rolling)
}

// makeIncomplete does so with those boards that roll.
func (r *rolling) makeIncomplete(ctx context.Context, ids []string) error {
	metas := make([]*redis.StringCmd, len(ids))
	_, _ = r.client.Pipelined(ctx, func(p redis.Pipeliner) error { // each reply has its own error
		for i, id := range ids {
			metas[i] = p.Get(ctx, r.names.MetaKey(rankcache.BoardID(id)))
		}
		return nil
	})
	for i, id := range ids {
		value, err := metas[i].Result()
		m, unreadable := wire.ParseMeta(value)
		if errors.Is(err, redis.Nil) || err == nil && (unreadable != nil || m.Era == "") {
			continue
		}
		keys := []string{r.names.MetaKey(rankcache.BoardID(id))}
		for bucket := range int(m.Buckets) {
			keys = append(keys, r.names.OrdersKey(rankcache.BoardID(id), wire.PrimeSet, bucket))
		}
		if err == nil {
			err = incompleteScript.Run(ctx, r.client, keys).Err()
		}
		if err != nil {
			return fmt.Errorf("board %s: %w", id, err)
		}
	}
	return nil
}

// rollingBoard is a board of a rolling class.
type rollingBoard struct {
	class.Board
	kind *rooms.Class
}

// rollingBoards returns the rolling boards that increments of a board change. One whose period has no tag is left out.
func rollingBoards(file *rooms.File, b rankcache.BoardID, kind *rooms.Class) (all []rollingBoard) {
	if kind != nil && kind.Class != nil { // as it is by now
		kind = file.Class(kind.Name())
	}
	if kind == nil || len(kind.RolledBy) == 0 {
		return nil
	}
	board, ok := kind.Parse(b)
	for _, name := range kind.RolledBy {
		rolling := file.Class(name)
		if !ok || rolling == nil || rolling.Rolling.Of != kind.Name() {
			continue
		}
		into, _ := rolling.RolledInto(board)
		for _, to := range into {
			all = append(all, rollingBoard{to, rolling})
		}
	}
	return all
}

// whole is what the hashes of a rolling board's primes have in their field ” if the board was made before the first
// change of each board whose changes it gets as they come. One that was made later, as its class is newer, or as
// somebody has deleted it, lacks some for ever.
const whole = wire.Whole

// wholeness returns that, or nothing. The board is to be made.
func (a *adopter) wholeness(ctx context.Context, b rankcache.BoardID, kind *rooms.Class) (string, error) {
	of := a.tiers.File().Class(kind.Rolling.Of)
	board, ok := kind.Parse(b)
	if of == nil || !ok {
		return "", nil
	}
	before, err := board.Previous()
	if err != nil {
		return "", nil
	}
	for _, p := range []class.Period{before.Period, board.Period} {
		source, err := of.In(board.Dims, p)
		if err != nil {
			return "", nil
		}
		meta, err := a.meta(ctx, source.ID)
		if err != nil && !errors.Is(err, wire.ErrMeta) {
			return "", err
		}
		if err != nil || meta.Seq > 0 {
			return "", nil
		}
	}
	return whole, nil
}

// primeKeys are the hashes of the primes that a rolling board has: a third set of orders, which is not turned.
func (a *adopter) primeKeys(b rankcache.BoardID) (keys []string) {
	for bucket := range a.buckets.of(b) {
		keys = append(keys, a.names.OrdersKey(b, wire.PrimeSet, bucket))
	}
	return keys
}
