package writer

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"rankcache/internal/kafka"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

// increments writes n commands with order ids of their own.
func (h *fixture) increments(t *testing.T, order string, n int) {
	t.Helper()
	commands := make([]string, n)
	for i := range commands {
		commands[i] = h.command(fmt.Sprint(order, i), "m")
	}
	h.produce(t, commands...)
}

// topicID returns the id of the command topic.
func (h *fixture) topicID(t *testing.T) string {
	t.Helper()
	p, err := newProducer(h.opts.Kafka, h.topics, h.metrics, h.log)
	must(t, err)
	defer p.close()
	id, err := p.commandTopicID(t.Context())
	must(t, err)
	return id
}

// commit commits an offset of partition 0 as a writer that was frozen would.
func (h *fixture) commit(t *testing.T, offset int64, note string) {
	t.Helper()
	req, topic, p := kmsg.NewPtrOffsetCommitRequest(), kmsg.NewOffsetCommitRequestTopic(), kmsg.NewOffsetCommitRequestTopicPartition()
	req.Group, req.Generation, topic.Topic = h.opts.Group, -1, h.opts.Names.Commands
	p.Offset, p.Metadata = offset, &note
	topic.Partitions = append(topic.Partitions, p)
	req.Topics = append(req.Topics, topic)
	client := testkit.KafkaClient(t, h.kafka, kgo.MaxVersions(kversion.V3_0_0())) // later ones name topics by id
	testkit.Eventually(t, testTimeout, func() error {
		resp, err := req.RequestWith(t.Context(), client)
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
	})
}

// noted returns what is noted beside the offset of partition 0.
func (h *fixture) noted(t *testing.T) (n kafka.Note, offset int64) {
	t.Helper()
	c, err := kafka.NewGroup(nil, h.opts.Group, h.opts.Kafka)
	must(t, err)
	defer c.Close()
	at, err := c.Committed([]kafka.TopicPartition{kafka.On(h.opts.Names.Commands, 0)}, 10_000)
	must(t, err)
	return kafka.NoteOf(at[0]), int64(at[0].Offset)
}

// newOnePartition returns a writer of a command topic with one partition.
func newOnePartition(t *testing.T, addr string) *fixture {
	return newFixture(t, addr, func(o *Options) { o.Topics.CommandPartitions = 1 })
}

// TestOffsetOfAnotherTopic: what the group has committed of a topic that was deleted tells nothing of the one that has its name now.
func TestOffsetOfAnotherTopic(t *testing.T) {
	t.Parallel()
	for name, addr := range map[string]func(testing.TB) string{"kafka": testkit.Kafka, "kfake": func(t testing.TB) string { return testkit.Kfake(t).Addr() }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newOnePartition(t, addr(t))
			h.increments(t, "a", 10)
			stop := h.run(t)
			h.await(t, "applied", 10)
			stop()
			former := h.topicID(t)
			if n, at := h.noted(t); n != (kafka.Note{Topic: former}) || at != 10 {
				t.Errorf("%+v is noted beside %d", n, at)
			}

			testkit.DeleteTopic(t, h.kafka, h.opts.Names.Commands)
			h.increments(t, "b", 30)
			h.commit(t, 10, kafka.Note{Topic: former}.String())
			h.run(t)
			h.await(t, "applied", 40)
			equal(t, "replaced", testutil.ToFloat64(h.metrics.rewind.replaced), 1.0)
			testkit.Eventually(t, testTimeout, func() error {
				if n, at := h.noted(t); n != (kafka.Note{Topic: h.topicID(t)}) || at != 30 {
					return fmt.Errorf("%+v is noted beside %d", n, at)
				}
				return nil
			})
		})
	}
}

// TestTopicIsMadeAgainWhileReading: the writer runs, and is told nothing by Kafka.
func TestTopicIsMadeAgainWhileReading(t *testing.T) {
	t.Parallel()
	h := newOnePartition(t, testkit.Kafka(t))
	h.run(t)
	sum := 0
	for again, n := range []int{10, 40, 90, 20} {
		if again > 0 {
			testkit.DeleteTopic(t, h.kafka, h.opts.Names.Commands)
		}
		h.increments(t, fmt.Sprint("round", n, "-"), n)
		sum += n
		testkit.Eventually(t, testTimeout, func() error {
			if score, err := h.client.ZScore(t.Context(), string(h.board), "m").Result(); err != nil || score != float64(sum) {
				return fmt.Errorf("score %v, %v, want %d", score, err, sum)
			}
			if told := testutil.ToFloat64(h.metrics.rewind.replaced); told != float64(again) {
				return fmt.Errorf("%v partitions are told to be of another topic, want %d", told, again)
			}
			return nil
		})
	}
}

// TestTopicOfDurableClassesIsMadeAgain: so is one in which positions of Redis are kept.
func TestTopicOfDurableClassesIsMadeAgain(t *testing.T) {
	t.Parallel()
	d := newDurable(t, testkit.StartRedis(t, servers.RedisOptions{}), testkit.Kafka(t))
	d.onePartition(t, 10)
	d.run(t)
	d.await(t, "applied", 10)
	d.awaitPositions(t)
	testkit.DeleteTopic(t, d.kafka, d.opts.Names.Commands)
	d.onePartition(t, 40)
	d.await(t, "applied", 50)
	testkit.Eventually(t, testTimeout, func() error {
		if st := d.rewinds.status(t.Context()); st.State != "whole" {
			return fmt.Errorf("status %+v", st)
		}
		return nil
	})
	equal(t, "replaced", testutil.ToFloat64(d.metrics.rewind.replaced), 1.0)
}

// TestOffsetWithoutTopic: an offset that an earlier writer has committed is taken for one of the present topic, and gets its id
// also if no command comes.
func TestOffsetWithoutTopic(t *testing.T) {
	t.Parallel()
	h := newOnePartition(t, testkit.Kfake(t).Addr())
	h.increments(t, "a", 10)
	h.commit(t, 10, "")
	h.run(t)
	testkit.Eventually(t, testTimeout, func() error {
		if n, at := h.noted(t); n != (kafka.Note{Topic: h.topicID(t)}) || at != 10 {
			return fmt.Errorf("%+v is noted beside %d", n, at)
		}
		return nil
	})
	equal(t, "applied", h.count("applied"), 0)
	equal(t, "replaced", testutil.ToFloat64(h.metrics.rewind.replaced), 0.0)
}
