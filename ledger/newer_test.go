package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache/internal/testkit"
	"rankcache/wire"
)

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
