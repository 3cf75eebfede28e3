package writer

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/rooms"
	"rankcache/wire"
)

// A board's topic is created before its first update, with the configured settings.
func TestTopicIsCreated(t *testing.T) {
	h := newFixture(t, testkit.Kafka(t), func(o *Options) {
		o.Topics.Partitions, o.Topics.Settings = 3, map[string]string{"cleanup.policy": "compact"}
	})
	h.run(t)
	status, answer := h.post(t, h.command("o1", "a"))
	equal(t, "status "+answer, status, 200)
	got := topicConfig(t, h.kafka, h.opts.Names.Topic(h.board))
	equal(t, "settings", []string{got["cleanup.policy"], got["retention.ms"]}, []string{"compact", "-1"})
	equal(t, "partitions of a board's own topic", partitions(t, h.kafka, h.opts.Names.Topic(h.board)), 1)
	equal(t, "command partitions", partitions(t, h.kafka, h.opts.Names.Commands), 2)
}

func topicConfig(t *testing.T, addr, topic string) map[string]string {
	t.Helper()
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: topic}}
	resp, err := req.RequestWith(t.Context(), testkit.KafkaClient(t, addr))
	must(t, err)
	config := make(map[string]string)
	for _, c := range resp.Resources[0].Configs {
		if c.Value != nil {
			config[c.Name] = *c.Value
		}
	}
	return config
}

func partitions(t *testing.T, addr, topic string) int {
	t.Helper()
	req := kmsg.NewPtrMetadataRequest()
	rt := kmsg.NewMetadataRequestTopic()
	rt.Topic = &topic
	req.Topics = append(req.Topics, rt)
	resp, err := req.RequestWith(t.Context(), testkit.KafkaClient(t, addr))
	must(t, err)
	return len(resp.Topics[0].Partitions)
}

// After a known topic was deleted the next update creates it again instead of failing
// for ever.
func TestDeletedTopicIsCreatedAgain(t *testing.T) {
	t.Parallel()
	broker := testkit.Kfake(t)
	h := newFixture(t, broker.Addr(), nil)
	h.run(t)
	status, answer := h.post(t, h.command("o1", "a"))
	equal(t, answer, status, 200)
	must(t, broker.DeleteTopic(h.opts.Names.Topic(h.board)))
	testkit.Eventually(t, testTimeout, func() error {
		if status, answer := h.post(t, h.command("o2", "a")); status != 200 {
			return fmt.Errorf("%d %s", status, answer)
		}
		return nil
	})
	if broker.TopicInfo(h.opts.Names.Topic(h.board)) == nil {
		t.Error("update acknowledged without a topic")
	}
}

// A board that rooms name has a topic although nobody changes it, so that sidecars can follow it.
func TestTopicOfAQuietBoard(t *testing.T) {
	t.Parallel()
	broker := testkit.Kfake(t)
	quiet, hot := rankcache.BoardID("9_9_1"), rankcache.BoardID("9_9_2")
	h := newFixture(t, broker.Addr(), func(o *Options) {
		o.Tiers = tiers{boards: map[rankcache.BoardID]rooms.Mode{quiet: rooms.ModeSuperHot, hot: rooms.ModeHot}}
	})
	h.run(t)
	testkit.Eventually(t, testTimeout, func() error {
		if broker.TopicInfo(h.opts.Names.Topic(quiet)) == nil {
			return errors.New("no topic")
		}
		return nil
	})
	if broker.TopicInfo(h.opts.Names.Topic(hot)) != nil {
		t.Error("a board that is not super-hot has a topic")
	}
}

func TestKnownTopicsAreLimited(t *testing.T) {
	topics := newTopics(Topics{}, wire.Names{}, tiers{}, newMetrics(nil))
	for i := range maxKnownTopics + 1 {
		topics.note(fmt.Sprint(i))
	}
	equal(t, "known", len(topics.known), 1)
	equal(t, "unknown", len(topics.unknown([]string{"a", "a", fmt.Sprint(maxKnownTopics)})), 1)
}

