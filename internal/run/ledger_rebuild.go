package run

import (
	"context"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/cli"
	"rankcache/internal/roomsync"
	"rankcache/ledger"
	"rankcache/ledger/rebuild"
	"rankcache/origin"
	"rankcache/writer"
)

// rebuildsLost has a ledger rebuild the boards that Redis has lost.
type rebuildsLost struct {
	mender       *rebuild.Mender
	rooms        *roomsync.Follower
	redis, paced redis.UniversalClient
}

// newRebuildsLost returns nil if nothing is to be rebuilt. It connects to nothing.
func newRebuildsLost(o *LedgerOptions, store *ledger.Store, log *slog.Logger, reg *cli.Registry) (r *rebuildsLost, err error) {
	if !o.rebuild {
		return nil, nil
	}
	r = &rebuildsLost{}
	if r.redis, err = o.DialRedis(); err == nil {
		r.paced, err = o.DialRedis()
	}
	if err != nil {
		r.close()
		return nil, err
	}
	boards := origin.New(r.redis, o.Names, origin.WithTimeout(o.RedisTimeout), origin.WithData(func(b rankcache.BoardID) bool { return r.rooms.Tiers().HasData(b) }))
	r.rooms = roomsync.New(roomsync.Config{File: o.Rooms, Parse: o.ParseRooms, CheckBoard: o.Names.CheckBoard, Origin: boards, Shared: o.SharedRooms(r.redis), Log: log}, reg)
	if err = r.rooms.Load(); err != nil {
		r.close()
		return nil, cli.Usagef("--rooms: %w", err)
	}
	r.mender = rebuild.NewMender(rebuild.MenderOptions{Paced: r.paced, File: r.rooms.File, Registerer: reg,
		Options: rebuild.Options{Redis: r.redis, Names: o.Names, Origin: boards, Store: store, Log: log, Rules: func(b rankcache.BoardID) rebuild.Rules {
			return rebuild.RulesOf(r.rooms.File(), b, rebuild.Defaults{OrderLife: writer.DefaultOrderLife, Buckets: writer.DefaultOrderBuckets})
		}}})
	return r, nil
}

func (r *rebuildsLost) close() {
	for _, client := range []redis.UniversalClient{r.redis, r.paced} {
		if client != nil {
			_ = client.Close()
		}
	}
}

// run rebuilds once the classes are known that are set at run time.
func (r *rebuildsLost) run(ctx context.Context, now ledger.Now) {
	r.rooms.AwaitShared(ctx)
	r.mender.Run(ctx, now)
}
