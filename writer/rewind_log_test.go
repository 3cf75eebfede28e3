package writer

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"rankcache"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/writer/internal/rewind"
)

// deleteBefore has the log of partition 0 begin at an offset.
func (d *durableFixture) deleteBefore(t *testing.T, offset int64) {
	t.Helper()
	req := kmsg.NewPtrDeleteRecordsRequest()
	part := kmsg.NewDeleteRecordsRequestTopicPartition()
	part.Offset = offset
	req.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: d.opts.Names.Commands, Partitions: []kmsg.DeleteRecordsRequestTopicPartition{part}}}
	req.TimeoutMillis = 5000
	resp, err := req.RequestWith(t.Context(), testkit.KafkaClient(t, d.kafka))
	must(t, err)
	must(t, kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode))
}

// onePartition has a command topic of one partition with n commands.
func (d *durableFixture) onePartition(t *testing.T, n int) {
	t.Helper()
	d.topics.conf.CommandPartitions = 1
	for range n {
		d.produce(t, d.gift("gift", d.posts))
		d.posts++
	}
}

// What is not in the log any more is counted, and the rest is applied.
func TestLogWithoutItsBeginning(t *testing.T) {
	t.Parallel()
	d := newDurable(t, testkit.StartRedis(t, servers.RedisOptions{}), testkit.Kafka(t)) // as in TestLogs
	d.onePartition(t, 10)
	ctx := t.Context()
	eras, err := d.applier.masters(ctx)
	must(t, err)
	p, master := d.rewinds.positions, eras[0].name
	h, _, err := p.read(ctx, master, eras[0].era)
	must(t, err)
	of := d.logsOf(t, time.Hour)
	_, err = p.write(ctx, []rewind.WritePosition{{Master: master, Era: eras[0].era, Life: h.Life, Topic: of[0].Topic, Next: 2, Heal: true}})
	must(t, err)
	d.deleteBefore(t, 6)
	d.run(t)
	d.await(t, "applied", 4)
	equal(t, "gone", testutil.ToFloat64(d.metrics.rewind.gone), 4.0)
}

// logsOf asks Kafka as the writer does.
func (d *durableFixture) logsOf(t *testing.T, life time.Duration) (of map[int32]rewind.Log) {
	t.Helper()
	c, err := newConsumer(d.opts, d.rewinds)
	must(t, err)
	defer c.close()
	testkit.Eventually(t, testTimeout, func() (err error) { // a broker that has just begun does not know the group
		of, err = c.logs(t.Context(), life, life/2)
		return err
	})
	return of
}

// What Kafka tells of a log: a topic that is made again has another id, and offsets of times that are later
// than all records are its end.
func TestLogs(t *testing.T) {
	t.Parallel()
	// Not kfake: once in some thirty times it does not answer a consumer that leaves without having read.
	d := newDurable(t, testkit.StartRedis(t, servers.RedisOptions{}), testkit.Kafka(t))
	d.onePartition(t, 3)
	hour := d.logsOf(t, time.Hour)
	topic := hour[0].Topic
	equal(t, "an hour back", hour, map[int32]rewind.Log{0: {Topic: topic, End: 3, Committed: hour[0].Committed}})
	if hour[0].Committed >= 0 || topic == "" {
		t.Errorf("%+v, and nothing was committed", hour)
	}
	future := d.logsOf(t, -time.Hour)
	equal(t, "back from later", []int64{future[0].LifeBack, future[0].HalfLifeBack}, []int64{3, 3})
}

// What the positions tell is committed, though nothing is posted any more: a writer that has lost its partition before it
// could commit leaves no lag for ever.
func TestPositionsAreCommitted(t *testing.T) {
	t.Parallel()
	d := newDurable(t, testkit.StartRedis(t, servers.RedisOptions{}), testkit.Kfake(t).Addr())
	d.onePartition(t, 10)
	stop := d.run(t)
	d.await(t, "applied", 10)
	stop()
	note, at := d.noted(t)
	equal(t, "committed", at, int64(10))
	d.commit(t, 6, note.String())
	d.run(t)
	testkit.Eventually(t, testTimeout, func() error {
		if _, at := d.noted(t); at != 10 {
			return fmt.Errorf("%d is committed of 10 that are applied", at)
		}
		return nil
	})
}

// cutLog cuts the log once, after it was asked.
type cutLog struct {
	*consumer
	cut func()
	one sync.Once
}

func (c *cutLog) logs(ctx context.Context, life, half time.Duration) (map[int32]rewind.Log, error) {
	of, err := c.consumer.logs(ctx, life, half)
	if err == nil && len(of) > 0 {
		c.one.Do(c.cut)
	}
	return of, err
}

