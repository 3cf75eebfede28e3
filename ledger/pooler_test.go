package ledger

import (
	"fmt"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// Behind a pooler, each transaction of a connection may be another server connection's: what a session has is no longer
// there, or is somebody else's.
func TestLedgerBehindPgBouncer(t *testing.T) {
	direct := testkit.Database(t, "postgres")
	url := testkit.PooledDatabase(t, direct)
	var makers errgroup.Group
	for range 6 { // more than the pooler has connections to the server
		makers.Go(func() error {
			s, err := Open(url, nil)
			if err != nil {
				return err
			}
			defer s.Close()
			return s.Migrate(t.Context())
		})
	}
	if err := makers.Wait(); err != nil {
		t.Fatal(err)
	}
	s := newStore(t, url)
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
		other, err := Open(url, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { other.Close() })
		start(t, other, broker, topic, topic)
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
	if err := s.MakeRankIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	var locks int
	if err := testkit.SQL(t, direct).QueryRowContext(t.Context(),
		"SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())").Scan(&locks); err != nil || locks > 0 {
		t.Errorf("%d locks are left, %v", locks, err)
	}
}
