package origin

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"rankcache"
	"rankcache/internal/testkit"
)

func TestTopsAndStamps(t *testing.T) {
	one, other := newBoard(t), newBoard(t)
	one.fill(t, 917, abc...)
	must(t, one.client.Set(t.Context(), string(other.id), "no board", 0).Err())
	missing := rankcache.BoardID(testkit.Name(t))
	boards := []rankcache.BoardID{one.id, other.id, missing}

	tops, err := one.Tops(t.Context(), boards, 2)
	if err == nil || tops[1] != nil {
		t.Errorf("a key that is no board gave %v, error %v", tops[1], err)
	}
	equal(t, "top", tops[0].Entries, desc[:2])
	equal(t, "top", []any{tops[0].Board, tops[0].Seq, tops[0].Members}, []any{one.id, uint64(917), 5})
	equal(t, "top of nothing", []any{len(tops[2].Entries), tops[2].Seq, tops[2].Members}, []any{0, uint64(0), 0})

	stamps, err := one.Stamps(t.Context(), boards)
	if err == nil {
		t.Error("a key that is no board has a stamp")
	}
	for i, want := range []rankcache.Stamp{{State: rankcache.State{Seq: 917}, Members: 5}, {}, {}} {
		stamps[i].At = time.Time{}
		equal(t, string(boards[i]), stamps[i], want)
	}
}

func TestSample(t *testing.T) {
	b := newBoard(t)
	b.fill(t, 917, abc...)
	s, err := b.Sample(t.Context(), b.id, []string{"a", "missing", "d"}, 200)
	must(t, err)
	equal(t, "given", s.Given, map[string]float64{"a": 7.5, "d": -1e300})
	equal(t, "stamp", []any{s.Seq, s.Members, len(s.Random)}, []any{uint64(917), 5, 200})
	seen := make(map[string]bool)
	for _, e := range s.Random {
		if seen[e.Member] = true; !slices.Contains(abc, e) {
			t.Fatalf("%v is not on the board", e)
		}
	}
	if len(seen) != len(abc) { // a member is missed once in 10^19 runs
		t.Errorf("only %d of %d members were ever chosen", len(seen), len(abc))
	}
	again, err := b.Sample(t.Context(), b.id, nil, 200)
	must(t, err)
	if slices.Equal(s.Random, again.Random) {
		t.Error("the same random members twice")
	}
}

func TestSampleOfMissingBoard(t *testing.T) {
	b := newBoard(t)
	s, err := b.Sample(t.Context(), b.id, []string{"a"}, 3)
	must(t, err)
	equal(t, "sample", []int{len(s.Given), len(s.Random), s.Members}, []int{0, 0, 0})
}

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
		equal(t, "seqs", []uint64{before, after}, []uint64{uint64(n), uint64(n)})
		if n == 5000 && batches < 3 {
			t.Errorf("%d members came in %d batches", n, batches)
		}
	}
}

func TestScanSeqRisesAndFalls(t *testing.T) {
	b := newBoard(t)
	b.fill(t, 10, abc...)
	set := func(seq int) func([]rankcache.Entry) error {
		return func([]rankcache.Entry) error {
			return b.client.Set(t.Context(), b.names.SeqKey(b.id), seq, 0).Err()
		}
	}
	before, after, err := b.Scan(t.Context(), b.id, set(12))
	must(t, err)
	equal(t, "seqs", []uint64{before, after}, []uint64{10, 12})
	if _, _, err = b.Scan(t.Context(), b.id, set(3)); err == nil {
		t.Error("a seq that fell is no error")
	}
	stop := errors.New("stop")
	if _, _, err = b.Scan(t.Context(), b.id, func([]rankcache.Entry) error { return stop }); !errors.Is(err, stop) {
		t.Error("error", err)
	}
}

func TestRoomBoards(t *testing.T) {
	reg := prometheus.NewRegistry()
	b := newBoard(t, WithRegisterer(reg))
	room, empty, broken := testkit.Name(t), testkit.Name(t), testkit.Name(t)
	must(t, b.client.SAdd(t.Context(), b.names.RoomKey(room), "2", "1_2_3", "not a board", "").Err())
	must(t, b.client.Set(t.Context(), b.names.RoomKey(broken), "no set", 0).Err())

	rooms, err := b.RoomBoards(t.Context(), []string{room, empty})
	must(t, err)
	want := map[string][]rankcache.BoardID{room: {"1_2_3", "2"}, empty: {}}
	equal(t, "rooms", rooms, want)
	equal(t, "bad ids", testutil.ToFloat64(b.metrics.badBoards), 2.0)

	rooms, err = b.RoomBoards(t.Context(), []string{broken, room, empty})
	if err == nil {
		t.Error("a room that could not be read is no error")
	}
	equal(t, "other rooms", rooms, want)
}