// A log that is cut while it is read: the positions are read anew, and the loss is told.
func TestCutWhileReading(t *testing.T) {
	t.Parallel()
	d := newDurable(t, testkit.StartRedis(t, servers.RedisOptions{}), testkit.Kfake(t).Addr())
	d.onePartition(t, 10)
	c, err := newConsumer(d.opts, d.rewinds)
	must(t, err)
	defer c.close()
	d.rewinds.begin(t.Context(), &cutLog{consumer: c, cut: func() { d.deleteBefore(t, 6) }})
	defer d.rewinds.end()
	var read []*batch
	for len(read) == 0 || read[len(read)-1].ends[0] < 10 {
		b, err := c.next(t.Context(), nil)
		must(t, err)
		if b.round.number > 0 && !d.rewinds.stale(b.round) {
			read = append(read, b)
		}
	}
	equal(t, "first", int64(read[0].records[0].TopicPartition.Offset), int64(6))
	if gone := testutil.ToFloat64(d.metrics.rewind.gone); gone < 1 {
		t.Error("nothing was told of the loss")
	}
}

// The topic is made again, gets another partition, or a position tells of more than it has: the writer goes on, and what
// Redis loses then is made up for.
func TestTopicChanges(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*testing.T, *durableFixture){
		"made again": func(t *testing.T, d *durableFixture) {
			testkit.DeleteTopic(t, d.kafka, d.opts.Names.Commands)
			d.makeCommandTopicFor(t)
		},
		"another partition": func(t *testing.T, d *durableFixture) {
			req := kmsg.NewPtrCreatePartitionsRequest()
			req.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: d.opts.Names.Commands, Count: 3}}
			req.TimeoutMillis = 5000
			resp, err := req.RequestWith(t.Context(), testkit.KafkaClient(t, d.kafka))
			must(t, err)
			must(t, kerr.ErrorForCode(resp.Topics[0].ErrorCode))
		},
		"position beyond the end": func(t *testing.T, d *durableFixture) {
			all := d.positions(t)
			for n, p := range all.Of {
				must(t, d.client.HSet(t.Context(), d.hash(), n, fmt.Sprintf("%s %d %s", p.Topic, p.Next+1000, p.Healed)).Err())
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := testkit.StartRedis(t, servers.RedisOptions{})
			d := newDurable(t, r, testkit.Kfake(t).Addr())
			stop := d.run(t)
			d.post(t, 20)
			d.awaitPositions(t)
			stop()
			change(t, d)
			d.fixture = d.restarted(t)
			d.run(t)
			d.awaitWhole(t)
			must(t, d.client.Save(t.Context()).Err())
			d.post(t, 20)
			must(t, r.Kill())
			must(t, r.Restart(t.Context()))
			d.awaitWhole(t)
			d.checkOnce(t)
		})
	}
}

// One of three masters of a cluster loses all it has, another one dies: each board has each increment once.
func TestClusterRewinds(t *testing.T) {
	t.Parallel()
	cluster := testkit.StartRedisCluster(t, servers.ClusterOptions{})
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs(), Protocol: 2, ContextTimeoutEnabled: true})
	t.Cleanup(func() { client.Close() })
	d := newDurable(t, cluster.Nodes[0], testkit.Kfake(t).Addr())
	d.opts.Redis = client
	w, err := New(d.opts)
	must(t, err)
	d.Writer = w
	d.run(t)
	const boards, each = 9, 10
	posts := func(order string) {
		for n := range boards * each {
			status, answer := d.fixture.post(t, fmt.Sprintf(`{"order":"%s%d","class":"gift","dims":{"zone":"%s%d"},"member":"m","op":"incr","delta":1}`, order, n, d.zone, n%boards))
			if status != 200 {
				t.Fatal(status, answer)
			}
		}
	}
	whole := func(want float64) {
		testkit.Eventually(t, testTimeout, func() error {
			if st := d.rewinds.status(t.Context()); st == nil || st.State != "whole" {
				return fmt.Errorf("status %+v", st)
			}
			for n := range boards {
				if score, err := client.ZScore(t.Context(), fmt.Sprint("gift:", d.zone, n), "m").Result(); score != want {
					return fmt.Errorf("board %d has %v, %v, want %v", n, score, err, want)
				}
			}
			return nil
		})
	}
	posts("a")
	whole(each)
	first, err := cluster.Master(t.Context(), string(rankcache.BoardID("gift:"+d.zone+"0")))
	must(t, err)
	must(t, first.Do(t.Context(), "FLUSHALL"))
	whole(each)
	last, err := cluster.Master(t.Context(), "gift:"+d.zone+"1")
	must(t, err)
	must(t, last.Kill())
	d.posts = 0
	d.Writer.posts.time = testTimeout // until the cluster has a new master
	posts("b")
	whole(2 * each)
	equal(t, "masters", len(d.rewinds.round.Load().eras), 3)
}
