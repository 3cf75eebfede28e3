package testkit

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"rankcache/internal/lab/servers"
)

var sharedRedisCluster = sharedServer{env: EnvRedisCluster, start: func() (handle, error) {
	c, err := servers.StartRedisCluster(context.Background(), servers.ClusterOptions{})
	if err != nil {
		return handle{}, err
	}
	return handle{addr: strings.Join(c.Addrs(), ","), output: c.Output, close: c.Close}, nil
}}

// RedisCluster returns the host:port of the nodes of the Redis Cluster that the tests of a binary share: three masters
// with a replica each. Tests stop none of them, move no slot and use keys made with Name.
func RedisCluster(t testing.TB) []string {
	t.Helper()
	h, err := sharedRedisCluster.get(t)
	orSkip(t, err)
	return strings.Split(h.addr, ",")
}

// StartRedisCluster starts a Redis Cluster for this test alone, some four seconds, and ends it with the test.
func StartRedisCluster(t testing.TB, o servers.ClusterOptions) *servers.RedisCluster {
	t.Helper()
	c, err := servers.StartRedisCluster(t.Context(), o)
	orSkip(t, err)
	endWith(t, "Redis Cluster", c)
	return c
}

// StartSentinel starts a master with replicas and sentinels for this test alone, some five seconds, and ends them with
// the test.
func StartSentinel(t testing.TB, o servers.SentinelOptions) *servers.Sentinel {
	t.Helper()
	s, err := servers.StartSentinel(t.Context(), o)
	orSkip(t, err)
	endWith(t, "Redis with sentinels", s)
	return s
}

// StartKafkaCluster starts brokers for this test alone, ten to twenty seconds and 400 MB each, and ends them with the
// test.
func StartKafkaCluster(t testing.TB, brokers int, props map[string]string) *servers.KafkaCluster {
	t.Helper()
	c, err := servers.StartKafkaCluster(t.Context(), brokers, props)
	orSkip(t, err)
	endWith(t, fmt.Sprintf("%d brokers", brokers), c)
	return c
}
