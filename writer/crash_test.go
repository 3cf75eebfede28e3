package writer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache/internal/testkit"
)

// mortal has a writer die between two commands to Redis, also of one pipeline: from then on
// nothing that it sends arrives.
type mortal struct {
	left atomic.Int64 // commands until then
	die  func()
}

var errDead = errors.New("the writer is dead")

func (m *mortal) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (m *mortal) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if m.left.Add(-1) < 0 {
			m.die()
			cmd.SetErr(errDead)
			return errDead
		}
		return next(ctx, cmd)
	}
}

func (m *mortal) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		n := int64(len(cmds))
		after := m.left.Add(-n)
		if after >= 0 {
			return next(ctx, cmds)
		}
		m.die()
		if sent := max(after+n, 0); sent > 0 {
			_ = next(ctx, cmds[:sent]) // Redis has them; no reply comes back
		}
		for _, cmd := range cmds {
			cmd.SetErr(errDead)
		}
		return errDead
	}
}

// crashes is one history of commands through writers that die.
type crashes struct {
	*fixture
	producer *producer        // of all writers; those that are dead lose it
	topic    *kgo.Client      // reads and writes the command topic
	next     []*kafka.Message // of the command topic, not committed
	zone     string
	orders   int
	want     map[string]float64
}

// places are where writers die: before the append of a post, in Redis, and before the updates or the commit of
// a batch.
var places = []string{"append", "post", "batch", "publish", "commit"}

// boardsOfHalf is how many boards an increment of class half changes, each by a command to Redis.
const boardsOfHalf = 6

// Writers die at each step, in posts and in batches of the command topic: before the append,
// after it, between the boards, before the updates, and before the commit. The next writer has
// every board get each increment exactly once, and its update published.
func TestFeedsSurviveCrashes(t *testing.T) {
	t.Parallel()
	points, rounds := testkit.Sized(40, 1000), testkit.Sized(4, 40) // rounds with the same boards
	broker := testkit.Kfake(t)
	h := newFixture(t, broker.Addr(), feeding(t))
	h.makeCommandTopicFor(t)
	p, err := newProducer(h.opts.Kafka, h.topics, h.metrics, h.log)
	must(t, err)
	defer p.close()
	c := &crashes{fixture: h, producer: p, topic: testkit.KafkaClient(t, broker.Addr(),
		kgo.ConsumeTopics(h.opts.Names.Commands), kgo.RecordPartitioner(kgo.ManualPartitioner()))}
	for i := 0; i < points && !t.Failed(); i++ {
		if i%rounds == 0 { // boards that are not born yet
			c.zone, c.orders, c.want = fmt.Sprint(h.zone(), i), 0, map[string]float64{}
		}
		if c.round(t, places[i%len(places)]); i%rounds == rounds-1 {
			c.checkUpdates(t)
		}
	}
}

// round has one writer die, and the next one complete what it has begun.
func (c *crashes) round(t *testing.T, place string) {
	w, ctx, cut := c.mortalWriter(t)
	again := c.posts(w, ctx, cut, place)
	c.send(t, rand.IntN(4))
	if c.read(t); place == "batch" {
		cut.left.Store(rand.Int64N(boardsOfHalf))
	}
	if c.take(w, ctx, place); (ctx.Err() != nil) != (place == "post" || place == "batch") {
		t.Fatal(place, ctx.Err())
	}

	next := c.restarted(t)
	judge(t, next.Writer).producer.Store(c.producer)
	for _, command := range again {
		_, err := next.do(t.Context(), []byte(command))
		must(t, err)
	}
	c.read(t)
	if c.take(next.Writer, t.Context(), ""); len(c.next) > 0 {
		t.Fatal("not committed")
	}
	c.checkFed(t, c.zone, uint64(c.orders), c.want)
}

// posts has the writer take commands, and returns those that their callers post again. What the
// command topic has is completed without.
func (c *crashes) posts(w *Writer, ctx context.Context, cut *mortal, place string) (again []string) {
	for i := range 2 {
		if place == "append" && i == 1 {
			w.producer.Store(nil)
		}
		if place == "post" && i == 1 {
			cut.left.Store(rand.Int64N(boardsOfHalf))
		}
		command := c.command()
		done := w.posts.doAll(ctx, []json.RawMessage{[]byte(command)})[0]
		if errors.Is(done.err, errNotRecorded) || done.err != nil && rand.IntN(2) == 0 {
			again = append(again, command)
		}
	}
	return again
}

// mortalWriter returns a writer that lives until its cut.
func (c *crashes) mortalWriter(t *testing.T) (*Writer, context.Context, *mortal) {
	ctx, cancel := context.WithCancelCause(t.Context())
	opts := c.opts
	client := redisClient(t, c.client.Options().Addr)
	opts.Redis = client
	w, err := New(opts)
	must(t, err)
	judge(t, w)
	cut := &mortal{die: func() { w.producer.Store(nil); cancel(errDead) }}
	cut.left.Store(1 << 40)
	client.AddHook(cut)
	w.producer.Store(c.producer)
	return w, ctx, cut
}

// command returns a new increment, or an earlier one again.
func (c *crashes) command() string {
	order := rand.IntN(c.orders + 3)
	member, delta := fmt.Sprint("m", order%3), 1+order%7
	if order >= c.orders {
		order = c.orders
		c.orders++
		member, delta = fmt.Sprint("m", order%3), 1+order%7
		c.want[member] += float64(delta)
	}
	return inHalf(fmt.Sprint("o", order), c.zone, member, delta, c.at)
}

func (c *crashes) send(t *testing.T, n int) {
	for range n {
		r := &kgo.Record{Topic: c.opts.Names.Commands, Partition: rand.Int32N(2), Value: []byte(c.command())}
		must(t, c.topic.ProduceSync(t.Context(), r).FirstErr())
	}
}

// read appends what is new in the command topic: all that is before a mark at the end of
// each partition.
func (c *crashes) read(t *testing.T) {
	const mark = "mark"
	for p := range int32(2) {
		must(t, c.topic.ProduceSync(t.Context(), &kgo.Record{Topic: c.opts.Names.Commands, Partition: p, Value: []byte(mark)}).FirstErr())
	}
	for marks := 0; marks < 2; {
		fetches := c.topic.PollFetches(t.Context())
		must(t, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			if string(r.Value) == mark {
				marks++
				return
			}
			c.next = append(c.next, &kafka.Message{Value: r.Value, Timestamp: r.Timestamp, TimestampType: kafka.TimestampLogAppendTime,
				TopicPartition: kafka.TopicPartition{Topic: &c.opts.Names.Commands, Partition: r.Partition, Offset: kafka.Offset(r.Offset)}})
		})
	}
}

// take has a writer apply, publish and commit what is read, unless it dies before, at the
// latest at the place.
func (c *crashes) take(w *Writer, ctx context.Context, place string) {
	done, err := w.applyBatch(ctx, &batch{round: w.rewinds.round.Load(), records: c.next, polled: time.Now()})
	if err != nil || place == "publish" || ctx.Err() != nil {
		return
	}
	if w.publish(ctx, c.producer, done.messages) == nil && place != "commit" {
		c.next = nil
	}
}

// checkUpdates wants the topics of the first board and of one that it feeds to have all updates.
func (c *crashes) checkUpdates(t *testing.T) {
	for _, board := range c.fedBoards(t, c.zone, c.at)[:2] {
		of := *c.fixture
		of.board = board
		must(t, of.checkPublished(t, c.orders, c.want))
	}
}
