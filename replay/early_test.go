package replay_test

import (
	"fmt"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"rankcache"
	"rankcache/internal/testkit"
)

// An answer is of one moment: while an update is missing, those behind it are not
// seen, and when it comes all are.
func TestEarlyUpdatesAreNotSeen(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kfake(t).Addr())
	b := e.newBoard(1, nil)
	b.produce(b.gifts(50, 20)...)
	s := e.start(ids(b))
	s.waitOpen(b.id)
	local, _ := s.boards.Get(b.id)
	before := local.Page(0, 1000, rankcache.Desc)
	us := b.gifts(100, 20)
	b.produce(us[1:]...)
	testkit.Eventually(t, timeout, func() error {
		if n := s.counter("rankcache_replay_records_total"); n != 149 {
			return fmt.Errorf("%v records", n)
		}
		return nil
	})
	b.produce(us[20]) // a repeat, so that all before it have been applied
	testkit.Eventually(t, timeout, func() error {
		if n := s.counter("rankcache_replay_records_total"); n != 150 {
			return fmt.Errorf("%v records", n)
		}
		return nil
	})
	now := local.Page(0, 1000, rankcache.Desc)
	if now.Seq != before.Seq || gocmp.Diff(before.Entries, now.Entries) != "" {
		t.Errorf("seq %d, was %d: %s", now.Seq, before.Seq, gocmp.Diff(before.Entries, now.Entries))
	}
	b.produce(us[0])
	s.waitOpen(b.id)
	if got := local.Top().Seq; got != 150 {
		t.Errorf("seq %d, want 150", got)
	}
	for _, e := range s.boards.noted() {
		if e == "close "+string(b.id) {
			t.Error("the board was closed")
		}
	}
}
