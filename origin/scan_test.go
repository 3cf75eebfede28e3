package origin

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"rankcache"
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
		"a meta that is gone": func([]rankcache.Entry) error { return b.client.Del(t.Context(), b.names.MetaKey(b.id)).Err() },
	} {
		b.fill(t, 10, abc...)
		if _, _, err = b.Scan(t.Context(), b.id, fn); err == nil {
			t.Error(what, "is no error")
		}
	}
	stop := errors.New("stop")
	if _, _, err = b.Scan(t.Context(), b.id, func([]rankcache.Entry) error { return stop }); !errors.Is(err, stop) {
		t.Error("error", err)
	}
}
