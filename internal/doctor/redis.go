package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/wire"
)

// Redis has the checks of Redis. The caller closes the client.
type Redis struct {
	Client redis.UniversalClient
	Mode   string // single, cluster, sentinel or instances
	// Lags, if it is not nil, returns what a Redis is that may be a replica, in words.
	Lags  func(context.Context) (string, error)
	Names wire.Names
	Total string   // value of --total
	Roles []string // of serve, write and poll
}

// Names of checks on which others depend.
const (
	CheckRooms  = "rooms"
	CheckRedis  = "redis"
	CheckBoards = "boards"
	CheckKafka  = "kafka"
)

// Checks returns the checks of Redis; all depend on the first.
func (r Redis) Checks() []Check {
	needs := []string{CheckRedis}
	return []Check{
		{CheckRedis, nil, r.reachable},
		{"redis-mode", needs, r.mode},
		{"redis-role", needs, r.role},
		{"redis-acl", needs, r.commands},
		{"redis-eviction", needs, r.eviction},
		{"redis-clock", needs, r.clock},
	}
}

func (r Redis) reachable(ctx context.Context) Verdict {
	begin := time.Now()
	if err := r.Client.Ping(ctx).Err(); err != nil && !redis.HasErrorPrefix(err, "NOPERM") {
		return Verdict{Fail, explain(err)}
	}
	took := time.Since(begin)
	begin = time.Now()
	_ = r.Client.Ping(ctx).Err() // the first one included connecting
	version := r.info(ctx, "server")["redis_version"]
	if version == "" {
		version = "(unknown version)"
	}
	return okf("Redis %s answers in %v, the first time in %v", version, time.Since(begin).Round(10*time.Microsecond), took.Round(10*time.Microsecond))
}

// info returns a section of INFO, empty if the user has no permission.
func (r Redis) info(ctx context.Context, section string) map[string]string {
	text, err := r.Client.Info(ctx, section).Result()
	if err != nil {
		return nil
	}
	fields := map[string]string{}
	for line := range strings.SplitSeq(text, "\r\n") {
		if name, value, ok := strings.Cut(line, ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

func (r Redis) mode(ctx context.Context) Verdict {
	server, cluster := r.info(ctx, "server")["redis_mode"], r.info(ctx, "cluster")["cluster_enabled"]
	return judgeMode(r.Mode, server, cluster)
}

func (r Redis) role(ctx context.Context) Verdict {
	if r.Mode == "cluster" {
		return okf("the nodes of a cluster send readers of boards to masters")
	}
	if r.Lags != nil {
		is, err := r.Lags(ctx)
		if err != nil {
			return Verdict{Fail, explain(err)}
		}
		return okf("Redis is %s", is)
	}
	return judgeRole(r.Client.Do(ctx, "ROLE").Slice())
}

func (r Redis) eviction(ctx context.Context) Verdict {
	memory := r.info(ctx, "memory")
	return judgeEviction(memory["maxmemory_policy"], memory["maxmemory"], memory["maxmemory_human"])
}

// clock compares Redis's clock with this machine's, as exactly as the round trip allows.
func (r Redis) clock(ctx context.Context) Verdict {
	begin := time.Now()
	theirs, err := r.Client.Time(ctx).Result()
	if err != nil {
		return warnf("Redis refuses TIME: %s", explain(err))
	}
	trip := time.Since(begin)
	return judgeSkew("Redis", theirs.Sub(begin.Add(trip/2)), trip/2)
}

// HotKeys returns the check of HOTKEYS, for --hot-source redis.
func (r Redis) HotKeys() Check {
	return Check{"hot-source", []string{CheckRedis}, func(ctx context.Context) Verdict {
		err := r.Client.Do(ctx, "HOTKEYS", "GET").Err()
		text := strings.ToLower(fmt.Sprint(err))
		switch {
		case err == nil || err == redis.Nil:
			return okf("Redis has HOTKEYS")
		case strings.Contains(text, "unknown"):
			return warnf("this Redis has no HOTKEYS (new in 8.6): boards get hot by each sidecar's own counters only, and what many pods read rarely is not noticed; run rankcache keep, or set --hot-source none")
		}
		return warnf("HOTKEYS fails, so boards get hot by each sidecar's own counters only: %s", explain(err))
	}}
}
