package replay

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache/internal/kafka"
	"rankcache/internal/testkit"
)

// With more partitions than one of librdkafka's clients may have there are several: each record comes once,
// none of a partition that is not read any more does, and room that it left is used again.
func TestReadersShareThePartitions(t *testing.T) {
	broker := testkit.Kafka(t)
	c, err := newClient(Config{Brokers: broker}, newMetrics(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	c.readers.each = 2
	var topics []*topic
	for range 5 {
		name := testkit.Name(t)
		testkit.CreateTopic(t, broker, name, 1, nil)
		topics = append(topics, newTopic(topicInfo{name, "", 1}, false))
	}
	read := func(of ...int) {
		t.Helper()
		var want, got []string
		for i, topic := range topics {
			testkit.Produce(t, broker, &kgo.Record{Topic: topic.name, Value: fmt.Append(nil, i)})
			if slices.Contains(of, i) {
				want = append(want, fmt.Sprint(i))
			}
		}
		into := make([]kafka.Record, 10)
		testkit.Eventually(t, time.Minute, func() error {
			n, _ := c.poll(into)
			for _, r := range into[:n] {
				got = append(got, string(r.Value))
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				return fmt.Errorf("read %v, want %v", got, want)
			}
			return nil
		})
	}
	for _, topic := range topics {
		if err := c.assign(topic.parts); err != nil {
			t.Fatal(err)
		}
	}
	read(0, 1, 2, 3, 4)
	if n := len(c.readers.all); n != 3 {
		t.Errorf("%d readers of 5 partitions", n)
	}
	if err := c.unassign(topics[1].parts); err != nil {
		t.Fatal(err)
	}
	read(0, 2, 3, 4)
	topics[1].parts[0].from = 2
	if err := c.assign(topics[1].parts); err != nil {
		t.Fatal(err)
	}
	read(0, 1, 2, 3, 4)
	if n := len(c.readers.all); n != 3 {
		t.Errorf("%d readers of 5 partitions, after one was read again", n)
	}
	if err := c.close(); err != nil {
		t.Error(err)
	}
}
