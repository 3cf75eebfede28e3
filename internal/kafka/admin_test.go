package kafka_test

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"rankcache/internal/kafka"
	"rankcache/internal/testkit"
)

// TestEndThatIsNotTold is no end that a reader has reached.
func TestEndThatIsNotTold(t *testing.T) {
	broker := testkit.Kfake(t)
	topic := testkit.Name(t)
	testkit.CreateTopic(t, broker.Addr(), topic, 1, nil)
	p, err := kafka.NewProducer(nil, kafka.Settings{"bootstrap.servers": broker.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if ends, err := p.Offsets(t.Context(), topic, 1, kafka.End); err != nil || ends[0] != 0 {
		t.Error(ends, err)
	}
	broker.ControlKey(int16(kmsg.ListOffsets), func(r kmsg.Request) (kmsg.Response, error, bool) {
		broker.KeepControl()
		res := r.ResponseKind().(*kmsg.ListOffsetsResponse)
		part := kmsg.NewListOffsetsResponseTopicPartition()
		part.Offset = -1
		res.Topics = []kmsg.ListOffsetsResponseTopic{{Topic: topic, Partitions: []kmsg.ListOffsetsResponseTopicPartition{part}}}
		return res, nil, true
	})
	if ends, err := p.Offsets(t.Context(), topic, 1, kafka.End); err == nil || !strings.Contains(err.Error(), "has not answered") {
		t.Error(ends, err)
	}
}
