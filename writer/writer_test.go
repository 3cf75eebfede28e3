package writer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/rooms"
	"rankcache/wire"
)

func TestCommandBecomesUpdate(t *testing.T) {
	t.Parallel()
	h := newFixture(t, testkit.Kafka(t), nil)
	h.run(t)
	h.produce(t, h.command("o1", "a"), h.command("o2", "a"), h.command("o1", "a"))
	h.await(t, "applied", 2)
	h.await(t, "duplicate", 1)
	run := h.meta(t).Run
	equal(t, "updates", h.updates(t, 3), []string{h.update(run, "o1", "a", 1), h.update(run, "o2", "a", 2), h.update(run, "o1", "a", 1)})
}

// update is the JSON of the update of a command of the board's only member, whose score
// equals its seq.
func (h *fixture) update(run uint64, order, member string, seq uint64) string {
	return fmt.Sprintf(`{"v":2,"board":%q,"member":%q,"op":"incr","delta":1,"score":%d,"run":%d,"seq":%d,"sum":"%012x","members":1,"order":%q,"at":%d}`,
		h.board, member, seq, run, seq, wire.Hash(member, float64(seq)), order, h.at)
}

// restarted returns another writer of the same group, as after a restart.
func (h *fixture) restarted(t testing.TB) *fixture {
	t.Helper()
	w, err := New(h.opts)
	must(t, err)
	return &fixture{w, h.client, h.kafka, h.board, h.at}
}

// A writer dies after Redis took a batch and before Kafka took its updates:
//
//	Redis: orders applied, seq 1..n     Kafka: nothing     offsets: not committed
//
// The next one repeats the commands, gets the updates from the order ids' records,
// and publishes those that were missing.
func TestCrashBetweenRedisAndKafka(t *testing.T) {
	t.Parallel()
	const n = 50
	broker := testkit.Kfake(t)
	h := newFixture(t, broker.Addr(), nil)
	h.grace = 10 * time.Millisecond
	var commands []string
	for i := range n {
		commands = append(commands, h.command(fmt.Sprint("o", i), fmt.Sprint("m", i%7)))
	}
	h.produce(t, commands...)
	var broken atomic.Bool
	broken.Store(true)
	broker.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		broker.KeepControl()
		return nil, errors.New("connection lost"), broken.Load()
	})

	ctx, crash := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- h.Run(ctx) }()
	h.await(t, "applied", n)
	crash()
	if err := <-ended; !errors.Is(err, errStopTimeout) {
		t.Fatal("run ended with", err)
	}
	broken.Store(false)

	next := h.restarted(t)
	next.run(t)
	next.await(t, "duplicate", n)
	equal(t, "applied again", next.count("applied"), 0)
	for i, update := range h.updates(t, n) {
		var u wire.Update
		must(t, wire.DecodeUpdate([]byte(update), &u))
		equal(t, "update", []any{u.Seq, u.OrderID, u.Run}, []any{uint64(i + 1), fmt.Sprint("o", i), h.meta(t).Run})
	}
}

// Two writers share the commands and one restarts meanwhile: each order id counts
// once, every seq is published, and repeated publications are identical.
func TestTwoWriters(t *testing.T) {
	t.Parallel()
	n := testkit.Sized(3000, 100_000)
	h := newFixture(t, testkit.Kafka(t), nil)
	want := make(map[string]float64)
	var commands []string
	for i := range n {
		member := fmt.Sprint("m", rand.IntN(100))
		want[member]++
		commands = append(commands, h.command(fmt.Sprint("o", i), member))
		if rand.IntN(33) == 0 {
			commands = append(commands, commands[rand.IntN(len(commands))])
		}
	}
	h.produceSpread(t, commands)
	stop := h.run(t)
	other := h.restarted(t)
	other.run(t)
	testkit.Eventually(t, testTimeout, func() error {
		if h.count("applied")+other.count("applied") == 0 {
			return errors.New("nothing applied yet")
		}
		return nil
	})
	stop()
	third := h.restarted(t)
	third.run(t)
	testkit.Eventually(t, testTimeout, func() error { return h.checkApplied(t, n) })
	equal(t, "board", h.scores(t), want)
	testkit.Eventually(t, testTimeout, func() error { return h.checkPublished(t, n, want) })
}

