package replay_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

// How far a board is behind Redis is not known while Redis does not answer.
func TestBehindIsUnknownWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	cache := testkit.StartRedis(t, servers.RedisOptions{})
	e := newEnvOn(t, testkit.Kafka(t), cache.Addr())
	b := e.newBoard(1, nil)
	b.produce(b.gifts(20, 10)...)
	s := e.start(ids(b), totalsEvery(often))
	s.waitOpen(b.id)
	level := func() error {
		if now := s.status(b.id); now.Have != 20 || now.Want != 20 || now.Reason != "equal to Redis" || !s.has("rankcache_replay_lag_updates") {
			return fmt.Errorf("%+v, want 20 of 20 updates, equal to Redis", now)
		}
		return nil
	}
	testkit.Eventually(t, timeout, level)
	e.check(cache.Pause())
	testkit.Eventually(t, timeout, func() error {
		if now := s.status(b.id); now.Have != 20 || now.Want != 0 || strings.Contains(now.Reason, "equal") || s.has("rankcache_replay_lag_updates") {
			return fmt.Errorf("%+v, want 20 updates of an unknown number", now)
		}
		return nil
	})
	e.check(cache.Resume())
	testkit.Eventually(t, timeout, level)
}

// has reports whether a metric has any series.
func (s *sidecar) has(name string) bool {
	s.env.t.Helper()
	families, err := s.reg.Gather()
	s.env.check(err)
	for _, f := range families {
		if f.GetName() == name {
			return len(f.Metric) > 0
		}
	}
	return false
}

func TestKafkaCallsAreTold(t *testing.T) {
	t.Parallel()
	fake := testkit.Kfake(t)
	_, port, _ := strings.Cut(fake.Addr(), ":")
	var number int
	fmt.Sscan(port, &number)
	e := newEnv(t, fake.Addr())
	b := e.newBoard(1, nil)
	var mu sync.Mutex
	var answered, failed int
	var took time.Duration
	e.start(ids(b), func(s *setup) {
		s.KafkaAnswered = func(d time.Duration, err error) {
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed++
				return
			}
			answered, failed, took = answered+1, 0, d
		}
	})
	expect := func(what string, ok func() bool) {
		t.Helper()
		testkit.Eventually(t, timeout, func() error {
			mu.Lock()
			defer mu.Unlock()
			if !ok() {
				return errors.New(what)
			}
			return nil
		})
	}
	expect("no answer of Kafka is reported", func() bool { return answered > 1 && took > 0 && failed == 0 })
	fake.Close()
	expect("no failure is reported", func() bool { return failed > 3 })
	testkit.Kfake(t, kfake.Ports(number))
	mu.Lock()
	answered = 0
	mu.Unlock()
	expect("its return is not reported", func() bool { return answered > 1 })
}
