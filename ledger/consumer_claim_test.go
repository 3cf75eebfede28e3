package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"rankcache/internal/kafka"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// Ledgers of two databases in one group would each write a part of the changes: the second refuses, and the first goes on alone. Another
// process of the same database shares the work.
func TestTwoDatabasesInOneGroup(t *testing.T) {
	broker, topic := testkit.Kfake(t).Addr(), testkit.Name(t)
	testkit.CreateTopic(t, broker, topic, 4, nil)
	url := testkit.Database(t, "postgres")
	s, again, other := newStore(t, url), newStore(t, url), newStore(t, testkit.Database(t, "postgres"))
	start(t, s, broker, topic, topic)
	_, updates := boards(8, 5)
	testkit.Produce(t, broker, records(topic, 4, updates)...)
	written := func(want int) {
		t.Helper()
		testkit.Eventually(t, testTimeout, func() error {
			if n := count(t, s, "rank_log"); n != want {
				return fmt.Errorf("%d rows of %d", n, want)
			}
			return nil
		})
	}
	written(len(updates))
	l, err := New(Options{Store: other, Kafka: map[string]string{"bootstrap.servers": broker, "session.timeout.ms": "6000"}, Topic: topic, Group: topic})
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout/2)
	defer cancel()
	if err := l.Run(ctx); !errors.Is(err, ErrOtherDatabase) {
		t.Errorf("another database in the group: %v", err)
	}
	start(t, again, broker, topic, topic)
	h := newHistory("later", 9)
	var later []*wire.LedgerUpdate
	for range 20 {
		later = append(later, h.incr("m", 1))
	}
	testkit.Produce(t, broker, records(topic, 4, later)...)
	written(len(updates) + len(later))
	if n := count(t, other, "rank_log"); n != 0 {
		t.Errorf("the other database has %d changes", n)
	}
}

// Two databases whose ledgers have begun together: what each has noted for its partitions is found by whoever looks later.
func TestTwoDatabasesThatBeginTogether(t *testing.T) {
	broker, topic := testkit.Kfake(t).Addr(), testkit.Name(t)
	testkit.CreateTopic(t, broker, topic, 4, nil)
	theirs := databaseMark + "00000000000000ff" // of a partition that this ledger is not given
	group, err := kafka.NewGroup(nil, topic, kafka.Settings{"bootstrap.servers": broker})
	must(t, err)
	t.Cleanup(func() { group.Close() })
	note := kafka.On(topic, 3)
	note.Metadata = &theirs
	_, err = group.CommitOffsets([]kafka.TopicPartition{note})
	must(t, err)
	l, err := New(Options{Store: newStore(t, testkit.Database(t, "postgres")), Kafka: kafka.Settings{"bootstrap.servers": broker}, Topic: topic})
	must(t, err)
	c := &finder{Ledger: l, ctx: t.Context(), client: group}
	mine := []kafka.TopicPartition{kafka.On(topic, 0)}
	mine[0].Offset = 7
	if err := c.claim(mine); !errors.Is(err, ErrOtherDatabase) || !strings.Contains(err.Error(), theirs) {
		t.Errorf("another database in the group: %v", err)
	}
	if noted, err := group.Committed(mine, 5000); err != nil || noted[0].Offset != 7 || noted[0].Metadata == nil || !strings.HasPrefix(*noted[0].Metadata, databaseMark) {
		t.Errorf("noted for its own partition: %v, %v", noted, err)
	}
}
