package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache"
	"rankcache/internal/lab/servers"
	"rankcache/internal/masters"
	"rankcache/internal/testkit"
	"rankcache/wire"
	"rankcache/writer"
)

const testTimeout = time.Minute

func client(t *testing.T, addr string) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, DisableIdentity: true, DialerRetries: 1})
	t.Cleanup(func() { c.Close() })
	return c
}

// write runs a writer until stop is called.
func (f *fixture) write(t *testing.T) (stop func()) {
	t.Helper()
	w, err := writer.New(writer.Options{Redis: f.opts.Redis, Names: f.opts.Names, Tiers: f.tiers, Kafka: f.opts.Kafka, Group: f.opts.Group,
		Topics: writer.Topics{CommandPartitions: 2}, Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	var stopped atomic.Bool
	stop = func() {
		if cancel(); stopped.CompareAndSwap(false, true) {
			must(t, <-ended)
		}
	}
	t.Cleanup(stop)
	return stop
}

// produce appends increments by 1 of the board of today.
func (f *fixture) produce(t *testing.T, from, to int) {
	t.Helper()
	for n := from; n < to; n++ {
		member := fmt.Sprint("m", n%3)
		testkit.Produce(t, f.broker, &kgo.Record{Topic: f.opts.Names.Commands, Key: []byte(member),
			Value: fmt.Appendf(nil, `{"order":"o%d","class":"lasting","dims":{},"member":%q,"op":"incr","delta":1,"at":%d}`, n, member, time.Now().UnixMilli())})
	}
}

// awaitApplied waits until all masters together tell that they have so many records of the log.
func (f *fixture) awaitApplied(t *testing.T, on redis.UniversalClient, records int64) {
	t.Helper()
	testkit.Eventually(t, testTimeout, func() error {
		var found atomic.Int64
		err := masters.Each(t.Context(), on, func(ctx context.Context, tag string, node redis.Cmdable) error {
			fields, err := node.HGetAll(ctx, f.opts.Names.AppliedKey(tag)).Result()
			for _, text := range fields {
				p, _ := wire.ParsePosition(text)
				found.Add(p.Next)
			}
			return err
		})
		if n := found.Load(); err == nil && n != records {
			err = fmt.Errorf("%d records, want %d", n, records)
		}
		return err
	})
}

// awaitClosed looks until the board is closed, with so many increments.
func (f *fixture) awaitClosed(t *testing.T, b rankcache.BoardID, increments float64) {
	t.Helper()
	testkit.Eventually(t, testTimeout, func() error {
		if err := f.closeBoards(t.Context()); err != nil {
			return err
		}
		value, err := f.opts.Redis.Get(t.Context(), f.opts.Names.MetaKey(b)).Result()
		if err != nil {
			return err
		}
		if meta, err := wire.ParseMeta(value); err != nil || meta.Life != wire.LifeClosed {
			return fmt.Errorf("%+v %w, waits for %q, boards %+v", meta, err, f.Status().WaitsFor, f.boards)
		}
		return nil
	})
	rows, err := f.opts.Redis.ZRangeWithScores(t.Context(), f.opts.Names.BoardKey(b), 0, -1).Result()
	must(t, err)
	for _, row := range rows {
		increments -= row.Score
	}
	if increments != 0 {
		t.Fatalf("closed, and %v increments are missing: %v", increments, rows)
	}
}

func today(t *testing.T, f *fixture) rankcache.BoardID {
	t.Helper()
	b, err := f.tiers.file.Class("lasting").At(nil, time.Now())
	must(t, err)
	return b.ID
}

// A master dies after the markers were processed and before the board is closed. Its replica lacks commands
// that came in time; they are put back, and then the board is closed.
func TestFailoverBetweenMarkAndClose(t *testing.T) {
	t.Parallel()
	master, replica := testkit.StartRedis(t, servers.RedisOptions{}), testkit.StartRedis(t, servers.RedisOptions{})
	host, port, _ := strings.Cut(master.Addr(), ":")
	must(t, replica.Do(t.Context(), "REPLICAOF", host, port))
	var at atomic.Pointer[string]
	at.Store(new(master.Addr()))
	f := newFixture(t, testkit.Kfake(t).Addr(), map[string]string{}, func(o *Options) {
		c := redis.NewClient(&redis.Options{Addr: "redis", Protocol: 2, DisableIdentity: true, DialerRetries: 1, Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", *at.Load())
		}})
		t.Cleanup(func() { c.Close() })
		o.Redis = c
	})
	b := today(t, f)
	stop := f.write(t)
	f.produce(t, 0, 10)
	f.awaitApplied(t, client(t, replica.Addr()), 10) // the first connection has the replica wait for others
	must(t, replica.Do(t.Context(), "REPLICAOF", "NO", "ONE"))
	f.produce(t, 10, 20)
	f.awaitApplied(t, f.redis, 20)
	f.ahead = 48 * time.Hour
	f.want(t, b, wire.LifeClosing, 1, "partition")
	f.awaitApplied(t, f.redis, 22)
	stop()
	must(t, master.Kill())
	at.Store(new(replica.Addr()))
	for range 3 {
		f.want(t, b, wire.LifeOpen, 1, "is read again since the last failover")
	}
	f.write(t)
	f.awaitClosed(t, b, 20)
}

// A board is closed, and its master dies before its replica gets that. The index, on another master, still has the board,
// which is closed again.
func TestFailoverAfterClose(t *testing.T) {
	t.Parallel()
	cluster := testkit.StartRedisCluster(t, servers.ClusterOptions{})
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs(), Protocol: 2})
	t.Cleanup(func() { c.Close() })
	f := newFixture(t, testkit.Kfake(t).Addr(), map[string]string{}, func(o *Options) { o.Redis = c })
	b := today(t, f)
	master, err := cluster.Master(t.Context(), f.opts.Names.MetaKey(b))
	must(t, err)
	f.setEnds(t, func(key string) bool {
		other, err := cluster.Master(t.Context(), key)
		must(t, err)
		return other != master
	})
	f.write(t)
	f.produce(t, 0, 20)
	f.awaitApplied(t, c, 60) // on three masters
	f.ahead = 48 * time.Hour
	f.want(t, b, wire.LifeClosing, 1, "partition")
	f.awaitApplied(t, c, 66)
	must(t, master.Replicated(t.Context()))
	replica := replicaOf(t, cluster, master)
	must(t, replica.Pause())
	must(t, master.Do(t.Context(), "CLIENT", "KILL", "TYPE", "replica"))
	f.awaitClosed(t, b, 20)
	must(t, master.Kill())
	must(t, replica.Resume())
	testkit.Eventually(t, testTimeout, func() error { return replica.Do(t.Context(), "CLUSTER", "FAILOVER", "TAKEOVER") })
	testkit.Eventually(t, testTimeout, func() error {
		if now, err := cluster.Master(t.Context(), f.opts.Names.MetaKey(b)); err != nil || now != replica {
			return fmt.Errorf("the master is %v: %w", now, err)
		}
		return c.Get(t.Context(), f.opts.Names.MetaKey(b)).Err()
	})
	if meta := f.meta(t, b); meta.Life >= wire.LifeClosed {
		t.Fatal("the new master knows of the close:", meta)
	}
	f.ahead += secondLook
	f.awaitClosed(t, b, 20)
	f.ahead += secondLook
	testkit.Eventually(t, testTimeout, func() error {
		if n, err := c.ZCard(t.Context(), f.opts.Names.Ends).Result(); err != nil || n != 0 {
			return errors.Join(f.closeBoards(t.Context()), fmt.Errorf("%d in the index, %w", n, err))
		}
		return nil
	})
}

// setEnds names the index so that ok holds.
func (f *fixture) setEnds(t *testing.T, ok func(key string) bool) {
	for i := 0; !ok(f.opts.Names.Ends); i++ {
		f.opts.Names.Ends = f.name + "-ends" + strconv.Itoa(i)
	}
}

// replicaOf returns the replica of a master.
func replicaOf(t *testing.T, cluster *servers.RedisCluster, master *servers.Redis) *servers.Redis {
	t.Helper()
	for _, n := range cluster.Nodes {
		node := n.Client()
		info := node.Info(t.Context(), "replication").Val()
		node.Close()
		if _, port, _ := strings.Cut(master.Addr(), ":"); strings.Contains(info, "role:slave") && strings.Contains(info, "master_port:"+port+"\r\n") {
			return n
		}
	}
	t.Fatal("the master has no replica")
	return nil
}
