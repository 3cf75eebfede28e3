package ledger

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache/internal/kafka"
	"rankcache/internal/testkit"
)

// TestCoordinatorMoves: the broker that is asked for the writers' offsets does not coordinate
// their group any more, as after each restart of a broker.
func TestCoordinatorMoves(t *testing.T) {
	broker, topic := testkit.Kfake(t), testkit.Name(t)
	testkit.CreateTopic(t, broker.Addr(), topic, 1, nil)
	testkit.Produce(t, broker.Addr(), &kgo.Record{Topic: topic, Value: []byte("x")})
	writer := testkit.KafkaClient(t, broker.Addr(), kgo.ConsumerGroup(topic), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err := writer.CommitRecords(t.Context(), writer.PollFetches(t.Context()).Records()...); err != nil {
		t.Fatal(err)
	}
	client, err := kafka.NewGroup(nil, topic, kafka.Settings{"bootstrap.servers": broker.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	testkit.LoseGroups(broker, 3)
	if err := Reached(t.Context(), client, newStore(t, testkit.Database(t, "postgres")), Feed{Commands: topic, Writers: topic, Ledger: topic + "-ledger"}, time.Minute); err != nil {
		t.Error(err)
	}
}
