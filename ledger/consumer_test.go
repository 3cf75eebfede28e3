package ledger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"rankcache"
	"rankcache/internal/kafka"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// testTimeout is long enough for a busy machine.
const testTimeout = time.Minute

// testLog shows the ledger's log in a failed test.
type testLog struct{ t testing.TB }

func (l testLog) Write(line []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(line)))
	return len(line), nil
}

// start runs a ledger until the test ends or stop is called.
func start(t testing.TB, s *Store, broker, topic, group string) (l *Ledger, stop func()) {
	t.Helper()
	l, err := New(Options{Store: s, Kafka: map[string]string{"bootstrap.servers": broker, "session.timeout.ms": "6000"}, Topic: topic, Group: group,
		Log: slog.New(slog.NewTextHandler(testLog{t}, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return l, runLedger(t, l)
}

// runLedger runs a ledger until the test ends, or stop is called.
func runLedger(t testing.TB, l *Ledger) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() {
		if err := l.Run(ctx); err != nil && !errors.Is(err, errKilled) {
			t.Error("run:", err)
		}
	})
	stop = func() { cancel(); ended.Wait() }
	t.Cleanup(stop)
	return stop
}

var errKilled = errors.New("killed by the test")

// records encodes updates for a topic, all of a board into one partition.
func records(topic string, partitions int32, updates []*wire.LedgerUpdate) []*kgo.Record {
	all := make([]*kgo.Record, len(updates))
	for i, u := range updates {
		var p int32
		for _, c := range u.Board {
			p = (p*31 + c) % partitions
		}
		all[i] = &kgo.Record{Topic: topic, Partition: p, Key: []byte(u.Board), Value: wire.AppendLedgerUpdate(nil, u)}
	}
	return all
}

// boards makes n changes of each of several boards, in turn.
func boards(names, n int) (histories []*history, updates []*wire.LedgerUpdate) {
	for i := range names {
		histories = append(histories, newHistory(rankcache.BoardID(fmt.Sprint("board-", i)), 5))
	}
	for i := range n {
		for _, h := range histories {
			updates = append(updates, h.incr(fmt.Sprint("m", i%17), 1))
		}
	}
	return histories, updates
}

// await waits until the ledger has so many rows.
func await(t testing.TB, s *Store, n int) {
	t.Helper()
	testkit.Eventually(t, testTimeout, func() error {
		got, err := tryCount(t, s, "rank_log")
		if err == nil && got != n {
			err = fmt.Errorf("%d rows, want %d", got, n)
		}
		return err
	})
}

func wantProved(t testing.TB, s *Store, histories []*history) {
	t.Helper()
	for _, h := range histories {
		wantScores(t, s, h)
		r, err := s.Prove(t.Context(), h.board)
		if err != nil || !r.whole() || r.Proved != (r.Aside == 0) || r.State != (rankcache.State{Run: h.run, Seq: h.seq, Sum: h.sum, HasSum: true}) {
			t.Errorf("%s: %+v, %v", h.board, r, err)
		}
		if why, err := s.Fold(t.Context(), h.board); err != nil || why != "" {
			t.Errorf("%s is folded: %s, %v", h.board, why, err)
		}
	}
}

func TestTopicIsWritten(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *Store) {
		broker, topic := testkit.Kfake(t).Addr(), testkit.Name(t)
		testkit.CreateTopic(t, broker, topic, 3, nil)
		histories, updates := boards(5, 100)
		produce := records(topic, 3, updates)
		produce = append(produce, &kgo.Record{Topic: topic, Partition: 1, Value: []byte("no change")})
		testkit.Produce(t, broker, produce...)
		l, _ := start(t, s, broker, topic, "g")
		await(t, s, len(updates))
		wantProved(t, s, histories)
		testkit.Eventually(t, testTimeout, func() error {
			if st := l.Status(); st.Rows != int64(len(updates)) || st.Bad != 1 || st.Behind != 0 || st.Partitions != 3 || st.Schema != s.Wanted() || st.Waiting != "" {
				return fmt.Errorf("status %+v", st)
			}
			return nil
		})
		if n := count(t, s, "rank_bad"); n != 1 {
			t.Errorf("%d bad records, want 1", n)
		}
	})
}

// A consumer that dies at any step of a batch leaves no row twice and none out.
func TestKilledAtEachStep(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *Store) {
		broker, topic := testkit.Kfake(t).Addr(), testkit.Name(t)
		testkit.CreateTopic(t, broker, topic, 2, nil)
		histories, updates := boards(4, 60)
		produce := records(topic, 2, updates)
		for i, step := range []string{"offsets", "log", "boards", "committed"} {
			part := produce[i*len(produce)/4 : (i+1)*len(produce)/4]
			ctx, kill := context.WithCancelCause(t.Context())
			var hits atomic.Int32
			s.fault = func(at string) error {
				if at != step || hits.Add(1) > 1 {
					return nil
				}
				kill(errKilled)
				return errKilled
			}
			l, err := New(Options{Store: s, Kafka: map[string]string{"bootstrap.servers": broker}, Topic: topic, Group: "g" + step})
			if err != nil {
				t.Fatal(err)
			}
			var ended sync.WaitGroup
			ended.Go(func() { _ = l.Run(ctx) })
			testkit.Produce(t, broker, part...)
			ended.Wait()
		}
		s.fault = nil
		start(t, s, broker, topic, "last")
		await(t, s, len(updates))
		wantProved(t, s, histories)
	})
}

// Two consumers of different groups read the same records: the offsets' guard has each
// written once.
func TestTwoConsumersAtOnce(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *Store) {
		broker, topic := testkit.Kfake(t).Addr(), testkit.Name(t)
		testkit.CreateTopic(t, broker, topic, 2, nil)
		histories, updates := boards(4, 150)
		one, _ := start(t, s, broker, topic, "one")
		two, _ := start(t, s, broker, topic, "two")
		produce := records(topic, 2, updates)
		for part := range 6 {
			testkit.Produce(t, broker, produce[part*len(produce)/6:(part+1)*len(produce)/6]...)
		}
		await(t, s, len(updates))
		wantProved(t, s, histories)
		if rows := testutil.ToFloat64(one.metrics.rows.WithLabelValues("written")) + testutil.ToFloat64(two.metrics.rows.WithLabelValues("written")); rows != float64(len(updates)) {
			t.Errorf("%v rows written by both, want %d", rows, len(updates))
		}
	})
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
