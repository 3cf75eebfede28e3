package origin

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/wire"
)

// A round trip to a replica has two commands more, on its connection: before all others it reads the time that the
// keeper wrote on the master, after them it asks for the role. So each answer has the proof of its master and its age
// with it, whatever becomes of the replica.

// proof is what the round trips of one read have shown. It belongs to the goroutine that reads.
type proof struct {
	written string // key of the keeper's time
	clock   *keeperClock
	master  string    // host:port, that the replica must follow; "": any
	oldest  time.Time // not zero: the link may be down, and this is of which time answers may be

	at     time.Time // up to which the answers have all that the master had
	reason reason    // why they don't count
	err    error
	cut    error // the link is down, though it may be
	trips  int
}

type proofKey struct{}

// handshake are the commands with which a client begins a new connection, by a pipeline of their own and with the
// context of what is asked then: before them it leads to another database, or to no replica's slots.
var handshake = []string{"hello", "auth", "select", "readonly", "client"}

type fence struct{} // the [redis.Hook] of a client of replicas

func (fence) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook changes nothing: a single command proves nothing.
func (fence) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook adds the two commands, within a transaction if it is one.
func (fence) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		p, ok := ctx.Value(proofKey{}).(*proof)
		if !ok || slices.Contains(handshake, cmds[0].Name()) {
			return next(ctx, cmds)
		}
		written, role := redis.NewStringCmd(ctx, "getrange", p.written, 0, wire.MaxWrittenLen), redis.NewSliceCmd(ctx, "role")
		first, last := 0, len(cmds)
		if cmds[0].Name() == "multi" {
			first, last = 1, last-1
		}
		all := append(make([]redis.Cmder, 0, len(cmds)+2), cmds[:first]...)
		all = append(append(append(all, written), cmds[first:last]...), role)
		before := time.Now()
		err := next(ctx, append(all, cmds[last:]...))
		p.take(before, written, role)
		return err
	}
}

// take adds what a round trip that began at a time has shown. The worst of several counts.
func (p *proof) take(began time.Time, written *redis.StringCmd, role *redis.SliceCmd) {
	at, why, err := time.Time{}, p.judgeReplica(role), error(nil)
	if why == "" {
		at, why, err = p.clock.read(written, began)
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
func (p *proof) judgeReplica(role *redis.SliceCmd) reason {
	values, err := role.Result()
	switch {
	case err != nil && refused(err) && !isAborted(err): // aborted by whatever: the next look tells
		return reasonRefused
	case err != nil || len(values) == 0:
		return reasonAway
	case values[0] != "slave" || len(values) < 4:
		return reasonNoReplica
	case values[3] != "connected" && p.oldest.IsZero():
		return reasonLink
	case values[3] != "connected":
		p.cut = fmt.Errorf("ROLE tells %v", values)
	}
	of := net.JoinHostPort(fmt.Sprint(values[1]), fmt.Sprint(values[2]))
	if p.master == "" {
		p.master = of
	}
	if p.master != of {
		return reasonOtherMaster
	}
	return ""
}

// judge returns why a replica's answer is none. A cluster's needs a state: it may have one of two keys meanwhile.
func (p *proof) judge(q *rankcache.Query, a *rankcache.Answer, cluster bool) reason {
	oldest := p.oldest
	if oldest.IsZero() {
		oldest = time.Now().Add(-OldestReplica)
	}
	switch {
	case p.trips == 0:
		return reasonAway
	case p.reason != "":
		return p.reason
	case isMoved(a.Err):
		return reasonMoved
	case a.Err != nil:
		return reasonAway
	case p.at.Before(oldest):
		return reasonBehind
	case a.Members == 0 || cluster && a.Seq == 0: // it may be on the primary: no board is told to be gone by a replica
		return reasonMissing
	case !reaches(q, a.State) || q.MaxAge != 0 && time.Since(p.at) > q.MaxAge:
		return reasonBounds
	}
	return ""
}

// isMoved reports whether a node of a cluster has answered that a slot is another one's.
func isMoved(err error) bool {
	return redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "ASK")
}

// reaches reports whether a state is within the bounds of q, as far as it tells.
func reaches(q *rankcache.Query, s rankcache.State) bool {
	want := &q.MinState
	return s.Seq >= q.MinSeq && (want.Run == 0 || s.Run == want.Run && s.Seq >= want.Seq && !(s.Seq == want.Seq && s.HasSum && want.HasSum && s.Sum != want.Sum))
}

// keeperClock turns the times that a keeper wrote, by the clock of the master, into those of this machine's clock.
// Where that is behind, the time at which a value was first seen here counts, so that nothing is taken for younger than
// it is since then.
type keeperClock struct {
	mu          sync.Mutex
	written, at time.Time // the latest value, and what that is by this machine's clock
}

// read returns the time of a value that was asked for at a time.
func (c *keeperClock) read(value *redis.StringCmd, asked time.Time) (time.Time, reason, error) {
	text, err := value.Result()
	switch {
	case isMoved(err):
		return time.Time{}, reasonMoved, err
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
