package faults

import (
	"fmt"
	"sync"
	"testing"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

// fixture is what rows share one after another: a broker, reached by the sidecars through a proxy
// and by the other processes directly. Its boards are distinguished by name.
type fixture struct {
	*clusters
	broker *servers.Kafka
	proxy  *Proxy // of the sidecars
	direct string
	seeds  string // the brokers in the sidecars' configuration
	late   *Proxy // of a writer whose updates come late
}

// fixtures are as many as rows run beside each other. Each is started by the first row that takes it, or by the next one where that failed.
type fixtures struct {
	free  chan *fixture
	start func(row *testing.T) *fixture
}

func newFixtures(t *testing.T, n int) *fixtures {
	shared := &clusters{all: t}
	f := &fixtures{free: make(chan *fixture, n), start: func(row *testing.T) *fixture { return newFixture(lasting{t, row}, shared) }}
	for range n {
		f.free <- nil
	}
	return f
}

// take waits for a fixture, which the test gives back at its end.
func (f *fixtures) take(t *testing.T) *fixture {
	h := <-f.free
	t.Cleanup(func() { f.free <- h })
	if h == nil {
		h = f.start(t)
	}
	return h
}

// lasting is the test of all rows to what a row starts for the next ones too, but the row is what fails or is skipped when
// that does not start: to end another test than one's own ends the process.
type lasting struct {
	*testing.T
	row *testing.T
}

// Fatal implements [testing.TB].
func (l lasting) Fatal(args ...any) { l.row.Helper(); l.row.Fatal(args...) }

// Skip implements [testing.TB].
func (l lasting) Skip(args ...any) { l.row.Helper(); l.row.Skip(args...) }

// clusters are started by the first row that needs them. A row that uses one holds the lock until its end.
type clusters struct {
	all *testing.T

	sync.Mutex
	redis *servers.RedisCluster
	kafka *servers.KafkaCluster
}

// redisCluster returns the cluster that rows share, to one that has called lockClusters.
func (w *env) redisCluster() *servers.RedisCluster {
	w.Helper()
	if c := w.clusters; c.redis == nil {
		c.redis = testkit.StartRedisCluster(lasting{c.all, w.T}, servers.ClusterOptions{})
	}
	return w.clusters.redis
}

// kafkaCluster returns the brokers that rows share, to one that has called lockClusters.
func (w *env) kafkaCluster() *servers.KafkaCluster {
	w.Helper()
	if c := w.clusters; c.kafka == nil {
		c.kafka = testkit.StartKafkaCluster(lasting{c.all, w.T}, 3, nil)
	}
	return w.clusters.kafka
}

// lockClusters has no other row use them until the end of this one.
func (w *env) lockClusters() {
	w.clusters.Lock()
	w.Cleanup(w.clusters.Unlock)
}

// newFixture starts the broker. A broker tells its clients where to go on, so it
// listens under its own address and under each proxy's.
func newFixture(t testing.TB, shared *clusters) *fixture {
	t.Helper()
	own, proxied, proxiedLate, controller := freeAddr(t), freeAddr(t), freeAddr(t), freeAddr(t)
	proxy, late := newProxy(t, proxied), newProxy(t, proxiedLate)
	h := &fixture{clusters: shared, proxy: proxy, direct: own, seeds: proxy.Addr(), late: late}
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
