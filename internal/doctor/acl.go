package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/wire"
)

// probeBoard names the keys of the probes; none of them exists.
const probeBoard = rankcache.BoardID("rankcache-doctor-probe")

// permission is one command that a role needs, with one of its keys as an argument, because an ACL is about both.
type permission struct {
	args   []any
	writes bool // else it may be tried: it reads, or there is nothing that it would change
}

// String returns the command as it is written in an ACL.
func (a permission) String() string {
	if slices.Contains([]any{"CLUSTER", "MEMORY", "XINFO"}, a.args[0]) {
		return fmt.Sprintf("%s|%s", a.args[0], a.args[1])
	}
	return fmt.Sprint(a.args[0])
}

// spares reports whether a role can do a part of its work without a command: INFO tells a server's history.
func (r Redis) spares(role string, a permission) bool {
	return a.args[0] == "INFO" && slices.Contains([]string{"serve", "keep", "write", "controller"}, role) && r.Lags == nil
}

// needs returns the permissions that a role needs.
func (r Redis) needs(role string) []permission {
	board, meta, orders, adopter := r.Names.BoardKey(probeBoard), r.Names.MetaKey(probeBoard), r.Names.OrdersKey(probeBoard, 0, 0), r.Names.AdopterKey(probeBoard)
	hot, states, written := r.Names.HotKey("doctor"), r.Names.StatesKey("doctor"), r.Names.WrittenKey("doctor")
	read := func(args ...any) permission { return permission{args, false} }
	none, nobody := read, string(probeBoard) // none: a write of what is not there
	write := func(args ...any) permission { return permission{args, true} }
	boards := []permission{read("ZCARD", board), read("ZSCORE", board, "m"), read("ZRANK", board, "m"), read("ZREVRANK", board, "m"),
		read("ZRANGE", board, 0, 0), read("ZREVRANGE", board, 0, 0), read("EVALSHA", noScript, 1, board), read("HMGET", r.Names.CompanionKey(probeBoard, wire.Scores), "m"),
		read("HGET", r.Names.CompanionKey(probeBoard, wire.Data), "m")}
	switch role {
	case "read": // of a replica
		if r.Total == "seq" {
			boards = append(boards, read("GET", meta))
		}
		return boards
	case "serve", "keep":
		list := append(boards, read("ZSCAN", board, 0), read("HGETALL", r.Names.CompanionKey(probeBoard, wire.Data)),
			read("SMEMBERS", r.Names.RoomKey("0")), read("HLEN", r.Names.Rooms), read("HGETALL", r.Names.Rooms), read("GET", hot), read("GETRANGE", states, 0, 1), read("GETRANGE", written, 0, 1), read("INFO", "server"))
		seq := meta
		if key, isKey := strings.CutPrefix(r.Total, "key:"); isKey {
			seq = strings.Replace(key, "<board>", string(probeBoard), 1)
		}
		if r.Total != "none" {
			list = append(list, read("GET", seq))
		}
		list = append(list, none("EVAL", "return 0", 1, board), write("MULTI"), write("HSET", r.Names.Readopt, "b", 1), read("INFO", "server"))
		if r.Log {
			list = append(list, read("XREAD", "STREAMS", wire.LogKey, "$"), read("XINFO", "STREAM", wire.LogKey))
		}
		if r.Log && r.Clients { // resp/logged.lua, beside the clients' own commands
			count := r.Names.CountKey(probeBoard)
			list = append(list, read("COMMAND", "COUNT"), read("EVALSHA", noScript, 3, board, meta, count), read("TIME"), read("PTTL", board), none("SETRANGE", meta, 0, ""), none("PEXPIREAT", meta, 1),
				none("PERSIST", meta), none("DEL", meta), read("GET", count), none("SET", count, "x", "XX"), none("DEL", count), write("XADD", wire.LogKey, "*", wire.LogBoard, "b"))
		}
		reads := r.Names.ReadsKey("doctor")
		if role == "serve" { // approximate ranks; of the fleet's hot boards; its page tells of damaged masters
			ladder, lease := r.Names.LadderKey(probeBoard), r.Names.LadderLeaseKey(probeBoard)
			list = append(list, read("PTTL", ladder), read("GETRANGE", ladder, 0, 1), none("SET", ladder, "x", "XX"), none("SET", lease, "x", "XX"), read("GET", lease), read("PTTL", lease), read("EVALSHA", noScript, 2, ladder, lease),
				read("HGET", r.Names.AppliedKey("0"), "damaged"), read("SCARD", r.Names.WantedKey("0")),
				write("HSET", reads, "m", "x"), write("PEXPIRE", reads, 1))
		}
		if role == "keep" {
			lease := r.Names.KeeperKey("doctor")
			list = append(list, none("SET", states, "x", "XX"), none("SET", written, "x", "XX"), read("TIME"), read("EVALSHA", noScript, 1, states), read("GET", lease), none("SET", lease, "x", "XX"), read("EVALSHA", noScript, 1, lease), none("EVAL", "return 0", 1, lease),
				read("PTTL", lease), none("PEXPIRE", lease, 1), none("DEL", lease),
				read("EVALSHA", noScript, 1, reads), read("HLEN", reads), read("HKEYS", reads), read("HSTRLEN", reads, nobody), read("HGET", reads, nobody), none("HDEL", reads, nobody), none("SET", hot, "x", "XX"))
		}
		return list
	case "write":
		list := []permission{read("GET", meta), read("HGET", orders, "1"), read("HEXISTS", orders, ""), read("HLEN", orders), read("ZSCORE", board, "m"),
			read("ZCARD", board), read("ZRANGE", board, 0, 0), read("PTTL", board), read("HSCAN", r.Names.Readopt, 0), read("HGET", r.Names.Readopt, "b"),
			read("EVALSHA", noScript, 1, board), read("TIME"), read("INFO", "replication"), read("GET", adopter), // INFO: which server's history a durable board is of
			read("SMEMBERS", r.Names.RoomKey("0")), read("HLEN", r.Names.Rooms), read("HGETALL", r.Names.Rooms), read("HGETALL", r.Names.AppliedKey("0")), read("HMGET", r.Names.AppliedKey("0"), "life"), write("HSET", r.Names.AppliedKey("0"), "life", "x"),
			write("HSETNX", r.Names.AppliedKey("0"), "damaged", 1), write("SADD", r.Names.WantedKey("0"), "b"), read("HGET", r.Names.AnswersKey("0"), "b"),
			none("EVAL", "return 0", 1, board), none("ZADD", board, "XX", 1, "m"), none("ZREM", board, "m"), none("SET", meta, "x", "XX"), none("SETRANGE", meta, 0, ""),
			write("HSET", orders, "1", "x"), none("UNLINK", orders), none("PEXPIREAT", board, 1), none("PERSIST", orders), none("SET", adopter, "x", "XX"),
			none("PEXPIRE", adopter, 1), none("DEL", adopter), none("HDEL", r.Names.Readopt, nobody), read("ZRANGE", r.Names.Ends, 0, 0), none("ZADD", r.Names.Ends, "XX", 1, nobody),
			read("ZRANGEBYSCORE", r.Names.RoomEnds, 0, 1), none("ZADD", r.Names.RoomEnds, "XX", 1, nobody), none("ZREM", r.Names.RoomEnds, nobody),
			write("SADD", r.Names.RoomKey("0"), "b"), none("SREM", r.Names.RoomKey("0"), nobody),
			read("ZRANGE", r.Names.Ends, 0, 0), read("HGETALL", r.Names.HiddenListKey("c")), write("HSET", r.Names.HiddenListKey("c"), "m", 1), none("HDEL", r.Names.HiddenListKey("c"), nobody)}
		data := r.Names.CompanionKey(probeBoard, wire.Data)
		list = append(list, read("HLEN", data), read("HMGET", data, "m"), read("HGETALL", data))
		for _, c := range wire.Companions() {
			key := r.Names.CompanionKey(probeBoard, c)
			list = append(list, read("HGET", key, "m"), write("HSET", key, "m", 1), none("HDEL", key, "m"), write("HINCRBY", key, "m", 1))
		}
		if r.Log {
			list = append(list, write("XADD", wire.LogKey, "*", wire.LogBoard, "b"), read("XLEN", wire.LogKey), read("MEMORY", "USAGE", wire.LogKey), none("XTRIM", wire.LogKey, "MAXLEN", "~", 1<<40))
		}
		return list
	case "controller":
		ends, absent, lease := r.Names.Ends, r.Names.AbsentTopics, r.Names.Controller
		primes := r.Names.OrdersKey(probeBoard, wire.PrimeSet, 0)
		return []permission{read("ZRANGEBYSCORE", ends, 0, 0), read("ZRANGE", ends, 0, 0), read("ZCARD", ends), read("HGETALL", absent), read("EXISTS", board), read("EXISTS", meta),
			read("GET", meta), read("GET", lease), read("EVALSHA", noScript, 1, meta), read("HGETALL", r.Names.AppliedKey("0")), read("SMEMBERS", r.Names.RoomKey("0")), read("HLEN", r.Names.Rooms), read("HGETALL", r.Names.Rooms), read("INFO", "server"), read("TIME"),
			none("EVAL", "return 0", 1, meta), none("SETRANGE", meta, 0, ""), none("ZREM", ends, nobody), none("ZADD", ends, "XX", 1, nobody), write("HSET", absent, "t", 1), none("HDEL", absent, nobody),
			read("ZCARD", board), read("ZSCAN", board, 0), read("HMGET", r.Names.CompanionKey(probeBoard, wire.Data), "m"), write("MULTI"), none("PEXPIREAT", board, 1), // of finals
			read("ZRANGE", board, 0, 0), read("HGETALL", r.Names.CompanionKey(probeBoard, wire.Hidden)), read("HGET", primes, "m"), read("HEXISTS", primes, "m"), read("HLEN", primes), none("UNLINK", primes), read("INFO", "replication"), // of rolling boards
			write("SET", lease, "x"), read("PTTL", lease), write("PEXPIRE", lease, 1), write("DEL", lease)}
	case "ledger": // --rebuild-lost; the temporary keys begin with the name of the meta
		applied, wanted, answers, temporary := r.Names.AppliedKey("0"), r.Names.WantedKey("0"), r.Names.AnswersKey("0"), meta+":rebuild:"
		list := []permission{read("INFO", "replication"), read("HMGET", applied, "life"), read("SMEMBERS", wanted), read("HGET", applied, "life"), read("HEXISTS", applied, "damaged"), read("HVALS", applied),
			read("GET", meta), read("GET", adopter), read("TIME"), read("EVALSHA", noScript, 1, board), read("ZCARD", temporary), read("HLEN", temporary), read("EXISTS", temporary),
			read("SMEMBERS", r.Names.RoomKey("0")), read("HLEN", r.Names.Rooms), read("HGETALL", r.Names.Rooms), read("HGETALL", r.Names.HiddenListKey("c")), none("EVAL", "return 0", 1, board), write("MULTI"),
			write("HDEL", applied, "damaged"), none("SREM", wanted, nobody), write("DEL", wanted), write("HSET", answers, "b", "x"), write("DEL", answers),
			none("SET", meta, "x", "XX"), none("SETRANGE", meta, 0, ""), none("SET", adopter, "x", "XX"), none("PEXPIRE", adopter, 1), none("DEL", adopter), none("ZADD", r.Names.Ends, "XX", 1, nobody),
			write("HSET", temporary, "m", 1), none("ZADD", temporary, "XX", 1, "m"), none("PEXPIRE", temporary, 1), none("PERSIST", temporary), none("PEXPIREAT", temporary, 1),
			none("UNLINK", temporary), write("RENAME", temporary, board), write("RENAME", temporary, orders), none("UNLINK", board), none("UNLINK", orders)}
		for _, c := range wire.Companions() {
			list = append(list, write("RENAME", temporary, r.Names.CompanionKey(probeBoard, c)), none("UNLINK", r.Names.CompanionKey(probeBoard, c)))
		}
		return list
	case "reconcile":
		return []permission{read("GET", meta)}
	case "poll":
		return []permission{read("GET", hot), read("EVALSHA", noScript, 1, hot), none("SET", hot, "x", "XX"), none("EVAL", "return 0", 1, hot),
			none("PEXPIRE", hot, 1), none("DEL", hot)}
	}
	return nil
}

