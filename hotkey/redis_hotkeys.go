package hotkey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/wire"
)

// Defaults of [RedisHotKeysConfig].
const (
	// DefaultRedisMinCPU is about a hundred reads a second of a top 50.
	DefaultRedisMinCPU = time.Millisecond
	// DefaultRedisWindow is long enough to be steady and short enough to see a
	// room get hot.
	DefaultRedisWindow = 5 * time.Second
)

const (
	// hotKeysCount is the most keys that HOTKEYS tracks.
	hotKeysCount = 64
	// hotKeysLife ends a tracking session that nobody reads any more, in
	// windows.
	hotKeysLife = 6
	// hotKeysFirst is the least age of a session that says anything.
	hotKeysFirst = time.Second
)

// codeUnsupported is the code of a server that has no HOTKEYS, which is no fault.
const codeUnsupported = "unsupported"

// RedisHotKeysConfig says when Redis's own statistics call a key hot. Zero
// fields take the defaults of this package.
type RedisHotKeysConfig struct {
	// MinCPU is the least CPU time per second that a hot key costs the server.
	MinCPU time.Duration
	// Window is how long one tracking session runs.
	Window time.Duration
}

// RedisHotKeys asks HOTKEYS, which Redis has since 8.6 (Valkey and the clouds'
// Redis have not). The server tracks one session at a time: this source starts
// one per window and reads, but does not end, one that somebody else started.
// Hot is called by one goroutine at a time.
type RedisHotKeys struct {
	rdb   *redis.Client
	names wire.Names
	cfg   RedisHotKeysConfig

	started int64  // when the session that we started began, see hotKeysSession.start; 0: none
	last    Sample // what the last session that ran long enough said
}

// NewRedisHotKeys returns the source of one server. The statistics are a
// server's own, so client must not be a cluster's; it stays the caller's to
// close.
func NewRedisHotKeys(cfg RedisHotKeysConfig, client redis.UniversalClient, names wire.Names) (*RedisHotKeys, error) {
	rdb, ok := client.(*redis.Client)
	if !ok {
		return nil, errors.New("redis hot keys: HOTKEYS speaks of one server, so it can't be asked through a cluster client")
	}
	cfg.MinCPU = cmp.Or(cfg.MinCPU, DefaultRedisMinCPU)
	cfg.Window = cmp.Or(cfg.Window, DefaultRedisWindow)
	if cfg.MinCPU < time.Microsecond || cfg.Window < hotKeysFirst {
		return nil, fmt.Errorf("redis hot keys: min CPU %v and window %v: want at least 1µs and %v", cfg.MinCPU, cfg.Window, hotKeysFirst)
	}
	return &RedisHotKeys{rdb: rdb, names: names, cfg: cfg}, nil
}

// Name returns "redis".
func (r *RedisHotKeys) Name() string { return "redis" }

// Hot returns the boards whose keys cost the server much CPU time lately. Count
// is in µs of CPU time per second. The error is a [*CallError].
func (r *RedisHotKeys) Hot(ctx context.Context) (Sample, error) {
	now, err := r.read(ctx)
	if err != nil {
		return Sample{}, explainHotKeys(err)
	}
	if now.length >= hotKeysFirst {
		r.last = r.sample(now)
	}
	ours := now.active && now.start == r.started
	if !now.active || ours && now.length >= r.cfg.Window {
		if err := r.restart(ctx, ours); err != nil {
			return Sample{}, explainHotKeys(err)
		}
	}
	return r.last, nil
}

// read returns the session of now, the zero session when there is none.
func (r *RedisHotKeys) read(ctx context.Context) (hotKeysSession, error) {
	reply, err := r.rdb.Do(ctx, "HOTKEYS", "GET").Result()
	if errors.Is(err, redis.Nil) {
		return hotKeysSession{}, nil
	}
	if err != nil {
		return hotKeysSession{}, err
	}
	return parseHotKeys(reply)
}

// sample picks the boards that are hot enough.
func (r *RedisHotKeys) sample(session hotKeysSession) (s Sample) {
	for _, k := range session.byCPU {
		if perSecond := int64(float64(k.us) / session.length.Seconds()); perSecond >= r.cfg.MinCPU.Microseconds() {
			s.addKey(r.names, k.key, perSecond)
		}
	}
	return s
}

// restart begins a new session, after ending ours, and remembers which it is.
func (r *RedisHotKeys) restart(ctx context.Context, ours bool) error {
	r.started = 0
	if ours {
		if err := r.rdb.HotKeysStop(ctx).Err(); err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
	}
	err := r.rdb.HotKeysStart(ctx, &redis.HotKeysStartArgs{
		Metrics:  []redis.HotKeysMetric{redis.HotKeysMetricCPU},
		Count:    hotKeysCount,
		Duration: max(int64((hotKeysLife * r.cfg.Window).Seconds()), 1),
	}).Err()
	if err != nil {
		return err
	}
	begun, err := r.read(ctx)
	r.started = begun.start
	return err
}

// explainHotKeys tells a server that can't from one that is away.
func explainHotKeys(err error) error {
	text := strings.ToLower(err.Error())
	switch {
	case strings.Contains(text, "unknown command") || strings.Contains(text, "unknown subcommand"):
		return &CallError{codeUnsupported, AfterOperator, fmt.Errorf("redis has no HOTKEYS, which came with Redis 8.6: choose another source of hot keys: %w", err)}
	case strings.HasPrefix(text, "noperm") || strings.HasPrefix(text, "noauth") || strings.HasPrefix(text, "wrongpass"):
		return &CallError{"forbidden", AfterOperator, fmt.Errorf("redis refuses HOTKEYS: grant the user +hotkeys: %w", err)}
	case strings.Contains(text, "already in progress"):
		return &CallError{"taken", AfterPause, fmt.Errorf("redis hot keys: somebody else's tracking session has begun: %w", err)}
	}
	return &CallError{"network", AfterPause, fmt.Errorf("redis hot keys: %w", err)}
}
