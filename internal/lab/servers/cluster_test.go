package servers_test

import (
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

// One cluster goes through everything that tests do to it.
func TestRedisClusterFailsOverAndMovesSlots(t *testing.T) {
	testkit.NoLeaks(t)
	c := testkit.StartRedisCluster(t, servers.ClusterOptions{})
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	first, err := c.Master(ctx, "k")
	must(err)
	must(first.Do(ctx, "set", "k", "v"))
	must(first.Replicated(ctx))

	to, err := c.OtherMaster(ctx, "k")
	must(err)
	moved, err := c.MoveSlot(ctx, "k", to, 10)
	must(err)
	if now, err := c.Master(ctx, "k"); now != to || moved.Calls != 1 {
		t.Fatalf("moved in %d calls of MIGRATE, now at %v (%v), want %s", moved.Calls, now, err, to.Addr())
	}
	must(to.Replicated(ctx))
	must(to.Kill())
	testkit.Eventually(t, 30*time.Second, func() error {
		now, err := c.Master(ctx, "k")
		if err == nil && now == to {
			err = errors.New("the dead master serves")
		}
		return err
	})
	must(to.Restart(ctx)) // as a replica
	must(c.WaitWhole(ctx))
}

func TestSentinelFailsOverWithoutWhatReplicasWereCutFrom(t *testing.T) {
	testkit.NoLeaks(t)
	s := testkit.StartSentinel(t, servers.SentinelOptions{})
	ctx := t.Context()
	old, err := s.Master(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(old.Do(ctx, "set", "kept", 1), old.Replicated(ctx), s.CutReplicas(ctx, old), old.Do(ctx, "set", "lost", 1), old.Kill()); err != nil {
		t.Fatal(err)
	}
	var now *servers.Redis
	testkit.Eventually(t, 30*time.Second, func() error { now, err = s.Master(ctx); return err })
	if now == old {
		t.Fatal("the dead master is called the master")
	}
	c := now.Client()
	defer c.Close()
	if n := c.Exists(ctx, "kept", "lost").Val(); n != 1 || c.Exists(ctx, "lost").Val() != 0 {
		t.Errorf("%d of the keys are there, want only the one that was replicated", n)
	}
}

func TestKafkaClusterLosesABroker(t *testing.T) {
	testkit.FullOnly(t, "three brokers take twenty seconds")
	testkit.NoLeaks(t)
	c := testkit.StartKafkaCluster(t, 3, nil)
	topic := testkit.Name(t)
	testkit.CreateReplicated(t, c.Addrs()[0], topic, 1, 3, nil)
	testkit.Produce(t, c.Addrs()[0], &kgo.Record{Topic: topic, Value: []byte("1")})
	leader, err := c.Leader(t.Context(), topic, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := leader.Pause(); err != nil {
		t.Fatal(err)
	}
	other := c.Brokers[0]
	if other == leader {
		other = c.Brokers[1]
	}
	testkit.Eventually(t, 30*time.Second, func() error {
		now, err := c.Leader(t.Context(), topic, 0)
		if err == nil && now == leader {
			err = errors.New("the paused broker still leads")
		}
		return err
	})
	testkit.Produce(t, other.Addr(), &kgo.Record{Topic: topic, Value: []byte("2")})
	testkit.Records(t, other.Addr(), topic, 2)
}
