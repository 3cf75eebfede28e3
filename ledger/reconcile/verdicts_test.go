package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// TestSetsWithFractions: a set of 1.5 is the same on both sides, and others differ, that of 1 too.
func TestSetsWithFractions(t *testing.T) {
	s := newScene(t, testkit.SQLKinds[0])
	e := entry{order: "half", member: "m", op: wire.OpSet, number: 1.5, at: now.Add(-5 * time.Minute).UnixMilli()}
	s.write(e)
	s.apply(e)
	var posted []*wire.LedgerUpdate
	wantCounts(t, s.compare(s.reconciler(&posted)), map[string]int{})
	for _, other := range []string{"2.5", "1"} {
		s.exec("UPDATE gifts SET amount = " + other)
		wantCounts(t, s.compare(s.reconciler(&posted)), map[string]int{Different: 1})
	}
}

// TestSetsOfBoardsWithTies: what the books have is the score that is shown.
func TestSetsOfBoardsWithTies(t *testing.T) {
	s := newScene(t, testkit.SQLKinds[0])
	e := entry{order: "tied", member: "m", op: wire.OpSet, number: 10, at: now.Add(-5 * time.Minute).UnixMilli()}
	s.write(e)
	e.number, e.form = wire.TieScore(10, 1, false), rankcache.ScoreInteger
	s.apply(e)
	var posted []*wire.LedgerUpdate
	wantCounts(t, s.compare(s.reconciler(&posted)), map[string]int{})
	s.exec("UPDATE gifts SET amount = 11")
	r := s.compare(s.reconciler(&posted))
	wantCounts(t, r, map[string]int{Different: 1})
	if got := r.Differences[0].Ledger.String(); got != "set 10" {
		t.Errorf("the report has %q of the ledger, want the score that is shown", got)
	}
}

// TestNoNumberIsBad: a NULL is not posted as a score of 0; a delete needs no number.
func TestNoNumberIsBad(t *testing.T) {
	for _, kind := range testkit.SQLKinds {
		s := newScene(t, kind)
		at := now.Add(-2 * time.Minute).UnixMilli()
		s.write(entry{order: "set", member: "m", op: wire.OpSet, at: at}, entry{order: "incr", member: "m", op: wire.OpIncr, at: at}, entry{order: "delete", member: "m", op: wire.OpDelete, at: at})
		s.exec("UPDATE gifts SET amount = NULL")
		var posted []*wire.LedgerUpdate
		wantCounts(t, s.compare(s.reconciler(&posted)), map[string]int{Bad: 2, Missing: 1})
		if len(posted) != 1 || posted[0].OrderID != "delete" {
			t.Errorf("%s: %d orders are posted, want the delete only", kind, len(posted))
		}
	}
}

// shortLife is a Redis with boards whose order life is 5 minutes.
func shortLife(_ context.Context, boards []rankcache.BoardID) (map[rankcache.BoardID]wire.Meta, error) {
	metas := make(map[rankcache.BoardID]wire.Meta)
	for _, b := range boards {
		metas[b] = wire.Meta{OrderLife: 300}
	}
	return metas, nil
}

// TestOrderLifeOfAClass: a row that names a class has the order life of the class's boards.
func TestOrderLifeOfAClass(t *testing.T) {
	s := newScene(t, testkit.SQLKinds[0])
	e := entry{class: true, order: "there", member: "m", op: wire.OpIncr, number: 1, at: now.Add(-9 * time.Minute).UnixMilli()}
	s.apply(e)
	gone := e
	gone.order = "gone"
	s.write(e, gone)
	var posted []*wire.LedgerUpdate
	with := s.reconciler(&posted)
	with.Metas = shortLife
	r := s.compare(with)
	if len(posted) != 0 || len(r.Differences) != 1 || r.Differences[0].Why != TooOld {
		t.Errorf("%d posted, %+v", len(posted), r.Differences)
	}
}

// TestGaugesOutliveAFailure: differences stay shown while the books are away.
func TestGaugesOutliveAFailure(t *testing.T) {
	s := newScene(t, testkit.SQLKinds[0])
	s.write(entry{order: "x", op: wire.OpIncr, number: 1, at: now.Add(-5 * time.Minute).UnixMilli()})
	var posted []*wire.LedgerUpdate
	r := &Runner{Reconciler: s.reconciler(&posted), Reached: func(context.Context) error { return nil }, Log: slog.New(slog.DiscardHandler)}
	r.Register(prometheus.NewRegistry())
	if err := r.round(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	r.Reconciler.Books = NewBooks(s.books, "nonsense")
	if err := r.round(t.Context(), now.Add(wholeEvery)); !errors.Is(err, ErrQuery) {
		t.Fatal(err)
	}
	if n := testutil.ToFloat64(r.metrics.differences.WithLabelValues(Bad)); n != 1 {
		t.Errorf("%v orders are bad, want 1", n)
	}
}

// TestHungBooks: a query that never ends is given up, and the error tells what to check.
func TestHungBooks(t *testing.T) {
	for _, kind := range testkit.SQLKinds {
		text := map[string]string{"postgres": "SELECT pg_sleep(600) WHERE $1::bigint < $2::bigint", "mysql": "SELECT sleep(600) FROM gifts WHERE ? < ?"}[kind]
		s := newScene(t, kind)
		s.write(entry{order: "x", member: "m", op: wire.OpIncr, at: 1})
		b := NewBooks(s.books, text)
		b.patience = 100 * time.Millisecond
		err := b.Each(t.Context(), 0, 1, func(*Row) error { return nil })
		if !errors.Is(err, ErrQuery) || !strings.Contains(err.Error(), "takes longer") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
