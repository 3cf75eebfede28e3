package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kmsg"

	"rankcache"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// again deletes a topic and makes it again with changes of another board, and returns the history of that one.
func again(t testing.TB, broker, topic, board string, n int) (h *history, updates []*wire.LedgerUpdate) {
	t.Helper()
	testkit.DeleteTopic(t, broker, topic)
	testkit.CreateTopic(t, broker, topic, 1, nil)
	h = newHistory(rankcache.BoardID(board), 7)
	for i := range n {
		updates = append(updates, h.incr(fmt.Sprint("m", i%7), 1))
	}
	testkit.Produce(t, broker, records(topic, 1, updates)...)
	return h, updates
}

// TestTopicIsMadeAgain: a topic that has more records than were read of the one before is read from its beginning, by a ledger that
// starts and by one that runs, and that is told.
func TestTopicIsMadeAgain(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		broker, topic := testkit.Kfake(t).Addr(), testkit.Name(t)
		testkit.CreateTopic(t, broker, topic, 1, nil)
		histories, updates := boards(1, 10)
		testkit.Produce(t, broker, records(topic, 1, updates)...)
		_, stop := start(t, s, broker, topic, "g")
		await(t, s, 10)
		stop()

		second, _ := again(t, broker, topic, "second", 25)
		l, _ := start(t, s, broker, topic, "g")
		await(t, s, 10+25)
		third, _ := again(t, broker, topic, "third", 60)
		await(t, s, 10+25+60)
		wantProved(t, s, append(histories, second, third))
		testkit.Eventually(t, testTimeout, func() error {
			if st, n := l.Status(), testutil.ToFloat64(l.metrics.replaced); n != 2 || st.Replaced != 2 || st.Behind != 0 {
				return fmt.Errorf("%v partitions were made again, want 2; %+v", n, st)
			}
			return nil
		})
		if n := testutil.ToFloat64(l.metrics.gaps); n != 0 {
			t.Errorf("%v offsets are gone from the topic", n)
		}
	})
}

// TestTopicOfAnEarlierLedger: an offset whose topic was not kept is taken for one of the present topic.
func TestTopicOfAnEarlierLedger(t *testing.T) {
	for _, kind := range testkit.SQLKinds {
		t.Run(kind, func(t *testing.T) {
			s, err := Open(testkit.Database(t, kind), nil)
			must(t, err)
			t.Cleanup(func() { s.Close() })
			broker, topic := testkit.Kfake(t).Addr(), testkit.Name(t)
			testkit.CreateTopic(t, broker, topic, 1, nil)
			_, updates := boards(1, 30)
			testkit.Produce(t, broker, records(topic, 1, updates)...)

			must(t, migrateTo(t, s, 6))
			_, err = s.db.ExecContext(t.Context(), fmt.Sprintf("INSERT INTO rank_offset (topic, part, next) VALUES ('%s', 0, 10)", topic))
			must(t, err)
			l, _ := start(t, s, broker, topic, "g")
			await(t, s, 20)
			if n := testutil.ToFloat64(l.metrics.replaced); n != 0 {
				t.Errorf("%v partitions were made again", n)
			}
			if n := count(t, s, fmt.Sprintf("rank_offset WHERE topic = '%s' AND topic_id <> ''", topic)); n != 1 {
				t.Errorf("the topic of %d partitions is kept, want 1", n)
			}
		})
	}
}

// endsAt0 has a broker answer questions for the ends of partitions with 0, for so many times.
func endsAt0(broker *servers.Kfake, times int64) {
	var asked atomic.Int64
	broker.ControlKey(int16(kmsg.ListOffsets), func(r kmsg.Request) (kmsg.Response, error, bool) {
		broker.KeepControl()
		req := r.(*kmsg.ListOffsetsRequest)
		if of := req.Topics[0].Partitions[0]; of.Timestamp != -1 || asked.Add(1) > times {
			return nil, nil, false
		}
		res, topic, part := req.ResponseKind().(*kmsg.ListOffsetsResponse), kmsg.NewListOffsetsResponseTopic(), kmsg.NewListOffsetsResponseTopicPartition()
		part.Offset, topic.Topic = 0, req.Topics[0].Topic
		topic.Partitions = append(topic.Partitions, part)
		res.Topics = append(res.Topics, topic)
		return res, nil, true
	})
}

// TestTopicEndsBeforeWhatWasRead: the topic was made anew; but it was not if another ledger has read
// what came between the two looks at Kafka and the database.
func TestTopicEndsBeforeWhatWasRead(t *testing.T) {
	broker, topic := testkit.Kfake(t), testkit.Name(t)
	testkit.CreateTopic(t, broker.Addr(), topic, 1, nil)
	s := newStore(t, testkit.Database(t, "postgres"))
	_, updates := boards(1, 20)
	produce := records(topic, 1, updates)
	_, stop := start(t, s, broker.Addr(), topic, "one")
	testkit.Produce(t, broker.Addr(), produce[:10]...)
	await(t, s, 10)
	stop()
	endsAt0(broker, 1)
	_, stop = start(t, s, broker.Addr(), topic, "two")
	testkit.Produce(t, broker.Addr(), produce[10:]...)
	await(t, s, 20)
	stop()

	endsAt0(broker, 1000)
	l, err := New(Options{Store: s, Kafka: map[string]string{"bootstrap.servers": broker.Addr()}, Topic: topic, Group: "three"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	if err := l.Run(ctx); !errors.Is(err, ErrTopic) {
		t.Errorf("the ledger has ended with %v, want ErrTopic", err)
	}
}

// What the topic has lost before it was read is skipped, counted and found by the proof.
func TestRecordsThatAreGone(t *testing.T) {
	s := newStore(t, testkit.Database(t, "postgres"))
	broker, topic := testkit.Kfake(t), testkit.Name(t)
	testkit.CreateTopic(t, broker.Addr(), topic, 1, nil)
	h, updates := boards(1, 30)
	produce := records(topic, 1, updates)
	testkit.Produce(t, broker.Addr(), produce[:10]...)
	_, stop := start(t, s, broker.Addr(), topic, "g")
	await(t, s, 10)
	stop()
	testkit.Produce(t, broker.Addr(), produce[10:]...)
	deleteRecords(t, broker.Addr(), topic, 20)
	l, _ := start(t, s, broker.Addr(), topic, "g")
	await(t, s, 20)
	if n := testutil.ToFloat64(l.metrics.gaps); n != 10 || l.Status().Skipped != 10 {
		t.Errorf("%v offsets skipped, want 10; %+v", n, l.Status())
	}
	p, err := s.Prove(t.Context(), h[0].board)
	if err != nil || p.Proved || p.Missing != 10 || p.Rows != 20 || p.State.Seq != 30 || p.Sum == h[0].sum {
		t.Errorf("%+v, %v: want 10 missing of 30", p, err)
	}
}
