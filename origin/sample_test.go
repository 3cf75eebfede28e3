package origin

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"rankcache"
	"rankcache/internal/testkit"
)

func TestSample(t *testing.T) {
	b := newBoard(t)
	b.fill(t, 917, abc...)
	s, err := b.Sample(t.Context(), b.id, []string{"a", "nobody", "d"}, 200)
	must(t, err)
	equal(t, "given", s.Given, map[string]float64{"a": 7.5, "d": -1e300})
	equal(t, "stamp", []any{s.Seq, s.Members, len(s.Random)}, []any{uint64(917), 5, 200})
	seen := make(map[string]bool)
	for _, e := range s.Random {
		if seen[e.Member] = true; !slices.Contains(abc, e) {
			t.Fatalf("%v is not on the board", e)
		}
	}
	if len(seen) != len(abc) { // each is missed once in 10^19 runs
		t.Errorf("only %d of %d members were ever chosen", len(seen), len(abc))
	}
	again, err := b.Sample(t.Context(), b.id, nil, 200)
	must(t, err)
	if slices.Equal(s.Random, again.Random) {
		t.Error("the same random members twice")
	}
}

func TestSampleOfNothing(t *testing.T) {
	b := newBoard(t)
	s, err := b.Sample(t.Context(), b.id, []string{"a"}, 3)
	must(t, err)
	equal(t, "sample", []int{len(s.Given), len(s.Random), s.Members}, []int{0, 0, 0})
}

// Both encodings of a sorted set: a short list that ZSCAN gives at once, and a
// hash that it walks in pieces, where members may come twice.
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
		got, pieces := make(map[string]float64), 0
		before, after, err := b.Scan(t.Context(), b.id, func(piece []rankcache.Entry) error {
			for pieces++; len(piece) > 0; piece = piece[1:] {
				got[piece[0].Member] = piece[0].Score
			}
			return nil
		})
		must(t, err)
		equal(t, strconv.Itoa(n), got, want)
		equal(t, "totals", []uint64{before, after}, []uint64{uint64(n), uint64(n)})
		if n == 5000 && pieces < 3 {
			t.Errorf("%d members came in %d pieces", n, pieces)
		}
	}
}

func TestScanSeesTotalRiseAndFall(t *testing.T) {
	b := newBoard(t)
	b.fill(t, 10, abc...)
	set := func(total int) func([]rankcache.Entry) error {
		return func([]rankcache.Entry) error {
			return b.client.Set(t.Context(), b.names.SeqKey(b.id), total, 0).Err()
		}
	}
	before, after, err := b.Scan(t.Context(), b.id, set(12))
	must(t, err)
	equal(t, "totals", []uint64{before, after}, []uint64{10, 12})
	if _, _, err = b.Scan(t.Context(), b.id, set(3)); err == nil {
		t.Error("a total that fell is no error")
	}
	stop := errors.New("stop")
	if _, _, err = b.Scan(t.Context(), b.id, func([]rankcache.Entry) error { return stop }); !errors.Is(err, stop) {
		t.Error("error", err)
	}
}

func TestTotalsElsewhere(t *testing.T) {
	custom, err := ParseTotal("key:{<board>}:n")
	must(t, err)
	b := newBoard(t, WithTotal(custom))
	b.fill(t, 1, abc...)
	must(t, b.client.Set(t.Context(), "{"+string(b.id)+"}:n", 40, 0).Err())
	checkTotal(t, b, 40)
	none, err := ParseTotal("none")
	must(t, err)
	b.Origin = New(b.client, b.names, WithTimeout(patient), WithTotal(none))
	checkTotal(t, b, 0)
}

// checkTotal asks every method that reads the total.
func checkTotal(t *testing.T, b board, want uint64) {
	t.Helper()
	page, err := b.Page(t.Context(), b.id, 0, 1, rankcache.Descending)
	must(t, err)
	around, _, err := b.Around(t.Context(), b.id, "a", 0, rankcache.Descending)
	must(t, err)
	stamps, err := b.Totals(t.Context(), []rankcache.BoardID{b.id})
	must(t, err)
	sample, err := b.Sample(t.Context(), b.id, []string{"a"}, 1)
	must(t, err)
	before, after, err := b.Scan(t.Context(), b.id, func([]rankcache.Entry) error { return nil })
	must(t, err)
	equal(t, b.total.String(), []uint64{page.Seq, around.Seq, stamps[0].Seq, sample.Seq, before, after},
		[]uint64{want, want, want, want, want, want})
	equal(t, "members", []int{page.Members, around.Members, stamps[0].Members, sample.Members}, []int{5, 5, 5, 5})
}

func TestParseTotal(t *testing.T) {
	for _, s := range []string{"seq", "none", "key:a<board>b"} {
		total, err := ParseTotal(s)
		must(t, err)
		equal(t, "total", total.String(), s)
	}
	for _, s := range []string{"SEQ", "key:", "key:x", "key:<board><board>"} {
		if _, err := ParseTotal(s); err == nil {
			t.Errorf("%q was taken", s)
		}
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
	equal(t, "the others", rooms, want)
}