// While a broker is slow to make a topic, the lock of the Kafka client is free: a new
// login is set.
func TestSlowTopicBlocksNoOther(t *testing.T) {
	broker := testkit.Kfake(t)
	h := newFixture(t, broker.Addr(), nil)
	h.posts.time = testTimeout
	h.run(t)
	status, answer := h.post(t, h.command("o1", "a"))
	equal(t, answer, status, 200)

	asked, release := make(chan struct{}), make(chan struct{})
	broker.ControlKey(int16(kmsg.CreateTopics), func(kmsg.Request) (kmsg.Response, error, bool) {
		close(asked)
		broker.SleepControl(func() { <-release })
		return nil, nil, false // once
	})
	ended := make(chan int, 1)
	go func() {
		status, _ := h.post(t, strings.Replace(h.command("o2", "a"), string(h.board), string(h.board)+"x", 1))
		ended <- status
	}()
	<-asked
	must(t, h.producer.Load().setLogin("user", "password"))
	select {
	case <-ended:
		t.Error("the topic was made before the broker went on")
	default:
	}
	close(release)
	equal(t, "slow post", <-ended, 200)
}

// The boards of a class and day share a topic, which is there before the first of them
// begins: a board is in one partition. What is applied to an ended board is published as long as it
// lingers.
func TestTopicOfAClass(t *testing.T) {
	broker := testkit.Kfake(t)
	file, err := rooms.Parse([]byte(`classes: [{name: gift-minute, board: "` + lastPart(testkit.Name(t)) + `:{zone}:{period}", period: 1m, lead: 1h, mode: super-hot, dims: {zone: ["7", "8"]}}]`))
	must(t, err)
	h := newFixture(t, broker.Addr(), func(o *Options) { o.Tiers, o.Topics.Partitions = tiers{all: rooms.ModeSuperHot, file: file}, 4 })
	kind := file.Class("gift-minute")
	board, err := kind.At(map[string]string{"zone": "7"}, time.UnixMilli(h.at))
	must(t, err)
	topic := "update_class_gift-minute." + board.Period.Tag[:8]
	h.run(t)
	testkit.Eventually(t, testTimeout, func() error {
		if broker.TopicInfo(topic) == nil {
			return fmt.Errorf("no topic %s", topic)
		}
		return nil
	})
	for i, member := range []string{"a", "b", "c", "d", "e", "f"} {
		status, answer := h.post(t, strings.Replace(h.inClass(fmt.Sprint("o", i), "7", h.at), `"a"`, `"`+member+`"`, 1))
		equal(t, answer, status, 200)
	}
	equal(t, "partitions", partitions(t, broker.Addr(), topic), 4)
	records := testkit.Records(t, broker.Addr(), topic, 6)
	for _, r := range records {
		equal(t, "key and partition", []any{string(r.Key), r.Partition}, []any{string(board.ID), records[0].Partition})
	}
	over := board.Period.End.Add(kind.Grace)
	topics := func(now time.Time) int {
		w := Writer{processor: &processor{opts: Options{Names: h.opts.Names, Tiers: tiers{file: file, now: now}}}}
		return len(w.superHotTopics(now))
	}
	equal(t, "topics", topics(over), 6) // of the ended, the running and the next period
	equal(t, "topics without ended boards", topics(over.Add(time.Millisecond)), 4)
	job := &job{Command: &Command{Board: board.ID}, rules: rulesOf(board, kind)}
	for after, want := range map[time.Duration]int{kind.Grace: 1, kind.Grace + 30*time.Second: 1, kind.Grace + 30*time.Second + time.Millisecond: 0} {
		now := board.Period.End.Add(after)
		named := (&rooms.File{Rules: file.ClassBoards(now)}).Resolve(nil)
		p := &processor{opts: Options{Names: h.opts.Names, Kafka: h.opts.Kafka, Tiers: tiers{all: named.Mode(board.ID, ""), file: file}},
			applier: &applier{caller: &caller{adopter: &adopter{now: func() time.Time { return now }}}}}
		equal(t, fmt.Sprintf("published %v after the end", after), len(p.appendUpdate(nil, job)), want)
	}
}
