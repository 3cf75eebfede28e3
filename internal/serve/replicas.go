package serve

import (
	"github.com/redis/go-redis/v9"

	"rankcache/internal/tracing"
	"rankcache/origin"
)

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
