package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/wire"
)

// Redis has the checks of Redis. The caller closes the client.
type Redis struct {
	Client redis.UniversalClient
	Mode   string // single, cluster, sentinel or instances
	// Lags, if it is not nil, returns what a Redis is that may be a replica, in words.
	Lags    func(context.Context) (string, error)
	Names   wire.Names
	Total   string   // value of --total
	Log     bool     // whether the log of changes is in Redis
	Clients bool     // whether clients of Redis write boards through a sidecar (--resp)
	User    string   // as which the client logs in, if Redis does not tell
	Roles   []string // of serve, write and poll
}

// Names of checks on which others depend.
const (
	CheckRooms  = "rooms"
	CheckRedis  = "redis"
	CheckBoards = "boards"
	CheckKafka  = "kafka"
	CheckLog    = "log"
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
	server, _ := r.info(ctx, "server")
	version := cmp.Or(server["redis_version"], "(unknown version)")
	return okf("Redis %s answers in %v, the first time in %v", version, time.Since(begin).Round(10*time.Microsecond), took.Round(10*time.Microsecond))
}

// info returns a section of INFO, empty if Redis refuses it.
func (r Redis) info(ctx context.Context, section string) (map[string]string, error) {
	text, err := r.Client.Info(ctx, section).Result()
	if away(err) {
		return nil, err
	}
	fields := map[string]string{}
	for line := range strings.SplitSeq(text, "\r\n") {
		if name, value, ok := strings.Cut(line, ":"); ok {
			fields[name] = value
		}
	}
	return fields, nil
}

// away reports whether an error is not Redis's refusal of a command: it did not answer, or not now.
func away(err error) bool {
	told := judgeReply(err)
	return told != nil && told != errRefused && told != errLacking
}

func (r Redis) mode(ctx context.Context) Verdict {
	server, err := r.info(ctx, "server")
	cluster, err2 := r.info(ctx, "cluster")
	if err = cmp.Or(err, err2); err != nil {
		return Unasked(err)
	}
	return judgeMode(r.Mode, server["redis_mode"], cluster["cluster_enabled"])
}

func (r Redis) role(ctx context.Context) Verdict {
	if r.Mode == "cluster" {
		return okf("the nodes of a cluster send readers of boards to masters")
	}
	if r.Lags != nil {
		is, err := r.Lags(ctx)
		if err != nil {
			return Unasked(err)
		}
		return okf("Redis is %s", is)
	}
	values, err := r.Client.Do(ctx, "ROLE").Slice()
	if away(err) {
		return Unasked(err)
	}
	return judgeRole(values, err)
}

func (r Redis) eviction(ctx context.Context) Verdict {
	memory, err := r.info(ctx, "memory")
	if err != nil {
		return Unasked(err)
	}
	return judgeEviction(memory["maxmemory_policy"], memory["maxmemory"], memory["maxmemory_human"])
}

// clock compares Redis's clock with this machine's, as exactly as the round trip allows.
func (r Redis) clock(ctx context.Context) Verdict {
	begin := time.Now()
	theirs, err := r.Client.Time(ctx).Result()
	switch {
	case away(err):
		return Unasked(err)
	case err != nil:
		return warnf("Redis refuses TIME: %s", explain(err))
	}
	trip := time.Since(begin)
	return judgeSkew("Redis", theirs.Sub(begin.Add(trip/2)), trip/2)
}

// LogCheck returns the check of the log of changes in Redis.
func (r Redis) LogCheck() Check {
	return Check{CheckLog, []string{CheckRedis}, func(ctx context.Context) Verdict {
		info, err := r.Client.XInfoStream(ctx, wire.LogKey).Result()
		switch {
		case redis.HasErrorPrefix(err, "no such key"):
			return okf("log: Redis, key %s, which has nothing yet: rankcache write --log redis makes it with the first change of a super-hot board", wire.LogKey)
		case redis.HasErrorPrefix(err, "WRONGTYPE"):
			return failf("key %s is no stream, so no board is whole in memory: check what else uses it, and delete it", wire.LogKey)
		case away(err):
			return Unasked(err)
		case err != nil:
			return warnf("the log of changes, key %s: %s", wire.LogKey, explain(err))
		}
		return okf("log: Redis, key %s with %d entries", wire.LogKey, info.Length)
	}}
}

// HotKeys returns the check of HOTKEYS, for --hot-source redis.
func (r Redis) HotKeys() Check {
	return Check{"hot-source", []string{CheckRedis}, func(ctx context.Context) Verdict {
		err := r.Client.Do(ctx, "HOTKEYS", "GET").Err()
		switch {
		case err == nil || err == redis.Nil:
			return okf("Redis has HOTKEYS")
		case away(err):
			return Unasked(err)
		case errors.Is(judgeReply(err), errLacking):
			return warnf("this Redis has no HOTKEYS (new in 8.6): boards get hot by each sidecar's own counters only, and what many pods read rarely is not noticed; run rankcache keep, or set --hot-source none")
		}
		return warnf("HOTKEYS fails, so boards get hot by each sidecar's own counters only: %s", explain(err))
	}}
}

// Endless is a board without a period.
type Endless struct {
	Board rankcache.BoardID
	Keep  time.Duration // that its class sets; 0: none does
}

// Expiry returns the check of when boards without a period expire, as Redis has it.
func (r Redis) Expiry(boards func() []Endless) Check {
	return Check{"expiry", []string{CheckBoards}, func(ctx context.Context) Verdict {
		all := boards()
		expires, err := r.expiries(ctx, all)
		if err != nil {
			return Unasked(fmt.Errorf("when boards expire: %w", err))
		}
		return judgeExpiry(all, expires)
	}}
}

// expiries returns when the boards expire, by their metas; zero: never.
func (r Redis) expiries(ctx context.Context, boards []Endless) ([]time.Time, error) {
	expires, replies := make([]time.Time, len(boards)), make([]*redis.StringCmd, len(boards))
	_, err := r.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, b := range boards {
			replies[i] = p.Get(ctx, r.Names.MetaKey(b.Board))
		}
		return nil
	})
	if err != nil && err != redis.Nil {
		return nil, err
	}
	for i, reply := range replies { // one that can't be read is another check's
		if m, err := wire.ParseMeta(reply.Val()); err == nil && m.Expires > 0 {
			expires[i] = time.UnixMilli(int64(m.Expires)).UTC() // #nosec G115 -- milliseconds
		}
	}
	return expires, nil
}

// judgeExpiry judges boards that expire: of those for which the rooms file sets nothing, somebody may not know.
func judgeExpiry(boards []Endless, expires []time.Time) Verdict {
	first, unset, some := -1, 0, 0
	for i, at := range expires {
		if at.IsZero() {
			continue
		}
		if some++; boards[i].Keep == 0 {
			unset++
		}
		if first < 0 || at.Before(expires[first]) {
			first = i
		}
	}
	if some == 0 {
		return okf("%d super-hot boards without a period, none expires; rankcache big shows all boards", len(boards))
	}
	text := fmt.Sprintf("%d of %d super-hot boards without a period expire, the first %s at %s, unless they are changed", some, len(boards),
		boards[first].Board, expires[first].Format(time.RFC3339))
	if unset == 0 {
		return okf("%s: their classes have a keep", text)
	}
	return warnf("%s: for %d no class sets a keep: writers have --board-life, an earlier version gave them 72h, or the sorted set had an expiry of its own; PERSIST of the board and of its {…} keys keeps one",
		text, unset)
}
