package kafka_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache/internal/kafka"
	"rankcache/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// onBoth runs a test on Kafka and on kfake.
func onBoth(t *testing.T, test func(t *testing.T, broker string)) {
	t.Run("kafka", func(t *testing.T) { test(t, testkit.Kafka(t)) })
	t.Run("kfake", func(t *testing.T) { test(t, testkit.Kfake(t).Addr()) })
}

// reading is a consumer of a test, which assigns its partitions itself.
type reading struct {
	*kafka.Consumer
	t    *testing.T
	into []kafka.Record
}

func newReading(t *testing.T, broker string) *reading {
	c, err := kafka.NewConsumer(nil, kafka.Settings{"bootstrap.servers": broker, "group.id": "batches", "enable.auto.commit": "false",
		"auto.offset.reset": "earliest", "enable.partition.eof": "true"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return &reading{c, t, make([]kafka.Record, 100)}
}

// batch returns the next records or event.
func (r *reading) batch() ([]kafka.Record, kafka.Event) {
	r.t.Helper()
	for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(time.Millisecond) {
		if n, other := r.Records(r.into); n > 0 || other != nil {
			return r.into[:n], other
		}
	}
	r.t.Fatal("no record or event in a minute")
	return nil, nil
}

// ends reads up to the ends of so many partitions, and returns the values of each, in order.
func (r *reading) ends(partitions int) map[kafka.Partition][][]byte {
	r.t.Helper()
	got := make(map[kafka.Partition][][]byte)
	for partitions > 0 {
		records, other := r.batch()
		for _, is := range records {
			at := kafka.Partition{Topic: is.Topic, Number: is.Partition}
			if is.Offset != int64(len(got[at])) {
				r.t.Fatalf("%v: offset %d after %d records", at, is.Offset, len(got[at]))
			}
			got[at] = append(got[at], is.Value)
		}
		switch ev := other.(type) {
		case kafka.PartitionEOF:
			partitions--
			if at := (kafka.Partition{Topic: *ev.Topic, Number: ev.Partition}); int(ev.Offset) != len(got[at]) {
				r.t.Fatalf("the end of %v at %d, after %d records", at, ev.Offset, len(got[at]))
			}
		case kafka.Error:
			r.t.Fatal(ev)
		}
	}
	return got
}

// fillTopic makes a topic of two partitions with records of several lengths, and returns where it begins.
func fillTopic(t *testing.T, broker string, records int) (topic string, parts []kafka.TopicPartition) {
	topic = testkit.Name(t)
	testkit.CreateTopic(t, broker, topic, 2, nil)
	all := make([]*kgo.Record, records)
	for i := range all {
		all[i] = &kgo.Record{Topic: topic, Partition: int32(i % 2), Value: valueOf(topic, i)}
	}
	cl := testkit.KafkaClient(t, broker, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err := cl.ProduceSync(t.Context(), all...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	for p := range int32(2) {
		parts = append(parts, kafka.TopicPartition{Topic: &topic, Partition: p, Offset: 0})
	}
	return topic, parts
}

// valueOf is empty for each tenth record, and of up to some 20 kB.
func valueOf(topic string, i int) []byte {
	if i%10 == 0 {
		return nil
	}
	return bytes.Repeat([]byte(fmt.Sprint(topic, i)), i)
}

// TestRecordsComeWhole in the order of their partitions, up to the ends.
func TestRecordsComeWhole(t *testing.T) { onBoth(t, recordsComeWhole) }

func recordsComeWhole(t *testing.T, broker string) {
	const records = 1000
	r := newReading(t, broker)
	var all []kafka.TopicPartition
	var topics []string
	for range 2 {
		topic, parts := fillTopic(t, broker, records)
		topics, all = append(topics, topic), append(all, parts...)
	}
	if err := r.IncrementalAssign(all); err != nil {
		t.Fatal(err)
	}
	got := r.ends(len(all))
	for _, topic := range topics {
		for i := range records {
			values := got[kafka.Partition{Topic: topic, Number: int32(i % 2)}]
			if len(values) != records/2 || !bytes.Equal(values[i/2], valueOf(topic, i)) {
				t.Fatalf("record %d of %s is not the one of %d that was written", i, topic, len(values))
			}
		}
	}
}

// TestRecordsOfTopicThatIsNotReadAreGone, those that librdkafka holds too, also when the topic is read again.
func TestRecordsOfTopicThatIsNotReadAreGone(t *testing.T) { onBoth(t, recordsAreGone) }

func recordsAreGone(t *testing.T, broker string) {
	r := newReading(t, broker)
	first, parts := fillTopic(t, broker, 1000)
	_, others := fillTopic(t, broker, 1000)
	if err := r.IncrementalAssign(parts); err != nil {
		t.Fatal(err)
	}
	for n := 0; n < 10; {
		records, _ := r.batch()
		n += len(records)
	}
	if err := r.IncrementalUnassign(parts); err != nil {
		t.Fatal(err)
	}
	if err := r.IncrementalAssign(others); err != nil {
		t.Fatal(err)
	}
	if got := r.ends(2); len(got) != 2 || got[kafka.Partition{Topic: first}] != nil {
		t.Error("records of a topic that is not read any more")
	}
	if err := r.IncrementalAssign(parts); err != nil {
		t.Fatal(err)
	}
	if got := r.ends(2); len(got[kafka.Partition{Topic: first}]) != 500 {
		t.Error("a topic that is read again has not all its records")
	}
}

// TestErrorsComeWithRecords as events of their own, with Kafka's code and text.
func TestErrorsComeWithRecords(t *testing.T) {
	r := newReading(t, "127.0.0.1:1")
	_, other := r.batch()
	err, ok := other.(kafka.Error)
	if !ok || kafka.Code(err) != kafka.ErrTransport || !strings.Contains(err.Error(), "127.0.0.1:1") || kafka.Fatal(err) {
		t.Errorf("%T %v", other, other)
	}
}
