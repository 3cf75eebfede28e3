package writer

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"rankcache/internal/httpserve"
	"rankcache/internal/testkit"
)

// longMember is a member id that no compression makes much shorter.
func longMember(n int) string {
	text := fmt.Sprint("m", n, "-")
	for len(text) < 110 {
		text += fmt.Sprintf("%x", rand.Uint64())
	}
	return text
}

// uncompressed has records as long as they are.
func uncompressed(change func(*Options)) func(*Options) {
	return func(o *Options) {
		if o.Kafka["compression.type"] = "none"; change != nil {
			change(o)
		}
	}
}

// A topic that takes less than a batch has smaller ones, and the next batches are as small at once. On a real broker, as kfake takes all.
func TestBatchLargerThanItsTopicTakes(t *testing.T) {
	t.Parallel()
	h := newFixture(t, testkit.RealKafka(t), nil)
	testkit.CreateTopic(t, h.kafka, h.opts.Names.Topic(h.board), 1, map[string]string{"max.message.bytes": "8192"})
	const n = 500
	commands := make([]string, n)
	for i := range commands {
		commands[i] = h.command(fmt.Sprint("o", i), longMember(i))
	}
	h.produce(t, commands...)
	h.run(t)
	equal(t, "updates", len(h.updates(t, n)), n)
	equal(t, "too large", testutil.ToFloat64(h.metrics.tooLarge.WithLabelValues(h.opts.Names.Topic(h.board))), 0.0)
	if got := h.producer.Load().batch; got > 16384 || got < 2048 {
		t.Errorf("batches of %d bytes", got)
	}
}

// An update that fits nowhere is left out, and named; the others of its batch, and what comes behind it, go on. A record for the
// ledger is not left out.
func TestUpdateThatFitsNowhere(t *testing.T) {
	t.Parallel()
	h := newFixture(t, testkit.RealKafka(t), uncompressed(nil))
	topic := h.opts.Names.Topic(h.board)
	testkit.CreateTopic(t, h.kafka, topic, 1, map[string]string{"max.message.bytes": "480"})
	long := longMember(0)
	h.produce(t, h.command("o1", "a"), h.command("o2", long), h.command("o3", "b"))
	h.run(t)
	got := strings.Join(h.updates(t, 2), "\n")
	if !strings.Contains(got, `"order":"o1"`) || !strings.Contains(got, `"order":"o3"`) {
		t.Error(got)
	}
	testkit.Eventually(t, testTimeout, func() error {
		if n := testutil.ToFloat64(h.metrics.tooLarge.WithLabelValues(topic)); n != 1 {
			return fmt.Errorf("%v records too large", n)
		}
		return nil
	})
	status, answer := h.post(t, h.command("o4", "a"))
	equal(t, answer, status, 200)
	p := h.producer.Load()
	rest, err := p.send(t.Context(), []message{{topic: topic, key: []byte("k"), value: []byte(strings.Repeat(long, 5)), kept: true}})
	if err == nil || len(rest) != 1 || !strings.Contains(err.Error(), topic) || !strings.Contains(err.Error(), "max.message.bytes") {
		t.Errorf("%d left, %v", len(rest), err)
	}
}

// A command that the command topic can't take is refused by name, and not applied; others of the request are.
func TestCommandThatFitsNowhere(t *testing.T) {
	t.Parallel()
	h := newFixture(t, testkit.RealKafka(t), uncompressed(durable(t)))
	h.makeCommandTopicFor(t)
	setTopic(t, h.kafka, h.opts.Names.Commands, map[string]string{"max.message.bytes": "360"})
	h.run(t)
	status, answer := h.post(t, strings.Replace(h.in("counts", "o1"), `"a"`, fmt.Sprintf("%q", longMember(0)), 1))
	checkProblem(t, "long", status, answer, httpserve.Problem{Status: 400, Code: "bad_request"})
	if !strings.Contains(answer, h.opts.Names.Commands) {
		t.Error(answer)
	}
	posts := h.posts.doAll(t.Context(), []json.RawMessage{[]byte(strings.Replace(h.in("counts", "o2"), `"a"`, fmt.Sprintf("%q", longMember(0)), 1)), []byte(h.in("counts", "o3"))})
	if posts[0].err == nil || posts[1].err != nil {
		t.Errorf("%v, %v", posts[0].err, posts[1].err)
	}
	equal(t, "score", h.client.ZCard(t.Context(), "counts:"+h.zone()).Val(), int64(1))
}

// A client takes settings of an operator, of batches too.
func TestBatchSettings(t *testing.T) {
	for _, c := range []struct {
		key, value string
		want       int
	}{{"message.max.bytes", "2000", usualBatch}, {"batch.size", "5000", 5000}, {"batch.size", "x", 0}} {
		h := quiet(t, func(o *Options) { o.Kafka = map[string]string{"bootstrap.servers": "127.0.0.1:1", c.key: c.value} })
		p, err := newProducer(h.opts.Kafka, h.topics, h.metrics, h.log)
		if err == nil {
			equal(t, c.key, p.batch, c.want)
			p.close()
		} else if c.want > 0 {
			t.Error(err)
		}
	}
}
