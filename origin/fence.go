package origin

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/wire"
)

// A round trip to a replica has two commands more, on the connection that it uses: before all others it reads the time that the
// keeper wrote on the master, behind which everything is that the replica has; after them it asks for the role. So each answer has
// the proof of its master and its age with it, whatever becomes of the replica meanwhile, and whichever of several has answered.

// proof is what the round trips of one read have shown. It belongs to the goroutine that reads.
type proof struct {
	master string    // host:port, that the replica must follow; "": any
	at     time.Time // up to which the answers have all that the master had
	reason reason    // why they don't count
	err    error
	trips  int
}

type proofKey struct{}

// fence is the [redis.Hook] of a client of replicas.
type fence struct {
	written string // key of the keeper's time
	clock   *keeperClock
}

// DialHook changes nothing.
func (f *fence) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook changes nothing: a single command proves nothing.
func (f *fence) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook adds the two commands, within a transaction if it is one.
func (f *fence) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		p, ok := ctx.Value(proofKey{}).(*proof)
		if !ok {
			return next(ctx, cmds)
		}
		written, role := redis.NewStringCmd(ctx, "getrange", f.written, 0, wire.MaxWrittenLen), redis.NewSliceCmd(ctx, "role")
		first, last := 0, len(cmds)
		if cmds[0].Name() == "multi" {
			first, last = 1, last-1
		}
		all := append(make([]redis.Cmder, 0, len(cmds)+2), cmds[:first]...)
		all = append(append(append(all, written), cmds[first:last]...), role)
		before := time.Now()
		err := next(ctx, append(all, cmds[last:]...))
		p.take(f.clock, before, written, role)
		return err
	}
}

// take adds what a round trip that began at a time has shown. The worst of several counts.
func (p *proof) take(clock *keeperClock, began time.Time, written *redis.StringCmd, role *redis.SliceCmd) {
	at, why, err := time.Time{}, judgeReplica(role, &p.master), error(nil)
	if why == "" {
		at, why, err = clock.read(written, began)
	} else if err = role.Err(); err == nil {
		err = fmt.Errorf("ROLE tells %v", role.Val())
	}
	if p.trips++; p.reason == "" {
		p.reason, p.err = why, err
	}
	if p.trips == 1 || at.Before(p.at) {
		p.at = at
	}
}

// judgeReplica returns why a role is not that of a replica with a link to the master, which it sets if that is "".
func judgeReplica(role *redis.SliceCmd, master *string) reason {
	values, err := role.Result()
	switch {
	case err != nil && refused(err) && !isAborted(err): // aborted by whatever: the next look tells
		return reasonRefused
	case err != nil || len(values) == 0:
		return reasonAway
	case values[0] != "slave" || len(values) < 4:
		return reasonNoReplica
	case values[3] != "connected":
		return reasonLink
	}
	of := net.JoinHostPort(fmt.Sprint(values[1]), fmt.Sprint(values[2]))
	if *master == "" {
		*master = of
	}
	if *master != of {
		return reasonOtherMaster
	}
	return ""
}

// keeperClock turns the times that a keeper wrote, by the clock of the master, into those of this machine's clock. Where that is behind, the
// time at which a value was first seen here counts, so that nothing is taken for younger than it is since then.
type keeperClock struct {
	mu          sync.Mutex
	written, at time.Time // the latest value, and what that is by this machine's clock
}

// read returns the time of a value that was asked for at a time.
func (c *keeperClock) read(value *redis.StringCmd, asked time.Time) (time.Time, reason, error) {
	text, err := value.Result()
	switch {
	case err != nil && refused(err):
		return time.Time{}, reasonRefused, err
	case err != nil:
		return time.Time{}, reasonAway, err
	case text == "":
		return time.Time{}, reasonNoKeeper, nil
	}
	written, err := wire.ParseWritten(text)
	if err != nil {
		return time.Time{}, reasonNoKeeper, err
	}
	return c.seen(written, asked), "", nil
}

func (c *keeperClock) seen(written, asked time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if written.After(c.written) {
		if c.written, c.at = written, asked; written.Before(asked) {
			c.at = written
		}
	}
	return c.at.Add(written.Sub(c.written)) // of a replica that is behind another one
}

// latest returns the time of the latest value, zero if there is none.
func (c *keeperClock) latest() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}
