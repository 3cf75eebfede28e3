package serve

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/doctor"
	"rankcache/origin"
)

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
	switch err := c.rights.May(ctx, "read"); {
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