// ofMode returns what a role needs besides that looks for the masters of a cluster, or compares the places of
// instances.
func (r Redis) ofMode(role string) (list []permission) {
	if several := r.Mode == "instances" || r.Mode == "cluster"; several && role == "keep" {
		list = append(list, permission{[]any{"SET", wire.MasterWrittenKey("0"), "x", "XX"}, false})
	}
	if r.Mode == "instances" {
		list = append(list, permission{[]any{"GET", wire.PlaceKey}, false})
		if role == "write" {
			list = append(list, permission{[]any{"SETNX", wire.PlaceKey, "1/2"}, true})
		}
		return list
	}
	if r.Mode != "cluster" || !slices.Contains([]string{"write", "controller", "ledger"}, role) {
		return list
	}
	return []permission{{[]any{"CLUSTER", "NODES"}, false}}
}

// Needs returns the commands that an ACL must grant to a role: serve, keep, write, poll, controller, ledger (to rebuild
// what Redis has lost) or reconcile.
func (r Redis) Needs(role string) (commands []string) {
	for _, a := range r.needs(role) {
		if !slices.Contains(commands, a.String()) {
			commands = append(commands, a.String())
		}
	}
	return commands
}

// noScript is the digest of no script: if EVALSHA is permitted, it fails with NOSCRIPT.
const noScript = "0000000000000000000000000000000000000000"

