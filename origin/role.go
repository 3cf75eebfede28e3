package origin

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrNotMaster reports a Redis that is a replica, or a Sentinel. Replicas lag behind, which looks like lost writes.
var ErrNotMaster = errors.New("this Redis is no master")

// CheckMaster returns an error that wraps [ErrNotMaster] if the server is none, and whether it tells: proxies may not
// know ROLE, ACLs forbid it. A cluster's nodes redirect, and are not asked.
func CheckMaster(ctx context.Context, client redis.UniversalClient) (known bool, err error) {
	if _, ok := client.(*redis.ClusterClient); ok {
		return true, nil
	}
	return judgeRole(client.Do(ctx, "ROLE"))
}

func onlyMaster(ctx context.Context, conn *redis.Conn) error {
	return judgeConn(conn.Do(ctx, "ROLE"))
}

// roleHolds is how long new connections count as a master's after one answered: each question is a round trip more.
const roleHolds = 10 * time.Second

// rarely has one connection in roleHolds checked, and the next one after a bad one.
func rarely(check func(context.Context, *redis.Conn) error) func(context.Context, *redis.Conn) error {
	var asked atomic.Int64 // Unix milliseconds; 0: the next one is checked
	return func(ctx context.Context, conn *redis.Conn) error {
		now, last := time.Now().UnixMilli(), asked.Load()
		if since := now - last; since >= 0 && since < roleHolds.Milliseconds() || !asked.CompareAndSwap(last, now) {
			return nil
		}
		err := check(ctx, conn)
		if err != nil {
			asked.Store(0)
		}
		return err
	}
}

// onlyMasterOrSentinel is onlyMaster for a client that also connects to Sentinels.
func onlyMasterOrSentinel(ctx context.Context, conn *redis.Conn) error {
	role := conn.Do(ctx, "ROLE")
	if values, _ := role.Slice(); len(values) > 0 && values[0] == "sentinel" {
		return nil
	}
	return judgeConn(role)
}

// What a Redis is to be: RoleReplica is read in another region than the writers', RoleRead beside its master.
const RoleMaster, RoleReplica, RoleRead = "master", "replica", "read"

// masterOrReplica refuses a new connection to a Sentinel.
func masterOrReplica(ctx context.Context, conn *redis.Conn) error {
	role := conn.Do(ctx, "ROLE")
	if values, _ := role.Slice(); len(values) > 0 && values[0] == "slave" {
		return nil
	}
	return judgeConn(role)
}

// CheckReplica tells in words what a server is; an error wraps [ErrNotMaster] if neither replica nor master.
func CheckReplica(ctx context.Context, client redis.UniversalClient) (is string, err error) {
	role := client.Do(ctx, "ROLE")
	if values, _ := role.Slice(); len(values) > 3 && values[0] == "slave" {
		return fmt.Sprintf("a replica of %v:%v (link: %v)", values[1], values[2], values[3]), nil
	}
	known, err := judgeRole(role)
	if !known {
		return "unknown, as ROLE is refused", err
	}
	return "a master: nothing replicates to it, so all ages grow; set --redis-role master if it is the writing region's", err
}

// judgeConn wraps the error once more, because go-redis unwraps it.
func judgeConn(role *redis.Cmd) error {
	if _, err := judgeRole(role); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	return nil
}

func judgeRole(role *redis.Cmd) (known bool, err error) {
	values, err := role.Slice()
	if reply := redis.Error(nil); errors.As(err, &reply) && refused(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	switch {
	case len(values) > 2 && values[0] == "slave":
		return true, fmt.Errorf("%w but a replica of %v:%v: its lag looks like lost writes; give the master's address, or use sentinel mode, which follows the master", ErrNotMaster, values[1], values[2])
	case len(values) > 0 && values[0] == "sentinel":
		return true, fmt.Errorf("%w but a Sentinel, which has no boards: use sentinel mode", ErrNotMaster)
	}
	return len(values) > 0 && values[0] == "master", nil
}