// produceSpread writes to all partitions; the commands of one board normally share
// one.
func (h *fixture) produceSpread(t testing.TB, commands []string) {
	t.Helper()
	h.makeCommandTopicFor(t)
	var records []*kgo.Record
	for _, c := range commands {
		records = append(records, &kgo.Record{Topic: h.opts.Names.Commands, Key: []byte(c), Value: []byte(c)})
	}
	testkit.Produce(t, h.kafka, records...)
}

func (h *fixture) checkApplied(t testing.TB, n int) error {
	if m := h.meta(t); m.Seq != uint64(n) {
		return fmt.Errorf("seq %d, want %d", m.Seq, n)
	}
	return nil
}

func (h *fixture) scores(t testing.TB) map[string]float64 {
	t.Helper()
	rows, err := h.client.ZRangeWithScores(t.Context(), string(h.board), 0, -1).Result()
	must(t, err)
	scores := make(map[string]float64)
	for _, row := range rows {
		scores[row.Member.(string)] = row.Score
	}
	return scores
}

// checkPublished compares the board's topic with n seqs and the wanted scores.
func (h *fixture) checkPublished(t testing.TB, n int, want map[string]float64) error {
	bySeq := make(map[uint64]string)
	got := make(map[string]wire.Update)
	for _, value := range h.allUpdates(t) {
		var u wire.Update
		if must(t, wire.DecodeUpdate([]byte(value), &u)); u.Board != h.board {
			continue // a class's topic has those of other boards, too
		}
		if first, ok := bySeq[u.Seq]; ok && first != value {
			t.Fatalf("seq %d is %s and %s", u.Seq, first, value)
		}
		if bySeq[u.Seq] = value; u.Seq > got[u.Member].Seq {
			got[u.Member] = u
		}
	}
	if len(bySeq) != n {
		return fmt.Errorf("%d of %d seqs are published", len(bySeq), n)
	}
	for member, score := range want {
		equal(t, member, got[member].Score, score)
	}
	return nil
}

// allUpdates reads the updates of the board from its topic's beginning to its end.
func (h *fixture) allUpdates(t testing.TB) (values []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	client := testkit.KafkaClient(t, h.kafka, kgo.ConsumeTopics(h.opts.Tiers.File().Log(h.opts.Names, h.board).Topic))
	defer client.Close()
	for read, high := int64(0), int64(1); read < high; {
		fetches := client.PollFetches(ctx)
		must(t, fetches.Err())
		fetches.EachPartition(func(p kgo.FetchTopicPartition) { high = p.HighWatermark })
		fetches.EachRecord(func(r *kgo.Record) {
			if read++; strings.Contains(string(r.Value), fmt.Sprintf(`"board":%q`, h.board)) { // others may share the topic
				values = append(values, string(r.Value))
			}
		})
	}
	return values
}

// A stopping writer finishes and commits its current batch: the next one repeats
// nothing.
func TestStopCommits(t *testing.T) {
	t.Parallel()
	h := newFixture(t, testkit.Kafka(t), nil)
	h.produce(t, h.command("o1", "a"), h.command("o2", "a"), "not a command")
	stop := h.run(t)
	h.await(t, "applied", 2)
	h.await(t, "refused", 1)
	stop()
	next := h.restarted(t)
	next.run(t)
	h.produce(t, h.command("o3", "a"))
	next.await(t, "applied", 1)
	equal(t, "repeated", next.count("duplicate")+next.count("refused"), 0)
}

