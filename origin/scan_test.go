package origin

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"rankcache"
	"rankcache/wire"
)

// ZSCAN returns a small board (a list) at once, and a large one (a hash) in batches
// with possible repetitions.
func TestScan(t *testing.T) {
	for _, n := range []int{0, 5, 5000} {
		b := newBoard(t)
		want := make(map[string]float64)
		var entries []rankcache.Entry
		for i := range n {
			e := rankcache.Entry{Member: fmt.Sprint("member-", i), Score: float64(i) / 7}
			entries, want[e.Member] = append(entries, e), e.Score
		}
		if n > 0 {
			b.fill(t, n, entries...)
		}
		got, batches := make(map[string]float64), 0
		before, after, err := b.Scan(t.Context(), b.id, func(batch []rankcache.Entry) error {
			for batches++; len(batch) > 0; batch = batch[1:] {
				got[batch[0].Member] = batch[0].Score
			}
			return nil
		})
		must(t, err)
		equal(t, strconv.Itoa(n), got, want)
		equal(t, "seqs", []uint64{before.Seq, after.Seq}, []uint64{uint64(n), uint64(n)})
		if n == 5000 && batches < 3 {
			t.Errorf("%d members came in %d batches", n, batches)
		}
	}
}

func TestScanSeesChanges(t *testing.T) {
	b := newBoard(t)
	set := func(run uint64, seq int) func([]rankcache.Entry) error {
		return func([]rankcache.Entry) error {
			b.setMeta(t, run, seq)
			return nil
		}
	}
	b.fill(t, 10, abc...)
	before, after, err := b.Scan(t.Context(), b.id, set(testRun, 12))
	must(t, err)
	equal(t, "states", []rankcache.State{before.State, after.State}, []rankcache.State{b.state(10), b.state(12)})
	equal(t, "members", []int{before.Members, after.Members}, []int{5, 5})
	for what, fn := range map[string]func([]rankcache.Entry) error{
		"a seq that fell": set(testRun, 9), "another run": set(testRun+1, 10),
		"a meta that is gone": func([]rankcache.Entry) error { return b.client.Del(t.Context(), b.names().MetaKey(b.id)).Err() },
	} {
		b.fill(t, 10, abc...)
		if _, _, err = b.Scan(t.Context(), b.id, fn); !errors.Is(err, ErrOtherRun) {
			t.Error(what, "gives", err)
		}
	}
	stop := errors.New("stop")
	if _, _, err = b.Scan(t.Context(), b.id, func([]rankcache.Entry) error { return stop }); !errors.Is(err, stop) {
		t.Error("error", err)
	}
}

func TestAll(t *testing.T) {
	b := newBoard(t)
	b.fill(t, 917, abc...)
	entries, stamp, err := b.All(t.Context(), b.id)
	must(t, err)
	equal(t, "all", entries, []rankcache.Entry{abc[4], abc[3], abc[1], abc[2], abc[0]})
	equal(t, "stamp", []any{stamp.State, stamp.Members}, []any{b.state(917), 5})
	var many []rankcache.Entry
	for i := range MaxAll {
		many = append(many, rankcache.Entry{Member: fmt.Sprint(i), Score: 1})
	}
	b.fill(t, 918, many...)
	if entries, stamp, err = b.All(t.Context(), b.id); err == nil || stamp.Members != MaxAll+5 {
		t.Errorf("%d members of %d, error %v", len(entries), stamp.Members, err)
	}
}

func TestMeta(t *testing.T) {
	b := newBoard(t)
	if _, found, err := b.Meta(t.Context(), b.id); found || err != nil {
		t.Errorf("of no board: %t, %v", found, err)
	}
	b.fill(t, 917, abc...)
	meta, found, err := b.Meta(t.Context(), b.id)
	must(t, err)
	equal(t, "meta", []any{found, meta.State, meta.Members}, []any{true, b.state(917), uint64(5)})
	must(t, b.client.Set(t.Context(), b.names().MetaKey(b.id), "917", 0).Err())
	if _, _, err := b.Meta(t.Context(), b.id); !errors.Is(err, wire.ErrMeta) {
		t.Error("no meta:", err)
	}
}

// Orders are known from either set, and none is of a board that is not there.
func TestOrders(t *testing.T) {
	b := newBoard(t)
	ask := func(sinceWanted int64, want ...bool) {
		t.Helper()
		got, since, err := b.Orders(t.Context(), b.id, []string{"old", "none", "new"})
		must(t, err)
		equal(t, "known", got, want)
		equal(t, "since", since, sinceWanted)
	}
	for set, id := range []string{"old", "new"} {
		key := b.names().OrdersKey(b.id, set, wire.OrderBucket(id, 1))
		must(t, b.client.HSet(t.Context(), key, wire.OrderField(id), "record").Err())
	}
	ask(math.MaxInt64, false, false, false)
	b.fill(t, 10, abc...)
	meta, _, err := b.Meta(t.Context(), b.id)
	must(t, err)
	ask(meta.OrdersSince(), true, false, true)
	must(t, b.client.Close())
	if _, _, err := b.Orders(t.Context(), b.id, []string{"old"}); !errors.Is(err, rankcache.ErrUnavailable) {
		t.Errorf("without Redis: %v", err)
	}
}

// Where a board is are its state, and the history of its server; without the board neither is told.
func TestHome(t *testing.T) {
	b := newBoard(t)
	state, _, err := b.Home(t.Context(), b.id)
	must(t, err)
	equal(t, "no board", state, rankcache.State{})
	b.fill(t, 10, abc...)
	want, err := b.client.Info(t.Context(), "replication").Result()
	must(t, err)
	state, era, err := b.Home(t.Context(), b.id)
	must(t, err)
	equal(t, "state", state, b.state(10))
	if len(era) != wire.EraLen || !strings.Contains(want, "master_replid:"+era) {
		t.Errorf("era %q of %s", era, want)
	}
	must(t, b.client.Close())
	if _, _, err := b.Home(t.Context(), b.id); !errors.Is(err, rankcache.ErrUnavailable) {
		t.Errorf("without Redis: %v", err)
	}
}