// commands checks the permissions of the roles. ACL DRYRUN (Redis 7) tells them
// without running the commands; without it the reads are tried.
func (r Redis) commands(ctx context.Context) Verdict {
	user, err := r.Client.Do(ctx, "ACL", "WHOAMI").Text()
	if away(err) {
		return Unasked(err)
	} else if err != nil {
		user = cmp.Or(r.User, "default")
	}
	dry := err == nil && r.Client.Do(ctx, "ACL", "DRYRUN", user, "PING").Err() == nil
	var refused, absent []string
	untried, blind := 0, false
	for _, role := range r.Roles {
		var missing, lacking []string
		for _, a := range append(r.needs(role), r.ofMode(role)...) {
			if !dry && a.writes {
				untried++
				continue
			}
			switch err := r.may(ctx, dry, user, a); {
			case r.spares(role, a) && (errors.Is(err, errRefused) || errors.Is(err, errLacking)):
				blind = true
			case errors.Is(err, errRefused) && !slices.Contains(missing, a.String()):
				missing = append(missing, a.String())
			case errors.Is(err, errLacking) && !slices.Contains(lacking, a.String()):
				lacking = append(lacking, a.String())
			case err != nil && !errors.Is(err, errRefused) && !errors.Is(err, errLacking):
				return Unasked(err)
			}
		}
		if len(missing) > 0 {
			refused = append(refused, role+" needs "+strings.Join(missing, ", "))
		}
		if len(lacking) > 0 {
			absent = append(absent, strings.Join(lacking, ", ")+", which "+role+" needs")
		}
	}
	v := judgeCommands(user, strings.Join(r.Roles, ", "), refused, absent, untried)
	if blind && v.Status == OK {
		return warnf("user %q may not use INFO: %s", user, WithoutInfo)
	}
	return v
}

