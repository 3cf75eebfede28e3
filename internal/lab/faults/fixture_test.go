package faults

import (
	"fmt"
	"testing"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

// fixture is what all rows share: a broker, reached by the sidecars through a proxy
// and by everybody else directly. Its boards are told apart by name.
type fixture struct {
	broker *servers.Kafka
	proxy  *Proxy // of the sidecars
	direct string
}

// newFixture builds the command and starts the broker. A broker tells its clients where to go on, so it
// listens twice: under its own address and under the proxy's.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	build(t)
	own, proxied, controller := freeAddr(t), freeAddr(t), freeAddr(t)
	proxy, err := NewProxy(proxied)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	h := &fixture{proxy: proxy, direct: own}
	h.broker = testkit.StartKafka(t, servers.KafkaOptions{Props: map[string]string{
		"listeners":                      fmt.Sprintf("PLAINTEXT://%s,PROXIED://%s,CONTROLLER://%s", own, proxied, controller),
		"advertised.listeners":           fmt.Sprintf("PLAINTEXT://%s,PROXIED://%s", own, proxy.Addr()),
		"listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT",
		"controller.quorum.voters":       "1@" + controller,
		// A killed broker's place is free again soon.
		"broker.session.timeout.ms":       "2000",
		"broker.heartbeat.interval.ms":    "500",
		"message.max.bytes":               "20000000",
		"log.retention.check.interval.ms": "1000",
	}})
	return h
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
