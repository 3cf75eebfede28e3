package writer

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

// Where positions are unknown one order life is read again. A writer that has seen the last rewind end publishes none of the repeats; one
// that has just started does not know whether another one has died between applying and publishing them, so it publishes each once more.
func TestUnknownPosition(t *testing.T) {
	t.Parallel()
	n := testkit.Sized(5_000, 1_000_000)
	if testkit.Race {
		n = 2_000
	}
	d := newDurable(t, testkit.StartRedis(t, servers.RedisOptions{}), testkit.Kfake(t).Addr())
	d.topics.conf.CommandPartitions = 1
	for d.posts < n {
		commands := make([]string, min(10_000, n-d.posts))
		for i := range commands {
			commands[i] = d.gift("gift", d.posts+i)
		}
		d.produce(t, commands...)
		d.posts += len(commands)
	}
	stop := d.run(t)
	d.awaitRead(t, n, "")
	before, life := d.topicEnd(t), d.positions(t).Life

	begun := time.Now()
	must(t, d.client.Del(t.Context(), d.hash()).Err())
	d.awaitRead(t, n, life)
	again, life := d.topicEnd(t), d.positions(t).Life
	t.Logf("a writer that goes on: %d commands read again in %.1f s, %d of %d updates published again", n, time.Since(begun).Seconds(), again-before, before)
	if again-before > before+before/100 {
		t.Errorf("%d updates of %d are published again, want each once at most", again-before, before)
	}

	stop()
	must(t, d.client.Del(t.Context(), d.hash()).Err())
	opts := d.opts
	opts.Redis = d.at.client(t)
	next, err := New(opts)
	must(t, err)
	d.fixture = &fixture{next, opts.Redis.(*redis.Client), d.kafka, d.board, d.fixture.at}
	begun = time.Now()
	d.run(t)
	d.awaitRead(t, n, life)
	late := d.topicEnd(t)
	t.Logf("a writer that has just started: %d commands read again in %.1f s, %d updates published again", n, time.Since(begun).Seconds(), late-again)
	if late-again > before+before/100 {
		t.Errorf("%d updates are published again, want each once at most", late-again)
	}
}

// awaitRead waits until there is another hash than that of a life, and Redis has n commands of partition 0, and is healed.
func (d *durableFixture) awaitRead(t *testing.T, n int, life string) {
	t.Helper()
	testkit.Eventually(t, 20*testTimeout, func() error {
		h := d.positions(t)
		if h.Life == life || h.Of[0].Next != int64(n) || h.Of[0].Healed == "-" {
			return fmt.Errorf("positions %+v, want %d", h, n)
		}
		if st := d.rewinds.status(t.Context()); st == nil || st.State != "whole" {
			return errors.New("not whole")
		}
		return nil
	})
}

// topicEnd returns the number of the board's updates.
func (d *durableFixture) topicEnd(t *testing.T) int64 {
	t.Helper()
	n, err := testkit.Lag(t.Context(), testkit.KafkaClient(t, d.kafka), "nobody", d.opts.Tiers.File().Log(d.opts.Names, d.board).Topic)
	must(t, err)
	return n
}
