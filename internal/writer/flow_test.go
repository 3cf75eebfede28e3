package writer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/rooms"
	"rankcache/wire"
)

// again is another writer of the same group, as after a restart.
func (h *house) again(t testing.TB) *house {
	t.Helper()
	w, err := New(h.opts)
	must(t, err)
	return &house{w, h.client, h.kafka, h.board}
}

// A writer dies after Redis took a batch and before Kafka took its updates:
//
//	Redis: orders applied, seq 1..n     Kafka: nothing     offsets: not committed
//
// The next one repeats the commands, is answered from what the orders left
// behind, and publishes the updates that were missing.
func TestCrashBetweenRedisAndKafka(t *testing.T) {
	const n = 50
	broker := testkit.Kfake(t)
	h := newHouse(t, broker.Addr(), nil)
	h.grace = 10 * time.Millisecond
	var commands []string
	for i := range n {
		commands = append(commands, h.command(fmt.Sprint("o", i), fmt.Sprint("m", i%7)))
	}
	h.give(t, commands...)
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
	if err := <-ended; !errors.Is(err, errGivenUp) {
		t.Fatal("run ended with", err)
	}
	broken.Store(false)

	next := h.again(t)
	next.run(t)
	next.await(t, "duplicate", n)
	equal(t, "applied again", next.count("applied"), 0)
	for i, update := range h.updates(t, n) {
		if want := fmt.Sprintf(`"seq":%d,"order":"o%d"`, i+1, i); !strings.Contains(update, want) {
			t.Errorf("update %d is %s", i, update)
		}
	}
}

// Two writers share the commands, one is stopped and started again in the
// middle: each order counts once, every seq is published, and whatever is
// published twice is the same.
func TestTwoWriters(t *testing.T) {
	n := 3000
	if testkit.Full() {
		n = 100_000
	}
	h := newHouse(t, testkit.Kafka(t), nil)
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
	h.giveSpread(t, commands)
	stop := h.run(t)
	other := h.again(t)
	other.run(t)
	testkit.Eventually(t, patience, func() error {
		if h.count("applied")+other.count("applied") == 0 {
			return errors.New("nothing applied yet")
		}
		return nil
	})
	stop()
	third := h.again(t)
	third.run(t)
	testkit.Eventually(t, patience, func() error { return h.applied(t, n) })
	equal(t, "board", h.scores(t), want)
	testkit.Eventually(t, patience, func() error { return h.published(t, n, want) })
}

// giveSpread writes to all partitions, which commands of one board normally are
// not.
func (h *house) giveSpread(t testing.TB, commands []string) {
	t.Helper()
	h.makeCommandTopicFor(t)
	var records []*kgo.Record
	for _, c := range commands {
		records = append(records, &kgo.Record{Topic: h.opts.Names.Commands, Key: []byte(c), Value: []byte(c)})
	}
	testkit.Produce(t, h.kafka, records...)
}

func (h *house) applied(t testing.TB, n int) error {
	if seq := h.client.Get(t.Context(), h.opts.Names.SeqKey(h.board)).Val(); seq != fmt.Sprint(n) {
		return fmt.Errorf("seq %q, want %d", seq, n)
	}
	return nil
}

func (h *house) scores(t testing.TB) map[string]float64 {
	t.Helper()
	rows, err := h.client.ZRangeWithScores(t.Context(), string(h.board), 0, -1).Result()
	must(t, err)
	scores := make(map[string]float64)
	for _, row := range rows {
		scores[row.Member.(string)] = row.Score
	}
	return scores
}

