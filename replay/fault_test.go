package replay_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

func TestKafkaIsAwayAtTheStart(t *testing.T) {
	t.Parallel()
	fake := testkit.Kfake(t)
	_, port, _ := strings.Cut(fake.Addr(), ":")
	var number int
	fmt.Sscan(port, &number)
	e := newEnv(t, fake.Addr())
	fake.Close()
	b := e.newBoard(0, nil)
	b.parts = 1
	us := b.gifts(20, 10)
	s := e.start(ids(b), deadline(2*time.Second))
	testkit.Eventually(t, timeout, func() error {
		if _, why := s.Ready(); !strings.Contains(why, "Kafka has not answered") {
			return errors.New(why)
		}
		return nil
	})
	s.waitReady()
	testkit.Kfake(t, kfake.Ports(number))
	testkit.CreateTopic(t, e.kafka, b.topic(), 1, nil)
	b.produce(us...)
	s.waitOpen(b.id)
}

func TestRedisIsAwayAtTheStart(t *testing.T) {
	t.Parallel()
	cache := testkit.StartRedis(t, servers.RedisOptions{})
	e := newEnvOn(t, testkit.Kafka(t), cache.Addr())
	b := e.newBoard(1, nil)
	b.produce(b.gifts(20, 10)...)
	e.check(cache.Pause())
	s := e.start(ids(b), deadline(3*time.Second))
	testkit.Eventually(t, timeout, func() error {
		if _, why := s.Ready(); !strings.Contains(why, "Redis has not answered") {
			return errors.New(why)
		}
		return nil
	})
	s.waitReady()
	e.check(cache.Resume())
	s.waitOpen(b.id)
}

// An open board that misses an update, or that Redis has left behind, is closed
// and filled from Redis, and no other.
func TestOpenBoardsAreWatched(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kafka(t))
	var all []*board
	for range 3 {
		b := e.newBoard(1, nil)
		b.produce(b.gifts(50, 20)...)
		all = append(all, b)
	}
	hole, ahead, fine := all[0], all[1], all[2]
	s := e.start(ids(all...))
	s.waitReady()
	for _, b := range all {
		s.waitCurrent(b.id)
	}
	hole.produce(hole.gifts(10, 20)[1:]...)
	lost := ahead.gifts(10, 20)
	ahead.produce(lost...)
	s.waitOpen(ahead.id)
	ahead.loseWrites()
	for _, b := range all {
		s.waitOpen(b.id)
		s.waitCurrent(b.id)
	}
	ahead.produce(ahead.gifts(10, 20)...)
	s.waitOpen(ahead.id)
	want := []string{"close " + string(hole.id), "close " + string(ahead.id)}
	for _, event := range s.boards.noted() {
		if strings.HasPrefix(event, "close") && !slices.Contains(want, event) {
			t.Errorf("%s: want the board %s left alone", event, fine.id)
		}
	}
	if n := s.counter("rankcache_replay_refills_total"); n != 2 {
		t.Errorf("%v boards filled again, want 2", n)
	}
}

// loseWrites is a failover to a Redis that has not seen the last ten orders.
func (b *board) loseWrites() {
	b.t.Helper()
	b.seq -= 10
	kept, err := b.redis.ZRangeWithScores(context.Background(), b.names.BoardKey(b.id), 3, -1).Result()
	b.check(err)
	pipe := b.redis.TxPipeline()
	pipe.Set(context.Background(), b.names.MetaKey(b.id), testkit.Meta(b.state().Run, b.seq, kept), 0)
	pipe.ZRemRangeByRank(context.Background(), b.names.BoardKey(b.id), 0, 2)
	_, err = pipe.Exec(context.Background())
	b.check(err)
}
