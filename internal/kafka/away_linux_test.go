package kafka

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"rankcache/internal/testkit"
)

// TestBrokerThatIsAwayCostsNothing: after some requests to a broker that was gone, librdkafka dialed it thousands of times a
// second until it was back. Without the setting the test fails in one of three runs.
func TestBrokerThatIsAwayCostsNothing(t *testing.T) {
	testkit.FullOnly(t, "it takes ten seconds")
	k := testkit.Kfake(t)
	testkit.CreateTopic(t, k.Addr(), "t", 1, nil)
	c, err := NewConsumer(nil, Member("g"), Settings{"bootstrap.servers": k.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Subscribe("t", nil); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 20*time.Second, func() error {
		_, err := c.Record(100 * time.Millisecond)
		if mine, _ := c.Assignment(); err == nil && len(mine) == 0 {
			err = errors.New("no partition is assigned")
		}
		return err
	})
	k.Close()
	for _, ask := range []func(context.Context) error{
		func(ctx context.Context) error { _, err := c.Partitions(ctx, "t"); return err },
		func(ctx context.Context) error { _, err := c.GroupOffsets(ctx, "g", "t", 1); return err },
		func(ctx context.Context) error { _, err := c.Offsets(ctx, "t", 1, End); return err },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		if err := ask(ctx); err == nil {
			t.Error("a broker that is gone answers")
		}
		cancel()
	}
	was := cpuTime(t)
	time.Sleep(2 * time.Second)
	if used := cpuTime(t) - was; used > 300*time.Millisecond {
		t.Errorf("%v of CPU in two seconds without a broker", used)
	}
}

// cpuTime returns what this process has used.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