// judgeCommands judges the commands that are refused, those that the server lacks, and how many were not tried.
func judgeCommands(user, roles string, refused, absent []string, untried int) Verdict {
	var causes []string
	if len(absent) > 0 {
		causes = append(causes, "this Redis has no "+strings.Join(absent, "; no ")+": it is renamed or disabled (rename-command), or the service does not offer it")
	}
	if len(refused) > 0 {
		causes = append(causes, fmt.Sprintf("user %q lacks permissions on rankcache's keys: %s: grant them by ACL", user, strings.Join(refused, "; ")))
	}
	switch {
	case len(causes) > 0:
		return failf("%s", strings.Join(causes, "; "))
	case untried > 0:
		return okf("all reads that %s needs are permitted; %d other commands were not tried, because this server or user has no ACL DRYRUN", roles, untried)
	}
	return okf("user %q may use every command that %s needs", user, roles)
}

// May tries in one round trip what a role needs, as far as that changes nothing, and returns nil if
// Redis lets the user do it. Else the error is Redis's, such as NOPERM or READONLY.
func (r Redis) May(ctx context.Context, role string) error {
	pipe := r.Client.Pipeline()
	var tried []*redis.Cmd
	for _, a := range r.needs(role) {
		if !a.writes && !r.spares(role, a) {
			tried = append(tried, pipe.Do(ctx, a.args...))
		}
	}
	may := func(err error) bool {
		return err == nil || answered(err) || r.Lags != nil && redis.HasErrorPrefix(err, "READONLY") // nothing is written to a replica
	}
	_, err := pipe.Exec(ctx) // the first command's, or of the connection
	for i := 0; i < len(tried) && may(err); i++ {
		err = tried[i].Err()
	}
	if may(err) {
		return nil
	}
	return err
}

