package faults

import (
	"fmt"
	"sync"
	"testing"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

// fixture is what all rows share: a broker, reached by the sidecars through a proxy
// and by the other processes directly. Its boards are distinguished by name.
type fixture struct {
	broker *servers.Kafka
	proxy  *Proxy // of the sidecars
	direct string
	seeds  string // the brokers in the sidecars' configuration
	late   *Proxy // of a writer whose updates come late

	// clusters are started by the first row that needs them.
	redisCluster func() *servers.RedisCluster
	kafkaCluster func() *servers.KafkaCluster
}

// newFixture builds the command and starts the broker. A broker tells its clients where to go on, so it
// listens under its own address and under each proxy's.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	build(t)
	own, proxied, proxiedLate, controller := freeAddr(t), freeAddr(t), freeAddr(t), freeAddr(t)
	proxy, late := newProxy(t, proxied), newProxy(t, proxiedLate)
	h := &fixture{proxy: proxy, direct: own, seeds: proxy.Addr(), late: late,
		redisCluster: sync.OnceValue(func() *servers.RedisCluster { return testkit.StartRedisCluster(t, servers.ClusterOptions{}) }),
		kafkaCluster: sync.OnceValue(func() *servers.KafkaCluster { return testkit.StartKafkaCluster(t, 3, nil) }),
	}
	h.broker = testkit.StartKafka(t, servers.KafkaOptions{Props: map[string]string{
		"listeners":                      fmt.Sprintf("PLAINTEXT://%s,PROXIED://%s,LATE://%s,CONTROLLER://%s", own, proxied, proxiedLate, controller),
		"advertised.listeners":           fmt.Sprintf("PLAINTEXT://%s,PROXIED://%s,LATE://%s", own, proxy.Addr(), late.Addr()),
		"listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT,LATE:PLAINTEXT",
		"controller.quorum.voters":       "1@" + controller,
		// A killed broker's place is free again soon.
		"broker.session.timeout.ms":       "2000",
		"broker.heartbeat.interval.ms":    "500",
		"message.max.bytes":               "20000000",
		"log.retention.check.interval.ms": "1000",
		"log.cleaner.backoff.ms":          "200",
	}})
	return h
}

func newProxy(t testing.TB, to string) *Proxy {
	t.Helper()
	p, err := NewProxy(to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// freeAddr returns a loopback address that was free a moment ago.
func freeAddr(t testing.TB) string {
	t.Helper()
	addr, err := servers.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}
