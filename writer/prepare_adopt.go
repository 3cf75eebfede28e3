package writer

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"

	"rankcache"
	"rankcache/internal/redisclock"
	"rankcache/wire"
)

//go:embed finish.lua
var finishSource string

var (
	// takeScript takes the lease of an adoption and returns the server's master_replid, "" if another has the lease.
	takeScript = redis.NewScript(`if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return '' end
return string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')`)
	finishScript  = redis.NewScript(wire.Script(finishSource))
	releaseScript = redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end return 0`)
)

const (
	// adoptTimeout bounds one adoption. It outlives its post, so that a large board is adopted at all.
	adoptTimeout = 2 * time.Minute
	leaseTime    = 10 * time.Second // how long other writers wait for one that has died meanwhile
	adoptPage    = 5000             // how many members are read at once
)

// adopter makes boards ready: birth, turn of orders, adoption of changed ones. Concurrent use is safe.
type adopter struct {
	eras
	client  redis.UniversalClient
	names   wire.Names
	tiers   Tiers
	birth   birth
	metrics *metrics
	log     *slog.Logger

	clock     *redisclock.Clock
	now       func() time.Time // clock.Now, except in tests
	buckets   bucketCounts
	adoptions singleflight.Group // by board
	lost      lostBoards
}

// birth has the settings that a board gets when it is born.
type birth struct {
	life, orderLife time.Duration
	buckets         int
	addAtOnce       int // members that prepare.lua adds up itself
}

const maxAtOnce = 5000 // the most members that prepare.lua adds up itself, in some milliseconds

func newAdopter(opts Options, m *metrics) *adopter {
	clock := redisclock.New(opts.Redis)
	return &adopter{eras: eras{client: opts.Redis}, lost: lostBoards{client: opts.Redis, names: opts.Names},
		client: opts.Redis, names: opts.Names, tiers: opts.Tiers, metrics: m, log: opts.Log, clock: clock, now: clock.Now,
		birth:   birth{opts.BoardLife, opts.OrderLife, opts.OrderBuckets, maxAtOnce},
		buckets: bucketCounts{usual: opts.OrderBuckets}}
}

// errAdopting tells that commands of a board have to wait.
var errAdopting = errors.New("the board is being adopted: a writer adds up its members, or a rebuild writes them")

// adopt adds up a marked board until it is ready or ctx ends; an error of errAdopting if another writer does.
func (a *adopter) adopt(ctx context.Context, b rankcache.BoardID) error {
	done := a.adoptions.DoChan(string(b), func() (any, error) {
		work, cancel := context.WithTimeout(context.WithoutCancel(ctx), adoptTimeout)
		defer cancel()
		return nil, a.adoption(work, b)
	})
	select {
	case result := <-done:
		return result.Err
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", errAdopting, context.Cause(ctx))
	}
}

func (a *adopter) adoption(ctx context.Context, b rankcache.BoardID) error {
	begin, lease := time.Now(), rand.Text()
	history, err := takeScript.Run(ctx, a.client, []string{a.names.AdopterKey(b)}, lease, leaseTime.Milliseconds()).Text()
	if err != nil {
		return err
	}
	if history == "" {
		return errAdopting
	}
	defer releaseScript.Run(context.WithoutCancel(ctx), a.client, []string{a.names.AdopterKey(b)}, lease)
	meta, err := a.meta(ctx, b)
	if err != nil || !meta.Adopting {
		return err
	}
	members, sum, err := a.addUp(ctx, b)
	if err != nil {
		return err
	}
	keys := []string{a.names.BoardKey(b), a.names.MetaKey(b), a.names.AdopterKey(b)}
	if ended, err := finishScript.Run(ctx, a.client, keys, meta.Run, lease, members, sum, history).Bool(); err != nil || !ended {
		return errors.Join(errAdopting, err)
	}
	a.adopted(b, members, time.Since(begin))
	return nil
}

func (a *adopter) adopted(b rankcache.BoardID, members int64, took time.Duration) {
	a.metrics.adoptions.Inc()
	a.log.Info("board adopted: another client has made or changed it", "board", b, "members", members, "took", took)
}

func (a *adopter) meta(ctx context.Context, b rankcache.BoardID) (wire.Meta, error) {
	value, err := a.client.Get(ctx, a.names.MetaKey(b)).Result()
	if errors.Is(err, redis.Nil) {
		return wire.Meta{}, nil
	}
	if err != nil {
		return wire.Meta{}, err
	}
	return wire.ParseMeta(value)
}

// addUp returns the members of a board that is not changed meanwhile, and their sum.
func (a *adopter) addUp(ctx context.Context, b rankcache.BoardID) (members int64, sum uint64, err error) {
	data := a.names.CompanionKey(b, wire.Data)
	some, err := a.client.HLen(ctx, data).Result()
	if err != nil {
		return 0, 0, err
	}
	for {
		rows, err := a.client.ZRangeWithScores(ctx, a.names.BoardKey(b), members, members+adoptPage-1).Result()
		if err != nil {
			return 0, 0, err
		}
		texts, err := a.textsOf(ctx, data, rows, some > 0)
		if err != nil {
			return 0, 0, err
		}
		for i, row := range rows {
			sum = (sum + wire.Hash(texts[i], row.Score)) & wire.SumMask
		}
		if members += int64(len(rows)); len(rows) < adoptPage {
			return members, sum, nil
		}
		if err := a.client.PExpire(ctx, a.names.AdopterKey(b), leaseTime).Err(); err != nil {
			return 0, 0, err
		}
	}
}

// textsOf returns the members of rows, with what they have in the hash data, which there is or not.
func (a *adopter) textsOf(ctx context.Context, data string, rows []redis.Z, there bool) ([]string, error) {
	texts := make([]string, len(rows))
	for i, row := range rows {
		texts[i], _ = row.Member.(string)
	}
	if !there || len(rows) == 0 {
		return texts, nil
	}
	values, err := a.client.HMGet(ctx, data, texts...).Result()
	if err != nil {
		return nil, err
	}
	for i := range texts {
		text, _ := values[i].(string)
		texts[i] = rankcache.JoinData(texts[i], text)
	}
	return texts, nil
}

// keepOf returns for how long a board is kept after its last change, as the scripts take it.
func (a *adopter) keepOf(r *rules) int64 { return cmp.Or(r.keep, a.birth.life).Milliseconds() }

func (a *adopter) appendCompanions(keys []string, b rankcache.BoardID, f features) []string {
	for _, c := range wire.Companions() {
		if f.has(c.Section()) {
			keys = append(keys, a.names.CompanionKey(b, c))
		}
	}
	return keys
}
