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

	started int64     // start of our session, see hotKeysSession.start; 0: none
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
	if now.length >= hotKeysMinAge {
		r.last = r.hotBoards(now)
	}
	ours := now.active && now.start == r.started
	if !now.active || ours && now.length >= hotKeysWindow {
		if err := r.restart(ctx, ours); err != nil {
			return HotBoards{}, explainHotKeys(err)
		}
	}
	return r.last, nil
}

// read returns the current session, the zero session without one.
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

func (r *RedisHotKeys) hotBoards(session hotKeysSession) (s HotBoards) {
	for _, k := range session.byCPU {
		if perSecond := int64(float64(k.us) / session.length.Seconds()); perSecond >= hotKeysMinCPU.Microseconds() {
			s.addKey(r.names, k.key, perSecond)
		}
	}
	return s
}

// restart starts a session, after ending ours, and records its start.
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
		Duration: int64((hotKeysLife * hotKeysWindow).Seconds()),
	}).Err()
	if err != nil {
		return err
	}
	begun, err := r.read(ctx)
	r.started = begun.start
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

// hotKeysSession is a tracking session as HOTKEYS GET returns it.
type hotKeysSession struct {
	active bool
	start  int64 // Unix ms by the server's clock; identifies the session
	length time.Duration
	byCPU  []keyCPU
}

type keyCPU struct {
	key string
	us  int64 // CPU time
}

// maxHotKeysLength is the longest accepted session: beyond it the arithmetic would overflow.
const maxHotKeysLength = int64(365 * 24 * time.Hour / time.Millisecond)

// parseHotKeys parses HOTKEYS GET: alternating fields and values, a map, or either as a list's only element.
func parseHotKeys(reply any) (s hotKeysSession, err error) {
	if list, ok := reply.([]any); ok && len(list) <= 1 {
		if len(list) == 0 {
			return s, nil
		}
		reply = list[0]
	}
	fields, err := hotKeysFields(reply)
	if err != nil {
		return s, err
	}
	active, okActive := number(fields["tracking-active"])
	length, okLength := number(fields["collection-duration-ms"])
	start, okStart := number(fields["collection-start-time-unix-ms"])
	if !okActive || !okLength || !okStart || length < 0 || length > maxHotKeysLength {
		return s, errors.New("unexpected answer to HOTKEYS GET: no state, start or duration in it")
	}
	s = hotKeysSession{active: active == 1, start: start, length: time.Duration(length) * time.Millisecond}
	s.byCPU, err = keysByCPU(fields["by-cpu-time-us"])
	return s, err
}

func hotKeysFields(reply any) (map[any]any, error) {
	if m, ok := reply.(map[any]any); ok {
		return m, nil
	}
	list, ok := reply.([]any)
	if !ok || len(list)%2 != 0 {
		return nil, fmt.Errorf("unexpected answer to HOTKEYS GET: %T", reply)
	}
	fields := make(map[any]any, len(list)/2)
	for i := 0; i < len(list); i += 2 {
		name, ok := list[i].(string)
		if !ok {
			return nil, fmt.Errorf("unexpected answer to HOTKEYS GET: field name is a %T", list[i])
		}
		fields[name] = list[i+1]
	}
	return fields, nil
}

// keysByCPU reads alternating keys and CPU times. Without a list the session tracks another metric.
func keysByCPU(v any) (keys []keyCPU, err error) {
	list, _ := v.([]any)
	for i := 0; i+1 < len(list); i += 2 {
		key, okKey := list[i].(string)
		us, okTime := number(list[i+1])
		if !okKey || !okTime || us < 0 {
			return nil, errors.New("unexpected answer to HOTKEYS GET: want alternating keys and CPU times")
		}
		keys = append(keys, keyCPU{key, us})
	}
	return keys, nil
}

// number reads an integer, which servers send as a number or as text.
func number(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		return n, err == nil
	}
	return 0, false
}
