package serve

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/doctor"
	"rankcache/internal/tracing"
	"rankcache/localboard"
	"rankcache/origin"
	"rankcache/sidecar"
)

// A sidecar in another region than the writers': its Redis is a replica, and nothing is written to it.

// isReplica reports whether Redis is a replica in a region that only reads.
func (o *Options) isReplica() bool { return o.RedisRole == origin.RoleReplica }

// boardOrigin returns Redis as readers of boards see it.
func (s *Sidecar) boardOrigin() rankcache.Reader {
	switch {
	case s.replicas != nil:
		return s.replicas
	case s.reached == nil:
		return s.origin
	}
	return replicaOrigin{s.origin, s.reached.At, s.options.snapshots.maxAge}
}

// replicaOrigin is a replica of Redis: its answers are as old as it is, and none once that is more than oldest.
type replicaOrigin struct {
	rankcache.Reader
	reached func() time.Time // zero: unknown
	oldest  time.Duration
}

// Read implements [rankcache.Reader].
func (o replicaOrigin) Read(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer) {
	current := o.reached() // before the answer, which is no older
	o.Reader.Read(ctx, qs, as)
	age := time.Since(current)
	for i := range as {
		switch a := &as[i]; {
		case a.Err != nil:
		case !current.IsZero() && age > o.oldest:
			a.Fail(fmt.Errorf("%w: it has given nothing for %v, which is more than --snapshot-max-age %v", rankcache.ErrRegion, age.Round(time.Second), o.oldest))
		default:
			a.CurrentAt = current
		}
	}
}

// youngBoards are the open boards that are not known to be older than oldest.
type youngBoards struct {
	boards *localboard.Boards
	oldest time.Duration
}

// Get implements [sidecar.Boards].
func (b youngBoards) Get(id rankcache.BoardID) (sidecar.Board, bool) {
	board, ok := b.boards.Get(id)
	if !ok {
		return nil, false
	}
	if at := board.CurrentAt(); !at.IsZero() && time.Since(at) > b.oldest {
		return nil, false
	}
	return board, true
}

// replicaCheck is rankcache doctor's of --redis-read: it looks as a sidecar does.
type replicaCheck struct {
	client   redis.UniversalClient
	replicas *origin.Replicas
	rights   doctor.Redis
}

// newReplicaCheck returns the check, nil if no replica is to be read.
func newReplicaCheck(t *targets) (*replicaCheck, error) {
	if t.redisRead == nil || t.redisRead.Get() == "" {
		return nil, nil
	}
	client, err := t.DialRead("redis-read", t.redisRead)
	if err != nil {
		return nil, err
	}
	written := t.Names.WrittenKey(t.poll.VerdictInstance())
	return &replicaCheck{client, origin.NewReplicas(t.origin, client, written, slog.New(slog.DiscardHandler), nil),
		doctor.Redis{Client: client, Names: t.Names, Total: t.total}}, nil
}

func (c *replicaCheck) close() {
	if c != nil {
		c.client.Close()
	}
}

func (c *replicaCheck) checks() []doctor.Check {
	if c == nil {
		return nil
	}
	return []doctor.Check{{Name: "redis-read", Needs: []string{doctor.CheckRedis}, Look: c.look}}
}

// passing are the reasons that may be gone soon. The primary answers meanwhile.
var passing = []string{"link", "behind", "no_keeper", "moved", "alone"}

func (c *replicaCheck) look(ctx context.Context) doctor.Verdict {
	s := c.replicas.Look(ctx)
	age := time.Duration(s.AgeMs) * time.Millisecond
	err := c.rights.May(ctx, "read")
	switch {
	case s.Reason == "" && err != nil && !redis.HasErrorPrefix(err, "NOPERM"):
		return doctor.Unasked(fmt.Errorf("whether boards may be read from the replica: %w", err))
	case slices.Contains(passing, s.Reason):
		return doctor.Verdict{Status: doctor.Warn, Advice: "boards are read from the primary: " + s.Detail}
	case s.Reason != "":
		return doctor.Verdict{Status: doctor.Fail, Advice: "boards are read from the primary: " + s.Detail}
	case err != nil:
		return doctor.Verdict{Status: doctor.Fail, Advice: fmt.Sprintf("this user may not read boards from the replica: grant it by ACL: %v", err)}
	case len(s.Parts) > 0:
		return doctor.Verdict{Status: doctor.OK, Advice: fmt.Sprintf("boards are read from replicas of %d masters, the oldest %v old", len(s.Parts), age)}
	}
	return doctor.Verdict{Status: doctor.OK, Advice: fmt.Sprintf("boards are read from a replica of %s, %v old", s.Master, age)}
}

// buildReplicas builds what reads boards from replicas of Redis, if there are to be any. tracer may be nil.
func (s *Sidecar) buildReplicas(tracer *tracing.Tracer) (err error) {
	at := s.options.redisRead
	if at == nil || at.Get() == "" {
		return nil
	}
	if s.readRedis, err = s.options.DialRead("redis-read", at); err != nil {
		return err
	}
	s.replicas = origin.NewReplicas(s.origin, s.readRedis, s.states().Written, s.log, s.Registry)
	if cluster, ok := s.readRedis.(*redis.ClusterClient); ok && tracer != nil {
		cluster.OnNewNode(func(node *redis.Client) { node.AddHook(tracer.Hook()) })
	} else if tracer != nil {
		s.readRedis.AddHook(tracer.Hook())
	}
	s.parts = append(s.parts, s.replicas)
	return nil
}

// replicaStatus is the section of /status; nil where none is read.
func (s adminPort) replicaStatus() any {
	if s.replicas == nil {
		return nil
	}
	return s.replicas.State()
}
