package ledger

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"rankcache"
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
