package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/alicebob/miniredis/v2"
	"github.com/twmb/franz-go/pkg/kfake"

	"rankcache/internal/lab/servers"
)

// demoServers are the Redis and the Kafka of one demo, and how they are called
// on the screen.
type demoServers struct {
	redisURL, redisWhat string
	kafka, kafkaWhat    string
	closers             []func() error
}

// startDemoServers takes the servers that the caller names and starts the others:
// a redis-server if there is one, else miniredis, and kfake.
func startDemoServers(ctx context.Context, redisURL, kafka string) (*demoServers, error) {
	s := &demoServers{redisURL: redisURL, redisWhat: "the Redis given by --redis", kafka: kafka, kafkaWhat: "the Kafka given by --kafka"}
	if redisURL == "" {
		if err := s.startRedis(ctx); err != nil {
			return nil, err
		}
	}
	if kafka == "" {
		fake, err := servers.StartKfake(kfake.NumBrokers(1))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("embedded Kafka: %w", err), s.close())
		}
		s.closers = append(s.closers, func() error { fake.Close(); return nil })
		s.kafka, s.kafkaWhat = fake.Addr(), "kfake, embedded (the real protocol, in memory)"
	}
	return s, nil
}

func (s *demoServers) startRedis(ctx context.Context) error {
	redis, err := servers.StartRedis(ctx, servers.RedisOptions{})
	if err == nil {
		s.closers = append(s.closers, redis.Close)
		s.redisURL, s.redisWhat = "redis://"+redis.Addr(), "redis-server found on this machine"
		return nil
	}
	if !errors.Is(err, servers.ErrNotInstalled) {
		return fmt.Errorf("start redis-server: %w", err)
	}
	mini := miniredis.NewMiniRedis()
	if err := mini.Start(); err != nil {
		return fmt.Errorf("embedded Redis: %w", err)
	}
	s.closers = append(s.closers, func() error { mini.Close(); return nil })
	s.redisURL, s.redisWhat = "redis://"+mini.Addr(), "miniredis, embedded (no redis-server found; far slower than one)"
	return nil
}

// slowRedis reports that the Redis is miniredis, which sorts on every ranged read.
func (s *demoServers) slowRedis() bool { return strings.HasPrefix(s.redisWhat, "miniredis") }

func (s *demoServers) close() error {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i]())
	}
	return errors.Join(errs...)
}
