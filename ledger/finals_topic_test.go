package ledger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache"
	"rankcache/class"
	"rankcache/internal/kafka"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// finalFrom makes the final of boards, of which top places are published.
func finalFrom(whole rankcache.BoardID, top int, form rankcache.ScoreForm, of ...*history) *Final {
	f := &Final{Final: wire.Final{Board: whole, Class: "gift", Dims: map[string]string{"zone": "7"}, Tag: "20261122", Start: 1, End: 2, Form: form, File: "file:///f"}}
	f.HasSum = true
	for _, h := range of {
		f.Run, f.Seq, f.Sum, f.Members = max(f.Run, h.run), f.Seq+h.seq, (f.Sum+h.sum)&wire.SumMask, f.Members+len(h.scores)
		for m, score := range h.scores {
			f.Rows = append(f.Rows, rankcache.Entry{Member: m, Score: score})
		}
	}
	ByRank(f.Rows)
	f.Top = f.Rows[:min(top, len(f.Rows))]
	return f
}

// A database from an older dump has the finals again that were made since, with all rows that it knows, before any is made.
func TestFinalsAfterAnOldDump(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		broker, updates := testkit.Kfake(t).Addr(), testkit.Name(t)
		topic := updates + "-finals"
		testkit.CreateTopic(t, broker, updates, 1, nil)
		testkit.CreateTopic(t, broker, topic, 1, nil)
		whole, ties, gone, kept := newHistory("whole", 7), newHistory("ties", 7), newHistory("gone", 7), newHistory("kept", 7)
		shards := []*history{newHistory(class.ShardID("split", 0), 7), newHistory(class.ShardID("split", 1), 9)}
		var rows []*wire.LedgerUpdate
		for i := range 5 {
			for _, h := range append(shards, whole, ties, kept) {
				rows = append(rows, h.change(wire.OpSet, fmt.Sprint("m", i, h.board), float64(i)+0.5, ""))
			}
		}
		gone.incr("m1", 3)
		gone.incr("m2", 4)
		feed(t, s, 0, rows...)
		made := []*Final{finalFrom("whole", 2, 0, whole), finalFrom("ties", 2, rankcache.ScoreInteger, ties), finalFrom("split", 3, 0, shards...), finalFrom("gone", 1, 0, gone)}
		there := finalFrom("kept", 2, 0, kept)
		there.Rows, there.File = nil, "file:///as-it-was"
		must(t, s.SaveFinal(t.Context(), there))
		publish := func(finals ...*Final) {
			for _, f := range finals {
				value, err := wire.EncodeFinal(&f.Final)
				must(t, err)
				testkit.Produce(t, broker, &kgo.Record{Topic: topic, Value: value})
			}
		}
		publish(made[0])
		testkit.Produce(t, broker, &kgo.Record{Topic: topic, Value: []byte("no final")})
		publish(made[1:]...)
		publish(finalFrom("kept", 2, 0, kept), made[0])

		client, err := kafka.NewGroup(nil, topic, kafka.Settings{"bootstrap.servers": broker})
		must(t, err)
		defer client.Close()
		if err := Published(t.Context(), client.Admin, s, topic, 2*time.Second); !errors.Is(err, ErrBehind) {
			t.Errorf("nobody reads them: %v", err)
		}
		l := startWithFinals(t, s, broker, updates, topic)
		must(t, Published(t.Context(), client.Admin, s, topic, time.Minute))
		made[3].Rows = made[3].Top
		for _, want := range append(made, there) {
			got, err := s.FinalOf(t.Context(), want.Board, 0, 100)
			must(t, err)
			if got == nil {
				t.Errorf("%s has no final", want.Board)
				continue
			}
			if want.Rows == nil {
				want.Rows = want.Top
			}
			want.Top, want.Kept, want.Rows, want.MadeAt = want.Rows, len(want.Rows), nil, got.MadeAt
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", want.Board, diff)
			}
		}
		if s := l.Status(); s.Skipped != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// What is gone from the topic of finals before it was read is named.
func TestFinalsOlderThanTheirTopic(t *testing.T) {
	s := newStore(t, testkit.Database(t, "postgres"))
	broker, updates := testkit.Kfake(t).Addr(), testkit.Name(t)
	topic := updates + "-finals"
	testkit.CreateTopic(t, broker, updates, 1, nil)
	testkit.CreateTopic(t, broker, topic, 1, nil)
	must(t, s.Begin(t.Context(), topic, 0, 0)) // of the dump
	for i := range 5 {
		h := newHistory(rankcache.BoardID(fmt.Sprint("b", i)), 7)
		h.incr("m", 1)
		value, err := wire.EncodeFinal(&finalFrom(h.board, 1, 0, h).Final)
		must(t, err)
		testkit.Produce(t, broker, &kgo.Record{Topic: topic, Value: value})
	}
	deleteRecords(t, broker, topic, 3)
	l := startWithFinals(t, s, broker, updates, topic)
	testkit.Eventually(t, time.Minute, func() error {
		if n := count(t, s, "rank_final_board"); n != 2 || l.Status().Skipped != 3 {
			return fmt.Errorf("%d finals, %+v", n, l.Status())
		}
		return nil
	})
}

func startWithFinals(t *testing.T, s *Store, broker, topic, finals string) *Ledger {
	t.Helper()
	l, err := New(Options{Store: s, Kafka: map[string]string{"bootstrap.servers": broker}, Topic: topic, Finals: finals, Group: topic, Log: slog.New(slog.NewTextHandler(testLog{t}, nil))})
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	t.Cleanup(func() { cancel(); must(t, <-ended) })
	return l
}
