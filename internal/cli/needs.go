package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/doctor"
	"rankcache/internal/health"
	"rankcache/internal/roomsync"
	"rankcache/origin"
	"rankcache/sidecar/adminapi"
)

// RedisNeed returns Redis as a role needs it. total is the value of --total; more, if not nil, is asked with it.
func (o *Options) RedisNeed(client redis.UniversalClient, role, total string, more func(context.Context) error) func(context.Context) error {
	rights := doctor.Redis{Client: client, Names: o.Names, Total: total, Log: o.LogInRedis()}
	check := func(ctx context.Context) error { _, err := origin.CheckMaster(ctx, client); return err }
	if o.RedisRole == origin.RoleReplica {
		rights.Lags = func(ctx context.Context) (string, error) { return origin.CheckReplica(ctx, client) }
		check = func(ctx context.Context) error { _, err := rights.Lags(ctx); return err }
	}
	return func(ctx context.Context) error {
		err := check(ctx)
		if err == nil {
			err = rights.May(ctx, role)
		}
		if err == nil && more != nil {
			err = more(ctx)
		}
		return redisRefusal(err)
	}
}

// redisRefusal marks an error of a Redis that is there, and not for this process.
func redisRefusal(err error) error {
	refused := errors.Is(err, origin.ErrNotMaster)
	for _, prefix := range []string{"NOPERM", "NOAUTH", "WRONGPASS", "READONLY"} {
		refused = refused || redis.HasErrorPrefix(err, prefix)
	}
	if err != nil && refused {
		return &health.Refusal{Err: err}
	}
	return err
}

// PingRedis reports whether Redis serves, also to a user who may not PING.
func PingRedis(client redis.UniversalClient) func(context.Context) error {
	return func(ctx context.Context) error {
		err := client.Ping(ctx).Err()
		if redis.HasErrorPrefix(err, "NOPERM") {
			return nil
		}
		return err
	}
}

// KafkaNeed returns Kafka with what a process does there.
func (o *Options) KafkaNeed(use doctor.KafkaUse) *health.Need {
	return health.NewNeed(time.Minute).Require(func(ctx context.Context) error {
		return doctor.TryKafka(ctx, o.Kafka, o.kafkaNow(), use)
	}, nil)
}

// ProbeTopic stands for the topics of boards: nothing makes it.
func (o *Options) ProbeTopic() string { return o.Names.Topic(rankcache.BoardID("rankcache-probe")) }

// Readiness returns a readiness that waits for services, and for what is set at run time unless follower is nil.
func Readiness(needs health.Needs, follower *roomsync.Follower) *adminapi.Readiness {
	return adminapi.NewReadiness(func() (bool, string) {
		if met, why := needs.Met(); !met || follower == nil || follower.SharedRead() {
			return met, why
		}
		return false, NotReadYet(follower)
	}, nil)
}

// WrongClock names the fault of a clock as the writer's answers do.
func WrongClock(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("wrong_clock: %w", err)
}

// NotReadYet tells why a follower has not read what is set at run time.
func NotReadYet(f *roomsync.Follower) string {
	return "redis: " + cmp.Or(f.Status().Dynamic.Error, "what is set at run time has not been read yet")
}

// The services that processes call, as /status and the metrics name them.
const (
	ServiceRedis    = "redis"
	ServiceKafka    = "kafka"
	ServiceProfiles = "profiles"
	ServiceHotKeys  = "hot_keys"
	ServiceLedger   = "ledger"
	ServiceDatabase = "database" // the ledger's
	ServiceBooks    = "books"    // of rankcache reconcile
)

// AnswerLasts is how long an answer of Redis or Kafka shows that they are there: they are asked every second.
const AnswerLasts = 10 * health.AskEvery
