package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/doctor"
	"rankcache/internal/health"
	"rankcache/internal/roomsync"
	"rankcache/origin"
	"rankcache/sidecar/adminapi"
)

// redisNeed returns Redis as a role needs it: a master that lets the user in and do what the role
// does. total is the value of --total; more, if it is not nil, is asked with it.
func (o *commonOptions) redisNeed(client redis.UniversalClient, role, total string, more func(context.Context) error) func(context.Context) error {
	rights := doctor.Redis{Client: client, Names: o.names, Total: total}
	return func(ctx context.Context) error {
		_, err := origin.CheckMaster(ctx, client)
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

// pingRedis reports whether Redis serves, also to a user who may not PING.
func pingRedis(client redis.UniversalClient) func(context.Context) error {
	return func(ctx context.Context) error {
		err := client.Ping(ctx).Err()
		if redis.HasErrorPrefix(err, "NOPERM") {
			return nil
		}
		return err
	}
}

// kafkaNeed returns Kafka with what a process does there.
func (o *commonOptions) kafkaNeed(use doctor.KafkaUse) *health.Need {
	return health.NewNeed(time.Minute).Require(func(ctx context.Context) error {
		keys := maps.Clone(o.kafkaKeys)
		for _, setting := range []string{saslUsername, saslPassword} { // which may have changed
			if path := o.kafkaPaths[setting]; path != "" {
				secret, err := readSecret(path)
				if err != nil {
					return err
				}
				keys[setting] = secret
			}
		}
		return doctor.TryKafka(ctx, o.kafka, keys, use)
	}, nil)
}

// probeTopic stands for the topics of boards: nothing makes it.
func (o *commonOptions) probeTopic() string {
	return o.names.Topic(rankcache.BoardID("rankcache-probe"))
}

// readiness returns a readiness that waits for services, and for what is set at run time unless
// follower is nil.
func readiness(needs health.Needs, follower *roomsync.Follower) *adminapi.Readiness {
	return adminapi.NewReadiness(func() (bool, string) {
		if met, why := needs.Met(); !met || follower == nil || follower.SharedRead() {
			return met, why
		}
		return false, notReadYet(follower)
	}, nil)
}

// wrongClock names the fault of a clock as the writer's answers do.
func wrongClock(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("wrong_clock: %w", err)
}

// notReadYet tells why a follower has not read what is set at run time.
func notReadYet(f *roomsync.Follower) string {
	return "redis: " + cmp.Or(f.Status().Dynamic.Error, "what is set at run time has not been read yet")
}
