package ledger

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// Behind a pooler, each transaction of a connection may be another server connection's: what a session has is no longer
// there, or is somebody else's.
func TestLedgerBehindPgBouncer(t *testing.T) {
	direct := testkit.Database(t, "postgres")
	url := testkit.PooledDatabase(t, direct)
	open := func() *Store {
		s, err := Open(url, nil)
		must(t, err)
		t.Cleanup(func() { s.Close() })
		return s
	}
	if err := open().Migrate(t.Context()); !errors.Is(err, ErrPooled) {
		t.Errorf("tables through the pooler: %v", err)
	}
	s := newStore(t, direct)
	if err := open().MakeRankIndex(t.Context()); !errors.Is(err, ErrPooled) {
		t.Errorf("an index through the pooler: %v", err)
	}
	if pooled, err := s.Pooled(t.Context()); pooled || err != nil {
		t.Errorf("the server itself is a pooler: %t, %v", pooled, err)
	}
	must(t, s.MakeRankIndex(t.Context()))
	broker, topic := testkit.Kfake(t).Addr(), testkit.Name(t)
	testkit.CreateTopic(t, broker, topic, 3, nil)
	var updates []*wire.LedgerUpdate
	for _, board := range []rankcache.BoardID{"1_2_3", "1_2_4", "1_2_5"} {
		h := newHistory(board, 7)
		for range 20 {
			updates = append(updates, h.incr("m", 1))
		}
	}
	for range 3 { // several ledgers share the few server connections
		start(t, open(), broker, topic, topic)
	}
	for part := range slices.Chunk(records(topic, 3, updates), 6) {
		testkit.Produce(t, broker, part...)
	}
	testkit.Eventually(t, testTimeout, func() error {
		if n := count(t, s, "rank_log"); n != len(updates) {
			return fmt.Errorf("%d rows of %d", n, len(updates))
		}
		return nil
	})
	reader := open()
	for _, board := range []rankcache.BoardID{"1_2_3", "1_2_4", "1_2_5"} {
		if p, err := reader.Prove(t.Context(), board); err != nil || !p.Proved {
			t.Errorf("%s: %+v, %v", board, p, err)
		}
	}
}
