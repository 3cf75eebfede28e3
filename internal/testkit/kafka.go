package testkit

import (
	"context"
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"rankcache/internal/lab/servers"
)

var sharedKafka = sharedServer{env: EnvKafka, start: startShared}

// startShared starts a broker, or kfake where Kafka is not installed.
func startShared() (handle, error) {
	k, err := servers.StartKafka(context.Background(), servers.KafkaOptions{})
	if err == nil {
		return handle{addr: k.Addr(), output: k.Output, close: k.Close}, nil
	}
	if !errors.Is(err, servers.ErrNotInstalled) || RequireReal() {
		return handle{}, err
	}
	fake, startErr := servers.StartKfake()
	if startErr != nil {
		return handle{}, startErr
	}
	return handle{addr: fake.Addr(), fake: true, why: err, close: func() error { fake.Close(); return nil }}, nil
}

// Kafka returns the host:port of the broker that all tests share: a real one, or kfake where Kafka is not installed, which it says. The broker makes no
// topic by itself; use names made with Name.
func Kafka(t testing.TB) string {
	t.Helper()
	return kafka(t, &sharedKafka)
}

func kafka(t testing.TB, s *sharedServer) string {
	t.Helper()
	h, err := s.get(t)
	if err != nil {
		t.Fatal(err)
	}
	if h.fake {
		announce("KAFKA TESTS RUN ON KFAKE, NOT ON KAFKA: " + h.why.Error())
		t.Log("this test runs on kfake, not on Kafka:", h.why)
	}
	return h.addr
}

// RealKafka is Kafka for tests of what kfake does not do, such as compaction. It skips where Kafka is not installed, which it says.
func RealKafka(t testing.TB) string {
	t.Helper()
	return realKafka(t, &sharedKafka)
}

func realKafka(t testing.TB, s *sharedServer) string {
	t.Helper()
	h, err := s.get(t)
	if h.fake {
		err = h.why
	}
	orSkip(t, err)
	return h.addr
}

// StartKafka starts a broker for this test alone, three to six seconds and 400 MB, and ends it with the test.
func StartKafka(t testing.TB, o servers.KafkaOptions) *servers.Kafka {
	t.Helper()
	k, err := servers.StartKafka(t.Context(), o)
	orSkip(t, err)
	endWith(t, "kafka", k.Server)
	return k
}

// Kfake starts a fake cluster of one broker for this test alone, in no time, and ends it with the test. Its embedded Cluster makes faults.
func Kfake(t testing.TB, opts ...kfake.Opt) *servers.Kfake {
	t.Helper()
	k, err := servers.StartKfake(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	return k
}
