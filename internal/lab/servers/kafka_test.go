package servers_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

func sscanPort(addr string, port *int) (int, error) {
	_, p, err := net.SplitHostPort(addr)
	if err != nil {
		return 0, err
	}
	return fmt.Sscan(p, port)
}

// One broker goes through everything that fault tests do to it: each start costs seconds.
func TestKafkaKeepsItsData(t *testing.T) {
	testkit.NoLeaks(t)
	k := testkit.StartKafka(t, servers.KafkaOptions{Props: map[string]string{"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "500"}})
	topic := testkit.Name(t)
	testkit.CreateTopic(t, k.Addr(), topic, 1, nil)
	testkit.Produce(t, k.Addr(), &kgo.Record{Topic: topic, Value: []byte("1")})

	timed(t, "Restart", func() error { return k.Restart(t.Context()) })
	testkit.Produce(t, k.Addr(), &kgo.Record{Topic: topic, Value: []byte("2")})
	testkit.Records(t, k.Addr(), topic, 2)

	timed(t, "Kill", k.Kill)
	timed(t, "Restart after Kill", func() error { return k.Restart(t.Context()) })
	testkit.Produce(t, k.Addr(), &kgo.Record{Topic: topic, Value: []byte("3")})
	testkit.Records(t, k.Addr(), topic, 3)

	pauseAndResume(t, k, topic)
	timed(t, "Stop", k.Stop)
}

func pauseAndResume(t *testing.T, k *servers.Kafka, topic string) {
	if err := k.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := testkit.KafkaClient(t, k.Addr(), kgo.RequestTimeoutOverhead(500*time.Millisecond)).Ping(t.Context()); err == nil {
		t.Error("a paused broker answered")
	}
	if err := k.Resume(); err != nil {
		t.Fatal(err)
	}
	testkit.Records(t, k.Addr(), topic, 3)
}

func timed(t *testing.T, what string, do func() error) {
	t.Helper()
	start := time.Now()
	if err := do(); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	t.Logf("%s took %v", what, time.Since(start).Round(time.Millisecond))
}

func TestKafkaThatCannotStartShowsWhy(t *testing.T) {
	testkit.RealKafka(t) // skips where there is none
	_, err := servers.StartKafka(t.Context(), servers.KafkaOptions{Props: map[string]string{"num.partitions": "none"}})
	if err == nil || !strings.Contains(err.Error(), "num.partitions") {
		t.Errorf("got %v, want the broker's own words", err)
	}
}

func TestKafkaStartEndsWithItsContext(t *testing.T) {
	testkit.RealKafka(t)
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	k, err := servers.StartKafka(ctx, servers.KafkaOptions{})
	if err == nil {
		k.Close()
		t.Fatal("a broker started in a second and a half: shorten the time-out of this test")
	}
}

func TestKafkaMissing(t *testing.T) {
	t.Setenv(servers.EnvKafkaLibs, t.TempDir())
	_, err := servers.StartKafka(t.Context(), servers.KafkaOptions{})
	if !errors.Is(err, servers.ErrNotInstalled) || !strings.Contains(err.Error(), "scripts/setup.sh") {
		t.Errorf("got %v, want ErrNotInstalled and what to do", err)
	}
}

func TestKafkaLibsAreFoundFromAFolderBelowTheModule(t *testing.T) {
	t.Setenv(servers.EnvKafkaLibs, "")
	dir, err := servers.KafkaLibs()
	if errors.Is(err, servers.ErrNotInstalled) && strings.Contains(err.Error(), ".cache/kafka/libs") {
		t.Skip(err)
	}
	if err != nil || !strings.HasSuffix(dir, "/.cache/kafka/libs") {
		t.Errorf("got %q, %v", dir, err)
	}
}

func TestKfakeMakesFaults(t *testing.T) {
	testkit.NoLeaks(t)
	k := testkit.Kfake(t, kfake.SeedTopics(1, "updates"))
	testkit.Produce(t, k.Addr(), &kgo.Record{Topic: "updates", Value: []byte("1")})
	testkit.Records(t, k.Addr(), "updates", 1)
	if n := len(k.Cluster.ListenAddrs()); n != 1 {
		t.Errorf("%d brokers, want 1", n)
	}
}
