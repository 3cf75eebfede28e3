package fill

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/wire"
)

// Defaults of a board's order ids.
const (
	orderLife = time.Hour
	turnSlack = 2 * time.Minute
	buckets   = 4
	// atOnce is how many members are written in one transaction.
	atOnce = 1000
)

// Board numbers and adds up the changes of one board as the writer does, and then makes
// Redis what it is after them. Its methods are for one goroutine.
type Board struct {
	id     rankcache.BoardID
	state  rankcache.State
	scores map[string]float64
}

// NewBoard returns a board without members, at the beginning of a new run.
func NewBoard(id rankcache.BoardID) *Board {
	return &Board{id, rankcache.State{Run: uint64(time.Now().UnixMilli()) * 1024, HasSum: true}, map[string]float64{}}
}

// NewBoardOf returns a board that has these scores at a seq.
func NewBoardOf(id rankcache.BoardID, scores map[string]float64, seq uint64) *Board {
	b := NewBoard(id)
	b.state.Seq, b.scores = seq, maps.Clone(scores)
	for member, score := range scores {
		b.state.Sum = (b.state.Sum + wire.Hash(member, score)) & wire.SumMask
	}
	return b
}

// Incr applies a change and returns its update, without an order id and a time.
func (b *Board) Incr(member string, delta float64) wire.Update {
	u := b.Set(member, b.scores[member]+delta)
	u.Op, u.Delta = wire.OpIncr, delta
	return u
}

// Set is Incr for a new score.
func (b *Board) Set(member string, score float64) wire.Update {
	if old, there := b.scores[member]; there {
		b.state.Sum -= wire.Hash(member, old)
	}
	b.scores[member] = score
	b.state.Sum = (b.state.Sum + wire.Hash(member, score)) & wire.SumMask
	b.state.Seq++
	return wire.Update{Board: b.id, Member: member, Op: wire.OpSet, Score: score, Members: len(b.scores),
		Run: b.state.Run, Seq: b.state.Seq, Sum: b.state.Sum, HasSum: true}
}

// Redis makes Redis what it is after the changes, without their order ids. A life of 0
// is for ever.
func (b *Board) Redis(ctx context.Context, client redis.UniversalClient, names wire.Names, life time.Duration) error {
	rows := make([]redis.Z, 0, len(b.scores))
	for member, score := range b.scores {
		rows = append(rows, redis.Z{Score: score, Member: member})
	}
	meta := b.meta(time.Now(), life)
	keys := []string{names.BoardKey(b.id), names.MetaKey(b.id)}
	pipe := client.TxPipeline() // readers see the board whole
	for chunk := range slices.Chunk(rows, 1000) {
		if len(rows) <= atOnce {
			pipe.ZAdd(ctx, keys[0], chunk...)
		} else if err := client.ZAdd(ctx, keys[0], chunk...).Err(); err != nil { // at once other clients wait for too long, and this one gives up
			return fmt.Errorf("fill Redis: %w", err)
		}
	}
	pipe.Set(ctx, keys[1], wire.AppendMeta(nil, &meta), 0)
	for i := range 2 * buckets {
		key := names.OrdersKey(b.id, i/buckets, i%buckets)
		pipe.HSet(ctx, key, "", "") // no order id is empty
		keys = append(keys, key)
	}
	for _, key := range keys {
		if life > 0 {
			pipe.PExpireAt(ctx, key, time.UnixMilli(int64(meta.Expires)))
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("fill Redis: %w", err)
	}
	return nil
}

// Follow changes Redis, which has an earlier state of the board, to what it is after the
// updates. Readers see all of it at once.
func (b *Board) Follow(ctx context.Context, client redis.UniversalClient, names wire.Names, updates []wire.Update) error {
	pipe := client.TxPipeline()
	b.Queue(ctx, pipe, names, updates)
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("change Redis: %w", err)
	}
	return nil
}

// Queue is Follow for a transaction that the caller executes.
func (b *Board) Queue(ctx context.Context, pipe redis.Pipeliner, names wire.Names, updates []wire.Update) {
	meta := b.meta(time.Now(), 0)
	for chunk := range slices.Chunk(updates, 1000) {
		rows := make([]redis.Z, len(chunk))
		for i := range chunk {
			rows[i] = redis.Z{Score: b.scores[chunk[i].Member], Member: chunk[i].Member}
		}
		pipe.ZAdd(ctx, names.BoardKey(b.id), rows...)
	}
	pipe.Set(ctx, names.MetaKey(b.id), wire.AppendMeta(nil, &meta), 0)
}

func (b *Board) meta(now time.Time, life time.Duration) wire.Meta {
	m := wire.Meta{State: b.state, Members: uint64(len(b.scores)), Now: uint64(now.UnixMilli()),
		Turn: uint64(now.UnixMilli() / (orderLife + turnSlack).Milliseconds()), OrderLife: uint32(orderLife.Seconds()), Buckets: buckets}
	if life > 0 {
		m.Expires = m.Now + uint64(life.Milliseconds())
	}
	return m
}