func TestBadCommandsAreSkipped(t *testing.T) {
	h := newFixture(t, testkit.Kfake(t).Addr(), func(o *Options) {
		o.Tiers = tiers{rooms: map[string]rooms.Mode{"88": rooms.ModeBlocked}}
	})
	must(t, h.client.Set(t.Context(), string(h.board)+"x", "no board", 0).Err())
	h.run(t)
	blocked := strings.Replace(h.command("o1", "a"), "{", `{"room":"88",`, 1)
	wrong := strings.Replace(h.command("o2", "a"), string(h.board), string(h.board)+"x", 1)
	h.produce(t, "", "{", blocked, wrong, h.command("", "a"), h.command("o3", "a"))
	h.await(t, "applied", 1)
	got := make(map[string]float64)
	for _, reason := range []string{"json", "blocked", "type", "order"} {
		got[reason] = testutil.ToFloat64(h.metrics.refused.WithLabelValues(reason))
	}
	equal(t, "refused", got, map[string]float64{"json": 2, "blocked": 1, "type": 1, "order": 1})
	equal(t, "board", h.scores(t), map[string]float64{"a": 1})
}

// Only the updates of super-hot boards are published, unless PublishAll is set.
func TestPublishedBoards(t *testing.T) {
	t.Parallel()
	broker := testkit.Kfake(t)
	for _, c := range []struct {
		name      string
		tiers     tiers
		all, want bool
	}{
		{"small", tiers{}, false, false},
		{"hot", tiers{all: rooms.ModeHot}, false, false},
		{"all", tiers{}, true, true},
		{"room", tiers{rooms: map[string]rooms.Mode{"77": rooms.ModeSuperHot}}, false, true},
	} {
		h := newFixture(t, broker.Addr(), func(o *Options) { o.Tiers, o.PublishAll = c.tiers, c.all })
		h.run(t)
		h.produce(t, strings.Replace(h.command("o1", "a"), "{", `{"room":"77",`, 1))
		h.await(t, "applied", 1)
		topic := h.opts.Names.Topic(h.board)
		if c.want {
			testkit.Records(t, h.kafka, topic, 1)
		} else if broker.TopicInfo(topic) != nil {
			t.Errorf("%s: a topic was created", c.name)
		}
	}
}

func TestRedisOutage(t *testing.T) {
	t.Parallel()
	server := testkit.StartRedis(t, servers.RedisOptions{})
	h := newFixture(t, testkit.Kfake(t).Addr(), func(o *Options) { o.Redis = redisClient(t, server.Addr()) })
	h.run(t)
	h.produce(t, h.command("o1", "a"))
	h.await(t, "applied", 1)
	must(t, server.Stop())
	h.produce(t, h.command("o2", "b"))
	h.awaitRetry(t, "redis")
	must(t, server.Restart(t.Context()))
	h.await(t, "applied", 2)
	equal(t, "board", h.scores(t), map[string]float64{"b": 1}) // this Redis does not persist
}

// Updates that the broker rejects are retried; nothing is committed until it accepts
// them.
func TestKafkaOutage(t *testing.T) {
	t.Parallel()
	broker := testkit.Kfake(t)
	h := newFixture(t, broker.Addr(), nil)
	h.produce(t, h.command("o1", "a"), h.command("o2", "a"))
	var rejecting atomic.Bool
	rejecting.Store(true)
	broker.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		broker.KeepControl()
		return rejection(r.(*kmsg.ProduceRequest)), nil, rejecting.Load()
	})
	stop := h.run(t)
	h.awaitRetry(t, "kafka")
	equal(t, "published", testutil.ToFloat64(h.metrics.published), 0.0)
	rejecting.Store(false)
	equal(t, "updates", len(h.updates(t, 2)), 2)
	stop()
	equal(t, "published", testutil.ToFloat64(h.metrics.published), 2.0)
}

// rejection answers every partition of a produce request with "topic authorization
// failed", which librdkafka reports to its caller.
func rejection(req *kmsg.ProduceRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.ProduceResponse)
	for _, topic := range req.Topics {
		rt := kmsg.NewProduceResponseTopic()
		rt.Topic, rt.TopicID = topic.Topic, topic.TopicID
		for _, p := range topic.Partitions {
			rp := kmsg.NewProduceResponseTopicPartition()
			rp.Partition, rp.ErrorCode = p.Partition, 29
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

func (h *fixture) awaitRetry(t testing.TB, of string) {
	t.Helper()
	testkit.Eventually(t, testTimeout, func() error {
		if testutil.ToFloat64(h.metrics.retries.WithLabelValues(of)) == 0 {
			return errors.New("no attempt was repeated")
		}
		return nil
	})
}
