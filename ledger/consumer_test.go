package ledger

import (
	"bytes"
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

	"rankcache"
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

// TestBatchRefusedForItsSize: what the database does not take at once is written in parts. PostgreSQL has no limit that small, so a
// trigger refuses as it does.
func TestBatchRefusedForItsSize(t *testing.T) {
	for _, kind := range testkit.SQLKinds {
		t.Run(kind, func(t *testing.T) {
			var url string
			if kind == "mysql" {
				url = testkit.NewDatabase(t, kind, testkit.StartSQL(t, kind, servers.SQLOptions{Args: []string{"--max-allowed-packet=16384"}}).Addr())
			} else {
				url = testkit.Database(t, kind)
			}
			s := newStore(t, url)
			if kind == "postgres" {
				_, err := testkit.SQL(t, url).Exec(`CREATE FUNCTION few() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
					IF (SELECT count(*) FROM added) > 200 THEN RAISE 'too many rows' USING ERRCODE = 'program_limit_exceeded'; END IF; RETURN NULL; END $$;
					CREATE TRIGGER few AFTER INSERT ON rank_log REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION few()`)
				must(t, err)
			}
			broker, topic := testkit.Kfake(t).Addr(), testkit.Name(t)
			testkit.CreateTopic(t, broker, topic, 2, nil)
			histories, updates := boards(4, 150)
			testkit.Produce(t, broker, records(topic, 2, updates)...)
			l, _ := start(t, s, broker, topic, "g")
			await(t, s, len(updates))
			wantProved(t, s, histories)
			if err := l.WriteError(); err != nil {
				t.Errorf("all is written, and the state is %v", err)
			}
		})
	}
}

// newer is a change as a writer of a later version may publish it.
func newer(u *wire.LedgerUpdate) []byte {
	return append(bytes.Replace(wire.AppendLedgerUpdate(nil, u), []byte(`{"v":2,`), []byte(`{"v":7,"mood":"good",`), 1), ' ')
}

// A change of a newer writer ends the reading, and is not put aside: another ledger may read it. A forged one of a run
// that nobody has given holds nothing up.
func TestNewerWriterEndsTheReading(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *Store) {
		broker, topic := testkit.Kfake(t).Addr(), testkit.Name(t)
		testkit.CreateTopic(t, broker, topic, 1, nil)
		h := newHistory("b", 5)
		first, later := records(topic, 1, []*wire.LedgerUpdate{h.incr("a", 1), h.incr("b", 2)}), h.clone()
		forged := later.clone()
		forged.run = 4711
		testkit.Produce(t, broker, append(first, &kgo.Record{Topic: topic, Value: newer(forged.incr("a", 1))}, &kgo.Record{Topic: topic, Value: []byte(`{"v":7,"board":"b"}`)})...)
		testkit.Produce(t, broker, records(topic, 1, []*wire.LedgerUpdate{h.incr("a", 3)})...)
		l, _ := start(t, s, broker, topic, "g")
		await(t, s, 3)
		if n := count(t, s, "rank_bad"); n != 2 || l.WriteError() != nil && errors.Is(l.WriteError(), ErrNewer) {
			t.Errorf("%d bad records, %v: want two, and no error", n, l.WriteError())
		}
		change := h.incr("a", 4)
		testkit.Produce(t, broker, &kgo.Record{Topic: topic, Value: newer(change)})
		testkit.Produce(t, broker, records(topic, 1, []*wire.LedgerUpdate{h.incr("b", 1)})...)
		testkit.Eventually(t, testTimeout, func() error {
			if err := l.WriteError(); !errors.Is(err, ErrNewer) || l.Status().Waiting != "upgrade" {
				return fmt.Errorf("%v, %+v", err, l.Status())
			}
			return nil
		})
		if n, bad := count(t, s, "rank_log"), count(t, s, "rank_bad"); n != 3 || bad != 2 {
			t.Errorf("%d rows, %d bad records, want 3 and 2", n, bad)
		}
		aside, err := New(Options{Store: s, Kafka: map[string]string{"bootstrap.servers": broker, "session.timeout.ms": "6000"}, Topic: topic, Group: "g", PutAside: true})
		must(t, err)
		runLedger(t, aside)
		await(t, s, 4)
		if bad := count(t, s, "rank_bad"); bad != 3 {
			t.Errorf("%d bad records, want what was put aside, too", bad)
		}
	})
}
