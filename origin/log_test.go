package origin

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// logOf returns the log of a Redis of its own.
func logOf(t *testing.T) (*Log, *redis.Client, *servers.Redis) {
	t.Helper()
	server := testkit.StartRedis(t, servers.RedisOptions{})
	client, err := Dial(Options{URL: "redis://" + server.Addr(), Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	log, err := New(client, wire.DefaultNames(), WithTimeout(time.Minute)).Log()
	if err != nil {
		t.Fatal(err)
	}
	return log, client.(*redis.Client), server
}

func TestLogRead(t *testing.T) {
	t.Parallel()
	log, client, server := logOf(t)
	ends := func(wantFirst, wantEnd int64) {
		t.Helper()
		if first, end, err := log.Ends(t.Context()); err != nil || first != wantFirst || end != wantEnd {
			t.Errorf("it goes from %d to %d, %v; want %d to %d", first, end, err, wantFirst, wantEnd)
		}
	}
	read := func(ctx context.Context, after int64, most int, want ...wire.LogEntry) {
		t.Helper()
		got, err := log.Read(ctx, after, most, 10*time.Millisecond)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
	add := func(id string, values ...string) {
		t.Helper()
		if err := client.XAdd(t.Context(), &redis.XAddArgs{Stream: wire.LogKey, ID: id, Values: values}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	const at = 5 << 20
	ends(1, 1)
	read(t.Context(), 0, 9)
	add("5-0", "b", "one", "c", "\x01\x00")
	add("5-1", "other", "x")
	add("6-0", "c", "y", "b", "two")
	one, other, two := wire.LogEntry{Place: at, Board: "one", Changes: "\x01\x00"}, wire.LogEntry{Place: at + 1}, wire.LogEntry{Place: 6 << 20, Board: "two", Changes: "y"}
	read(t.Context(), 0, 9, one, other, two)
	read(t.Context(), 0, 2, one, other)
	read(Background(t.Context()), at, 9, other, two)
	read(t.Context(), 6<<20, 9)
	ends(at, 6<<20+1)
	if err := client.XTrimMaxLen(t.Context(), wire.LogKey, 0).Err(); err != nil {
		t.Fatal(err)
	}
	ends(6<<20+1, 6<<20+1)

	came := make(chan []wire.LogEntry)
	go func() {
		got, _ := log.Read(t.Context(), 6<<20, 9, time.Minute)
		came <- got
	}()
	testkit.Eventually(t, time.Minute, func() error {
		return client.XAdd(t.Context(), &redis.XAddArgs{Stream: wire.LogKey, ID: "7-*", Values: []string{"b", "c"}}).Err()
	})
	if got := <-came; len(got) == 0 {
		t.Error("nothing came to who waited")
	}
	go func() {
		got, err := log.Read(t.Context(), 8<<20, 9, time.Minute)
		if err == nil {
			t.Error("a server that is gone has answered:", got)
		}
		came <- nil
	}()
	testkit.Eventually(t, time.Minute, func() error { // it waits in Redis
		if info := client.Info(t.Context(), "clients").Val(); !strings.Contains(info, "blocked_clients:1") {
			return errors.New("nobody waits")
		}
		return nil
	})
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	<-came
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	read(t.Context(), 0, 9)
	ends(1, 1)
}

// What can't be a log is told with what to check.
func TestLogRefuses(t *testing.T) {
	t.Parallel()
	log, client, _ := logOf(t)
	want := func(text string) {
		t.Helper()
		_, err := log.Read(t.Context(), 0, 9, time.Millisecond)
		_, _, errOfEnds := log.Ends(t.Context())
		for _, err := range []error{err, errOfEnds} {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%v, want %q", err, text)
			}
		}
	}
	if err := client.XAdd(t.Context(), &redis.XAddArgs{Stream: wire.LogKey, ID: "5-1048576", Values: []string{"b", "c"}}).Err(); err != nil {
		t.Fatal(err)
	}
	want("the clock of Redis")
	if err := client.Set(t.Context(), wire.LogKey, "text", 0).Err(); err != nil {
		t.Fatal(err)
	}
	want("rankcache:log is no stream")
	cluster, err := Dial(Options{URL: "redis://127.0.0.1:1", Mode: ModeCluster})
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	if _, err := New(cluster, wire.DefaultNames()).Log(); err == nil || !strings.Contains(err.Error(), "or Kafka") {
		t.Error("of a cluster:", err)
	}
}
