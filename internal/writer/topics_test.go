package writer

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"rankcache/internal/testkit"
)

// A board's topic is made when its first update comes, with the settings asked
// for.
func TestTopicIsMade(t *testing.T) {
	h := newHouse(t, testkit.Kafka(t), func(o *Options) {
		o.Topics.Partitions, o.Topics.Settings = 3, map[string]string{"cleanup.policy": "compact"}
	})
	h.run(t)
	status, answer := h.post(t, h.command("o1", "a"))
	equal(t, "status "+answer, status, 200)
	got := topicConfig(t, h.kafka, h.opts.Names.Topic(h.board))
	equal(t, "settings", []string{got["cleanup.policy"], got["retention.ms"]}, []string{"compact", "-1"})
	equal(t, "partitions", partitions(t, h.kafka, h.opts.Names.Topic(h.board)), 3)
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

// Somebody deletes a board's topic while the writer knows it: the next update
// makes it again instead of failing for ever.
func TestDeletedTopicIsMadeAgain(t *testing.T) {
	broker := testkit.Kfake(t)
	h := newHouse(t, broker.Addr(), nil)
	h.run(t)
	status, answer := h.post(t, h.command("o1", "a"))
	equal(t, answer, status, 200)
	must(t, broker.DeleteTopic(h.opts.Names.Topic(h.board)))
	testkit.Eventually(t, patience, func() error {
		if status, answer := h.post(t, h.command("o2", "a")); status != 200 {
			return fmt.Errorf("%d %s", status, answer)
		}
		return nil
	})
	if broker.TopicInfo(h.opts.Names.Topic(h.board)) == nil {
		t.Error("acknowledged by a topic that is not there")
	}
}

func TestKnownTopicsAreBounded(t *testing.T) {
	topics := newTopics(Topics{}, newMetrics(nil))
	for i := range maxKnownTopics + 1 {
		topics.note(fmt.Sprint(i))
	}
	equal(t, "known", len(topics.known), 1)
	equal(t, "asked for once", len(topics.unknown([]string{"a", "a", fmt.Sprint(maxKnownTopics)})), 1)
}
