package kafka

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	ck "github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/twmb/franz-go/pkg/kmsg"

	"rankcache/internal/testkit"
	"rankcache/internal/testkit/kit"
)

// fencing is a cluster that may say of itself that it has no brokers, as one does whose brokers are all fenced.
type fencing struct {
	addr   string
	topic  kmsg.MetadataResponseTopic
	fenced atomic.Bool
	said   atomic.Int64 // how often
}

func newFencing(t *testing.T) *fencing {
	k := testkit.Kfake(t)
	testkit.CreateTopic(t, k.Addr(), "t", 1, nil)
	real, err := kmsg.NewPtrMetadataRequest().RequestWith(t.Context(), testkit.KafkaClient(t, k.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	f := &fencing{addr: k.Addr(), topic: real.Topics[0]}
	p := &f.topic.Partitions[0]
	p.Leader, p.LeaderEpoch, p.ISR, p.ErrorCode = -1, -1, nil, int16(ck.ErrLeaderNotAvailable)
	k.ControlKey(int16(kmsg.Metadata), func(req kmsg.Request) (kmsg.Response, error, bool) {
		k.KeepControl()
		if !f.fenced.Load() {
			return nil, nil, false
		}
		f.said.Add(1)
		answer := req.ResponseKind().(*kmsg.MetadataResponse)
		answer.ClusterID, answer.ControllerID, answer.Topics = real.ClusterID, -1, []kmsg.MetadataResponseTopic{f.topic}
		return answer, nil, true
	})
	return f
}

// happen has both clients hear of it, for a moment more.
func (f *fencing) happen(t *testing.T, more time.Duration) {
	was := f.said.Load()
	f.fenced.Store(true)
	defer f.fenced.Store(false)
	testkit.Eventually(t, 20*time.Second, func() error {
		if f.said.Load() < was+2 {
			return context.DeadlineExceeded
		}
		return nil
	})
	time.Sleep(more)
}

// TestNoBrokersForAMoment: after an answer without brokers producer and consumer go on. Without being told again one of them stood
// still until it was closed, in six of six runs of thirty rounds.
func TestNoBrokersForAMoment(t *testing.T) {
	f := newFencing(t)
	settings := Settings{"bootstrap.servers": f.addr, "topic.metadata.refresh.interval.ms": "500"}
	p, err := NewProducer(nil, settings)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	c, err := NewConsumer(nil, Settings{"group.id": "g", "auto.offset.reset": "earliest"}, settings)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Assign([]TopicPartition{On("t", 0)}); err != nil {
		t.Fatal(err)
	}
	for i := range kit.Sized(3, 30) {
		f.happen(t, time.Duration(i*i%300)*time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		to := On("t", 0)
		if _, err := p.Send(ctx, &Message{TopicPartition: to, Value: []byte("x")}); err != nil {
			t.Fatalf("the producer: %v", err)
		}
		cancel()
		testkit.Eventually(t, 30*time.Second, func() error {
			m, err := c.Record(100 * time.Millisecond)
			if err == nil && m == nil {
				err = context.DeadlineExceeded
			}
			return err
		})
	}
}
