package hotkey

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/wire"
)

const (
	// hotKeysMinCPU is the server's CPU time per second from which on a key is hot: about a hundred reads of a top 50.
	hotKeysMinCPU = time.Millisecond
	// hotKeysWindow is the length of one tracking session: long enough to be steady, short enough to notice.
	hotKeysWindow = 5 * time.Second
	hotKeysCount  = 64          // the maximum that HOTKEYS accepts
	hotKeysLife   = 6           // the duration of a tracking session, in windows, after which Redis ends it
	hotKeysMinAge = time.Second // the age from which on the figures of a session are used
)

const CodeUnsupported = "unsupported" // the code of a [CallError] of a server without HOTKEYS, which is no failure

// RedisHotKeys calls HOTKEYS, which Redis has since 8.6, but neither Valkey nor clouds. The server has one session at a
// time: this source starts one a window, and reads others', but does not end them. One goroutine calls Hot.
type RedisHotKeys struct {
	rdb   *redis.Client
	names wire.Names

	started time.Time // when our session did, by the server's clock; zero: there is none
	last    HotBoards // of the last session that was long enough
}

// NewRedisHotKeys returns the source of one server, so client must be no cluster's. The caller closes it.
func NewRedisHotKeys(client redis.UniversalClient, names wire.Names) (*RedisHotKeys, error) {
	rdb, ok := client.(*redis.Client)
	if !ok {
		return nil, errors.New("redis hot keys: HOTKEYS is of one server and can't be used with a cluster client")
	}
	return &RedisHotKeys{rdb: rdb, names: names}, nil
}

func (r *RedisHotKeys) Name() string { return "redis" }

// Hot returns the boards whose keys took 1 ms of CPU a second. Count is in µs a second. The error is a [*CallError].
func (r *RedisHotKeys) Hot(ctx context.Context) (HotBoards, error) {
	now, err := r.read(ctx)
	if err != nil {
		return HotBoards{}, explainHotKeys(err)
	}
	if now.CollectionDuration >= hotKeysMinAge {
		r.last = r.hotBoards(&now)
	}
	ours := now.TrackingActive && now.CollectionStartTime.Equal(r.started)
	if !now.TrackingActive || ours && now.CollectionDuration >= hotKeysWindow {
		if err := r.restart(ctx, ours); err != nil {
			return HotBoards{}, explainHotKeys(err)
		}
	}
	return r.last, nil
}

// read returns the current session, the zero session without one.
func (r *RedisHotKeys) read(ctx context.Context) (redis.HotKeysResult, error) {
	session, err := r.rdb.HotKeysGet(ctx).Result()
	switch {
	case err == nil && session == nil || errors.Is(err, redis.Nil):
		return redis.HotKeysResult{}, nil
	case err != nil:
		return redis.HotKeysResult{}, err
	case session.CollectionStartTime.IsZero():
		return redis.HotKeysResult{}, errors.New("unexpected answer to HOTKEYS GET: no start in it")
	}
	return *session, nil
}

func (r *RedisHotKeys) hotBoards(session *redis.HotKeysResult) (s HotBoards) {
	for _, k := range session.ByCPUTime {
		us, _ := strconv.ParseInt(fmt.Sprint(k.Value), 10, 64) // a number, or its text
		if perSecond := int64(float64(us) / session.CollectionDuration.Seconds()); perSecond >= hotKeysMinCPU.Microseconds() {
			s.addKey(r.names, k.Key, perSecond)
		}
	}
	return s
}

// restart starts a session, after ending ours, and records its start.
func (r *RedisHotKeys) restart(ctx context.Context, ours bool) error {
	r.started = time.Time{}
	if ours {
		if err := r.rdb.HotKeysStop(ctx).Err(); err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
	}
	err := r.rdb.HotKeysStart(ctx, &redis.HotKeysStartArgs{
		Metrics:  []redis.HotKeysMetric{redis.HotKeysMetricCPU},
		Count:    hotKeysCount,
		Duration: int64((hotKeysLife * hotKeysWindow).Seconds()),
	}).Err()
	if err != nil {
		return err
	}
	begun, err := r.read(ctx)
	r.started = begun.CollectionStartTime
	return err
}

// explainHotKeys returns a [CallError] that tells what to check.
func explainHotKeys(err error) error {
	text := strings.ToLower(err.Error())
	switch {
	case strings.Contains(text, "unknown command") || strings.Contains(text, "unknown subcommand"):
		return &CallError{CodeUnsupported, AfterOperator, fmt.Errorf("redis has no HOTKEYS, which came with Redis 8.6: choose another source of hot keys: %w", err)}
	case strings.HasPrefix(text, "noperm") || strings.HasPrefix(text, "noauth") || strings.HasPrefix(text, "wrongpass"):
		return &CallError{"forbidden", AfterOperator, fmt.Errorf("redis refuses HOTKEYS: grant the user +hotkeys: %w", err)}
	case strings.Contains(text, "already in progress"):
		return &CallError{"taken", AfterPause, fmt.Errorf("redis hot keys: another client has started a tracking session: %w", err)}
	}
	return &CallError{"network", AfterPause, fmt.Errorf("redis hot keys: %w", err)}
}
