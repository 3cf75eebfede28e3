package app

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/origin"
	"rankcache/rooms"
	"rankcache/sidecar"
	"rankcache/wire"
)

// stampede is the read side of a sidecar over a Redis that is being held.
type stampede struct {
	t        *testing.T
	server   *servers.Redis
	client   *redis.Client
	registry *prometheus.Registry
	reader   *sidecar.Reader
}

func newStampede(t *testing.T) *stampede {
	s := &stampede{t: t, server: testkit.StartRedis(t, servers.RedisOptions{}), registry: prometheus.NewRegistry()}
	s.client = redis.NewClient(&redis.Options{Addr: s.server.Addr(), Protocol: 2, DisableIdentity: true, ReadTimeout: time.Minute, PoolSize: 64})
	t.Cleanup(func() { s.client.Close() })
	if err := s.client.ZAdd(t.Context(), "1_2_3", redis.Z{Member: "a", Score: 2}, redis.Z{Member: "b", Score: 1}).Err(); err != nil {
		t.Fatal(err)
	}
	from := origin.New(s.client, wire.DefaultNames(), origin.WithTimeout(time.Minute))
	var err error
	s.reader, err = sidecar.NewReader(sidecar.Config{Tiers: func() *rooms.Tiers { return nil }, Origin: from,
		Limits: sidecar.OriginLimits{Timeout: time.Minute}}, s.registry)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.top(); err != nil { // loads the script
		t.Fatal(err)
	}
	return s
}

func (s *stampede) top() (rankcache.Answer, error) {
	a := rankcache.One(context.Background(), s.reader, rankcache.Query{Board: "1_2_3", Limit: 50})
	return a, a.Err
}

// pages is how many times Redis has read rows of a board, for us or a script of ours.
func (s *stampede) pages() int {
	s.t.Helper()
	info, err := s.client.Info(s.t.Context(), "commandstats").Result()
	if err != nil {
		s.t.Fatal(err)
	}
	n := 0
	for _, found := range regexp.MustCompile(`cmdstat_z(?:rev)?range:calls=(\d+)`).FindAllStringSubmatch(info, -1) {
		calls, _ := strconv.Atoi(found[1])
		n += calls
	}
	return n
}

// awaitReaders waits until n callers wait for Redis.
func (s *stampede) awaitReaders(n int) {
	s.t.Helper()
	testkit.Eventually(s.t, time.Minute, func() error {
		families, err := s.registry.Gather()
		if err != nil {
			return err
		}
		for _, f := range families {
			if f.GetName() == "rankcache_origin_readers_waiting" {
				if got := int(f.GetMetric()[0].GetGauge().GetValue()); got != n {
					return fmt.Errorf("%d readers wait, want %d", got, n)
				}
				return nil
			}
		}
		return errors.New("no such metric")
	})
}

// 5,000 requests for one small board at once cost Redis one call, and the process
// one goroutine each while they wait, no more, and none afterwards.
func TestStampedeOnARealRedis(t *testing.T) {
	const readers, few = 5000, 50
	s := newStampede(t)
	before, idle := s.pages(), runtime.NumGoroutine()
	if err := s.server.Pause(); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	failed := make(chan error, readers)
	for range readers {
		group.Go(func() {
			if a, err := s.top(); err != nil || len(a.Entries) != 2 {
				failed <- fmt.Errorf("%d rows, %w", len(a.Entries), err)
			}
		})
	}
	s.awaitReaders(readers)
	most := runtime.NumGoroutine()
	if err := s.server.Resume(); err != nil {
		t.Fatal(err)
	}
	group.Wait()
	close(failed)
	for err := range failed {
		t.Fatal(err)
	}
	if got := s.pages() - before; got != 1 {
		t.Errorf("%d calls to Redis, want 1", got)
	}
	if most > idle+readers+few {
		t.Errorf("%d goroutines for %d readers, %d before", most, readers, idle)
	}
	testkit.Eventually(t, 10*time.Second, func() error {
		if n := runtime.NumGoroutine(); n > idle+few {
			return fmt.Errorf("%d goroutines are left, %d before", n, idle)
		}
		return nil
	})
}