// WithoutInfo is what is not promised without INFO.
const WithoutInfo = "boards that Redis loses in a failover or a restart are not told from deleted ones, replicas beside it (--redis-read) are not read, and durable classes are not written, closed or primed: grant +info"

// unserved begin the replies of a Redis that does not do what it is asked for.
var unserved = []string{"unknown command", "NOPERM", "NOAUTH", "WRONGPASS", "READONLY", "LOADING", "CLUSTERDOWN", "MASTERDOWN", "NOREPLICAS", "MISCONF", "BUSY ", "max number of clients"}

// answered reports whether an error is a reply about a command that may be used: that a key or
// script is missing, or of another type.
func answered(err error) bool {
	_, reply := errors.AsType[redis.Error](err)
	return reply && !slices.ContainsFunc(unserved, func(prefix string) bool { return redis.HasErrorPrefix(err, prefix) })
}

var (
	errRefused = errors.New("refused to the user")
	errLacking = errors.New("no command of the server")
)

// may returns nil if the user has the permission, else errRefused, errLacking, or what kept it from being known.
func (r Redis) may(ctx context.Context, dry bool, user string, a permission) error {
	if dry {
		answer, err := r.Client.Do(ctx, append([]any{"ACL", "DRYRUN", user}, a.args...)...).Text()
		switch {
		case answered(err): // it knows no such command
			return errLacking
		case err == nil && answer != "OK":
			return errRefused
		}
		return err
	}
	return judgeReply(r.Client.Do(ctx, a.args...).Err())
}

// judgeReply returns nil for a reply to a command that may be used, such as NOSCRIPT, else errRefused, errLacking or err.
func judgeReply(err error) error {
	switch {
	case err == nil || answered(err):
		return nil
	case redis.HasErrorPrefix(err, "NOPERM"):
		return errRefused
	case strings.Contains(err.Error(), "unknown command"):
		return errLacking
	}
	return err
}
