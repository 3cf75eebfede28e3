package replay

import (
	"log/slog"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache/internal/kafka"
	"rankcache/internal/testkit"
)

// While a fetch waits at the broker for something new, requests about topics are answered, and
// an update ends the wait.
func TestFetchThatWaitsHoldsUpNothing(t *testing.T) {
	broker, topic := testkit.Kafka(t), testkit.Name(t)
	testkit.CreateTopic(t, broker, topic, 1, nil)
	c, err := newClient(Config{Brokers: broker, Kafka: kafka.Settings{"fetch.wait.max.ms": "50000"}}, newMetrics(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	parts := newTopic(topicInfo{topic, "", 1}, false).parts
	if err := c.assign(parts); err != nil {
		t.Fatal(err)
	}
	record := func() {
		t.Helper()
		testkit.Produce(t, broker, &kgo.Record{Topic: topic, Value: []byte("x")})
		into := make([]kafka.Record, 1)
		for until := time.Now().Add(40 * time.Second); ; time.Sleep(time.Millisecond) {
			if n, _ := c.poll(into); n == 1 {
				return
			}
			if time.Now().After(until) {
				t.Fatal("a record has waited as long as the fetch")
			}
		}
	}
	record()
	for range 10 {
		if _, err := c.describe(t.Context(), []string{topic}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.offsets(t.Context(), parts); err != nil {
			t.Fatal(err)
		}
	}
	record()
	if err := c.close(); err != nil {
		t.Error(err)
	}
}
