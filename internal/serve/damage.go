package serve

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/masters"
	"rankcache/internal/tick"
	"rankcache/wire"
)

const damageEvery = 3 * time.Second // the least time between two looks for damaged masters of Redis

// damageLook tells which masters may lack boards that the ledger has. Redis is asked only if somebody asks here.
type damageLook struct {
	client redis.UniversalClient
	names  wire.Names
	asked  chan struct{}
	now    atomic.Pointer[Damage] // nil: none, or not known
}

// Damage is the part of /status about a Redis that may lack boards which the ledger has.
type Damage struct {
	Masters int       `json:"masters"`
	Since   time.Time `json:"since,omitzero"`    // of the first
	Wanted  int64     `json:"wanted"`            // boards whose commands wait
	Left    *int64    `json:"left"`              // boards that the ledger still has to look at, but for those of masters that it has not begun with; null: it has begun with none
	Unknown string    `json:"unknown,omitempty"` // why it is not known of a master: what Redis refused
}

func newDamageLook(client redis.UniversalClient, names wire.Names) *damageLook {
	return &damageLook{client: client, names: names, asked: make(chan struct{}, 1)}
}

// status returns what was found last, and has Redis asked again.
func (l *damageLook) status() any {
	select {
	case l.asked <- struct{}{}:
	default:
	}
	if now := l.now.Load(); now != nil {
		return now
	}
	return nil
}

func (l *damageLook) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-l.asked:
			l.now.Store(l.look(ctx))
			tick.Sleep(ctx, damageEvery)
		}
	}
	return nil
}

// look returns nil if no master is damaged.
func (l *damageLook) look(ctx context.Context) *Damage {
	var mu sync.Mutex
	var sum Damage
	err := masters.Each(ctx, l.client, func(ctx context.Context, tag string, node redis.Cmdable) error {
		one, err := l.master(ctx, tag, node)
		mu.Lock()
		defer mu.Unlock()
		if one != nil {
			sum.add(one)
		}
		return err
	})
	if refused, ok := errors.AsType[redis.Error](err); ok {
		sum.Unknown = refused.Error()
	}
	if sum.Masters == 0 && sum.Unknown == "" { // or Redis does not answer: its own lamp shows that
		return nil
	}
	return &sum
}

func (l *damageLook) master(ctx context.Context, tag string, node redis.Cmdable) (*Damage, error) {
	var mark, left *redis.StringCmd
	var wanted *redis.IntCmd
	_, _ = node.Pipelined(ctx, func(p redis.Pipeliner) error { // each reply has its own error
		mark, wanted, left = p.HGet(ctx, l.names.AppliedKey(tag), wire.PositionsDamaged), p.SCard(ctx, l.names.WantedKey(tag)), p.HGet(ctx, l.names.AnswersKey(tag), wire.AnswersLeft)
		return nil
	})
	for _, err := range []error{mark.Err(), wanted.Err(), left.Err()} {
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, err
		}
	}
	var since, n int64
	if _, err := fmt.Sscan(mark.Val(), &since); err != nil { // there is no mark
		return nil, nil //nolint:nilnil // documented
	}
	one := &Damage{Masters: 1, Since: time.UnixMilli(since), Wanted: wanted.Val()}
	if _, err := fmt.Sscan(left.Val(), &n); err == nil {
		one.Left = &n
	}
	return one, nil
}

func (d *Damage) add(one *Damage) {
	d.Masters++
	d.Wanted += one.Wanted
	if d.Since.IsZero() || one.Since.Before(d.Since) {
		d.Since = one.Since
	}
	if d.Left == nil {
		d.Left = one.Left
	} else if one.Left != nil {
		*d.Left += *one.Left
	}
}
