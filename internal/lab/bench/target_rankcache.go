package bench

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"rankcache"
	"rankcache/hotkey"
	"rankcache/internal/serve"
	"rankcache/localboard"
	"rankcache/origin"
	"rankcache/profile"
	"rankcache/rooms"
	"rankcache/sidecar"
	"rankcache/sidecar/httpapi"
	"rankcache/wire"
)

// rankcacheTarget is the read side of a sidecar as serve joins it: a super-hot
// board, a hot one that is refreshed from Redis, and profiles if configured.
type rankcacheTarget struct {
	updates  *updater
	tracker  *hotkey.Tracker
	profiles *profile.Cache // nil: none
	server   *httpapi.Server
}

func newRankcacheTarget(ctx context.Context, o *targetOptions) (target, error) {
	registry, log := prometheus.NewRegistry(), slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	client := redis.NewClient(&redis.Options{Addr: o.redis, Protocol: 2, DisableIdentity: true})
	from := origin.New(client, wire.DefaultNames(), origin.WithRegisterer(registry))
	boards := localboard.NewBoards()
	t := &rankcacheTarget{updates: newUpdater(boards.Create(benchBoardID), o.members)}
	boards.Open(benchBoardID)
	tiers, err := benchTiers()
	if err != nil {
		return nil, err
	}
	t.tracker, err = hotkey.New(hotkey.Config{}, hotkey.Deps{Origin: from, Tiers: tiers, Open: serve.OpenBoards{Boards: boards}.IsOpen, Log: log, Registry: registry})
	if err != nil {
		return nil, err
	}
	cfg := sidecar.Config{Tiers: tiers, Boards: serve.OpenBoards{Boards: boards}, Hot: t.tracker, Origin: from}
	if o.profiles > 0 {
		if t.profiles, err = cachedProfiles(ctx, o.profiles, log, registry); err != nil {
			return nil, err
		}
		cfg.Profiles = t.profiles
	}
	reader, err := sidecar.NewReader(cfg, registry)
	if err != nil {
		return nil, err
	}
	t.server, err = httpapi.New(reader, httpapi.Config{}, log, registry)
	return t, err
}

// benchTiers is a rooms file with a super-hot and a hot room.
func benchTiers() (func() *rooms.Tiers, error) {
	file, err := rooms.Parse(fmt.Appendf(nil, `
rooms:
  - {uid: "88", mode: super-hot, boards: [%q]}
  - {uid: "89", mode: hot, boards: [%q]}
`, benchBoardID, benchHotBoard))
	if err != nil {
		return nil, err
	}
	tiers := file.Resolve(nil)
	return func() *rooms.Tiers { return tiers }, nil
}

func (t *rankcacheTarget) serve(ctx context.Context, ln net.Listener) error {
	return t.server.Serve(ctx, ln)
}

func (t *rankcacheTarget) run(ctx context.Context) error {
	parts, ctx := errgroup.WithContext(ctx)
	parts.Go(func() error { return t.updates.run(ctx) })
	parts.Go(func() error { return t.tracker.Run(ctx) })
	return parts.Wait()
}

func (t *rankcacheTarget) setUpdates(perSecond int) { t.updates.rate.Store(int64(perSecond)) }

const (
	profileBudget = 640 << 20 // bytes; room for 500,000 profiles
	profilesWait  = time.Minute
)

// nickSource makes up the profiles: about 100 bytes each.
type nickSource struct{ loaded atomic.Int64 }

func (s *nickSource) Load(_ context.Context, members []string, answers []profile.Answer) error {
	for i, member := range members {
		answers[i].JSON = fmt.Appendf(nil, `{"nick":"member number %s","avatar":"https://cdn.example.com/a/%s/face-128.webp"}`, member, member)
	}
	s.loaded.Add(int64(len(members)))
	return nil
}

// cachedProfiles returns a cache that holds the profiles of the first members,
// those of the board among them. It goes on running until ctx is done.
func cachedProfiles(ctx context.Context, members int, log *slog.Logger, registry prometheus.Registerer) (*profile.Cache, error) {
	source := &nickSource{}
	cache, err := profile.New(profile.Options{Budget: profileBudget, Deadline: profilesWait, CallTimeout: profilesWait}, source, log, registry)
	if err != nil {
		return nil, err
	}
	go func() { _ = cache.Run(ctx) }() // ends with the process, and never with an error
	if missing := askAll(ctx, cache, members, 1); missing > 0 {
		return nil, fmt.Errorf("%d of %d profiles were not loaded", missing, members)
	}
	runtime.GC()
	const every = 50
	before := source.loaded.Load()
	askAll(ctx, cache, members, every)
	if lost := source.loaded.Load() - before; int(lost)*every > members/50 {
		return nil, fmt.Errorf("the cache has lost %d of every %d-th of %d profiles", lost, every, members)
	}
	return cache, nil
}

// askAll has every n-th member's profile in the cache, and counts those that
// could not be.
func askAll(ctx context.Context, cache *profile.Cache, members, n int) (missing int) {
	page, answers := make([]string, 0, rankcache.MaxTop), make([][]byte, rankcache.MaxTop)
	for i := 0; i < members; i += n {
		page = append(page, benchMember(i))
		if len(page) == cap(page) || i+n >= members {
			missing += cache.Get(ctx, page, answers[:len(page)])
			page = page[:0]
		}
	}
	return missing
}
