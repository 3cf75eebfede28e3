package ledger

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// isAt is a Redis that has boards at states.
type isAt struct {
	knows
	states map[rankcache.BoardID]rankcache.State
}

func (r isAt) Meta(_ context.Context, board rankcache.BoardID) (meta wire.Meta, found bool, err error) {
	state, found := r.states[board]
	return wire.Meta{State: state}, found, nil
}

// A ledger that runs finds by itself which boards Redis has otherwise, and none that has a final.
func TestLedgerComparesItselfWithRedis(t *testing.T) {
	t.Parallel()
	s := newStore(t, testkit.Database(t, testkit.SQLKinds[0]))
	broker, topic := testkit.Kfake(t).Addr(), testkit.Name(t)
	testkit.CreateTopic(t, broker, topic, 1, nil)
	histories, updates := boards(4, 20)
	testkit.Produce(t, broker, records(topic, 1, updates)...)
	redis := isAt{states: make(map[rankcache.BoardID]rankcache.State)}
	for n, h := range histories {
		state := rankcache.State{Run: h.run, Seq: h.seq, Sum: h.sum, HasSum: true}
		if n < 2 { // one has a final
			state.Sum++
		}
		redis.states[h.board] = state
	}
	must(t, s.SaveFinal(t.Context(), &Final{Final: wire.Final{Board: histories[0].board, Class: "gift"}}))
	l, err := New(Options{Store: s, Redis: redis, Kafka: map[string]string{"bootstrap.servers": broker}, Topic: topic, Group: "g"})
	must(t, err)
	runLedger(t, l)
	testkit.Eventually(t, testTimeout, func() error {
		if st := l.Status(); st.Differs != 1 || st.Behind != 1 || testutil.ToFloat64(l.metrics.differs) != 1 {
			return fmt.Errorf("%+v", st)
		}
		return nil
	})
}

// unread is a Redis that does not answer.
type unread struct{ isAt }

func (unread) Meta(context.Context, rankcache.BoardID) (wire.Meta, bool, error) {
	return wire.Meta{}, false, errors.New("no answer")
}

// A board that differs is not taken for a good one because Redis does not answer.
func TestDifferenceStaysWithoutRedis(t *testing.T) {
	t.Parallel()
	l, err := New(Options{Store: newStore(t, testkit.Database(t, testkit.SQLKinds[0])), Redis: unread{}, Kafka: map[string]string{"bootstrap.servers": "127.0.0.1:1"}, Topic: "t", Group: "g"})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := turn{l: l, differs: map[rankcache.BoardID]string{"b": "another sum"}}
	if err := r.compare(ctx, "b", Now{Reached: func(context.Context) error { return nil }}); err == nil || r.differs["b"] == "" {
		t.Errorf("%v, %v: want the error, and what was known", err, r.differs)
	}
}

// A ledger that is late is not taken for a wrong one: it has what Redis has once it has come to the end of its topic,
// or it is too late to tell. One that lacks it there is wrong.
func TestLateLedgerIsNotWrong(t *testing.T) {
	t.Parallel()
	s := newStore(t, testkit.Database(t, testkit.SQLKinds[0]))
	_, updates := boards(1, 20)
	h := updates[len(updates)-1]
	redis := isAt{states: map[rankcache.BoardID]rankcache.State{h.Board: {Run: h.Run, Seq: h.Seq, Sum: h.Sum, HasSum: true}}}
	l, err := New(Options{Store: s, Redis: redis, Kafka: map[string]string{"bootstrap.servers": "127.0.0.1:1"}, Topic: "t", Group: "g"})
	must(t, err)
	next, _ := feed(t, s, 0, updates[:10]...)
	r := turn{l: l, differs: make(map[rankcache.BoardID]string)}
	late := func(context.Context) error { return ErrBehind }
	if err := r.compare(t.Context(), h.Board, Now{Reached: late}); !errors.Is(err, ErrBehind) || len(r.differs) > 0 {
		t.Errorf("too late to tell: %v, %v", err, r.differs)
	}
	nothing := func(context.Context) error { return nil }
	if err := r.compare(t.Context(), h.Board, Now{Reached: nothing}); err != nil || r.differs[h.Board] == "" {
		t.Errorf("at the end of its topic: %v, %v", err, r.differs)
	}
	rest := func(context.Context) error { feed(t, s, next, updates[10:]...); return nil }
	if err := r.compare(t.Context(), h.Board, Now{Reached: rest}); err != nil || len(r.differs) > 0 {
		t.Errorf("late: %v, %v", err, r.differs)
	}
}