// published checks what is on the board's topic by now.
func (h *house) published(t testing.TB, n int, want map[string]float64) error {
	bySeq := make(map[uint64]string)
	got := make(map[string]wire.Update)
	for _, value := range h.allUpdates(t) {
		var u wire.Update
		must(t, wire.DecodeUpdate([]byte(value), &u))
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

// allUpdates reads the board's topic from its beginning to its end.
func (h *house) allUpdates(t testing.TB) (values []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	client := testkit.KafkaClient(t, h.kafka, kgo.ConsumeTopics(h.opts.Names.Topic(h.board)))
	defer client.Close()
	for high := int64(1); int64(len(values)) < high; {
		fetches := client.PollFetches(ctx)
		must(t, fetches.Err())
		fetches.EachPartition(func(p kgo.FetchTopicPartition) { high = p.HighWatermark })
		fetches.EachRecord(func(r *kgo.Record) { values = append(values, string(r.Value)) })
	}
	return values
}

// The batch in hand is finished and committed when a writer is stopped: its
// successor repeats nothing.
func TestStopCommits(t *testing.T) {
	h := newHouse(t, testkit.Kafka(t), nil)
	h.give(t, h.command("o1", "a"), h.command("o2", "a"), "not a command")
	stop := h.run(t)
	h.await(t, "applied", 2)
	h.await(t, "refused", 1)
	stop()
	next := h.again(t)
	next.run(t)
	h.give(t, h.command("o3", "a"))
	next.await(t, "applied", 1)
	equal(t, "repeated", next.count("duplicate")+next.count("refused"), 0)
}

func TestBadCommandsAreSkipped(t *testing.T) {
	h := newHouse(t, testkit.Kfake(t).Addr(), func(o *Options) {
		o.Tiers = tiers{rooms: map[string]rooms.Mode{"88": rooms.ModeBlocked}}
	})
	must(t, h.client.Set(t.Context(), string(h.board)+"x", "no board", 0).Err())
	h.run(t)
	blocked := strings.Replace(h.command("o1", "a"), "{", `{"room":"88",`, 1)
	wrong := strings.Replace(h.command("o2", "a"), string(h.board), string(h.board)+"x", 1)
	h.give(t, "", "{", blocked, wrong, h.command("", "a"), h.command("o3", "a"))
	h.await(t, "applied", 1)
	got := make(map[string]float64)
	for _, reason := range []string{"json", "blocked", "type", "order"} {
		got[reason] = testutil.ToFloat64(h.metrics.refused.WithLabelValues(reason))
	}
	equal(t, "refused", got, map[string]float64{"json": 2, "blocked": 1, "type": 1, "order": 1})
	equal(t, "board", h.scores(t), map[string]float64{"a": 1})
}

// Only super-hot boards have updates, unless all shall.
func TestWhatIsPublished(t *testing.T) {
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
		h := newHouse(t, broker.Addr(), func(o *Options) { o.Tiers, o.PublishAll = c.tiers, c.all })
		h.run(t)
		h.give(t, strings.Replace(h.command("o1", "a"), "{", `{"room":"77",`, 1))
		h.await(t, "applied", 1)
		topic := h.opts.Names.Topic(h.board)
		if c.want {
			testkit.Records(t, h.kafka, topic, 1)
		} else if broker.TopicInfo(topic) != nil {
			t.Errorf("%s: there is a topic", c.name)
		}
	}
}

func TestRedisComesBack(t *testing.T) {
	server := testkit.StartRedis(t, servers.RedisOptions{})
	h := newHouse(t, testkit.Kfake(t).Addr(), func(o *Options) { o.Redis = redisClient(t, server.Addr()) })
	h.run(t)
	h.give(t, h.command("o1", "a"))
	h.await(t, "applied", 1)
	must(t, server.Stop())
	h.give(t, h.command("o2", "b"))
	h.awaitRetry(t, "redis")
	must(t, server.Restart(t.Context()))
	h.await(t, "applied", 2)
	equal(t, "board", h.scores(t), map[string]float64{"b": 1}) // this Redis keeps nothing over a restart
}

// A broker that refuses the updates is asked again; until it takes them nothing
// is committed and nothing lost.
func TestKafkaComesBack(t *testing.T) {
	broker := testkit.Kfake(t)
	h := newHouse(t, broker.Addr(), nil)
	h.give(t, h.command("o1", "a"), h.command("o2", "a"))
	var refusing atomic.Bool
	refusing.Store(true)
	broker.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		broker.KeepControl()
		return refusal(r.(*kmsg.ProduceRequest)), nil, refusing.Load()
	})
	stop := h.run(t)
	h.awaitRetry(t, "kafka")
	equal(t, "published", testutil.ToFloat64(h.metrics.published), 0.0)
	refusing.Store(false)
	equal(t, "updates", len(h.updates(t, 2)), 2)
	stop()
	equal(t, "published", testutil.ToFloat64(h.metrics.published), 2.0)
}

// refusal answers every partition of a produce request with "topic
// authorization failed", which librdkafka hands to the caller.
func refusal(req *kmsg.ProduceRequest) kmsg.Response {
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

func (h *house) awaitRetry(t testing.TB, of string) {
	t.Helper()
	testkit.Eventually(t, patience, func() error {
		if testutil.ToFloat64(h.metrics.retries.WithLabelValues(of)) == 0 {
			return errors.New("no attempt was repeated")
		}
		return nil
	})
}

func TestOptionsAreChecked(t *testing.T) {
	good := Options{Redis: redis.NewClient(&redis.Options{}), Tiers: tiers{}, Names: wire.DefaultNames(),
		Kafka: map[string]string{"bootstrap.servers": "x"}}
	_, err := New(good)
	must(t, err)
	for name, spoil := range map[string]func(*Options){
		"redis":  func(o *Options) { o.Redis = nil },
		"tiers":  func(o *Options) { o.Tiers = nil },
		"names":  func(o *Options) { o.Names.Seq = "" },
		"life":   func(o *Options) { o.BoardLife = -1 },
		"kafka":  func(o *Options) { o.Kafka = nil },
		"commit": func(o *Options) { o.Kafka["enable.auto.commit"] = "true" },
		"group":  func(o *Options) { o.Kafka["group.id"] = "mine" },
		"go":     func(o *Options) { o.Kafka["go.batch.producer"] = "true" },
	} {
		opts := good
		opts.Kafka = maps.Clone(good.Kafka)
		spoil(&opts)
		if _, err := New(opts); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

func TestUnknownKafkaSetting(t *testing.T) {
	h := newHouse(t, "unused:1", func(o *Options) { o.Kafka["no.such.setting"] = "1" })
	if err := h.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "no.such.setting") {
		t.Error("run:", err)
	}
}

func TestMergedSettings(t *testing.T) {
	conf := *settings{"bootstrap.servers": "x", "acks": "1", "linger.ms": "50"}.producer()
	equal(t, "operator", []any{conf["linger.ms"], conf["acks"]}, []any{"50", "1"})
	equal(t, "ours", conf["enable.idempotence"], any("true"))
	keys := slices.Sorted(maps.Keys(owned))
	equal(t, "owned", keys, []string{"enable.auto.commit", "enable.auto.offset.store", "enable.idempotence", "group.id"})
}
