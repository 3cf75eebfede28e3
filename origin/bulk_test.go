package origin

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

func TestTopsAndStamps(t *testing.T) {
	one, other := newBoard(t), newBoard(t)
	one.fill(t, 917, abc...)
	must(t, one.client.Set(t.Context(), string(other.id), "no board", 0).Err())
	missing := rankcache.BoardID(testkit.Name(t))
	boards := []rankcache.BoardID{one.id, other.id, missing}

	tops := one.tops(boards, 2)
	if tops[1].Err == nil || tops[1].Entries != nil {
		t.Errorf("a key that is no board gave %+v", tops[1])
	}
	equal(t, "top", tops[0].Entries, desc[:2])
	equal(t, "top", []any{tops[0].Err, tops[0].Seq, tops[0].Members}, []any{nil, uint64(917), 5})
	equal(t, "top of nothing", []any{len(tops[2].Entries), tops[2].Seq, tops[2].Members}, []any{0, uint64(0), 0})

	stamps, err := one.Stamps(t.Context(), boards)
	if err == nil {
		t.Error("a key that is no board has a stamp")
	}
	for i, want := range []rankcache.Stamp{{State: one.state(917), Members: 5}, {}, {}} {
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

func TestRoomBoards(t *testing.T) {
	reg := prometheus.NewRegistry()
	b := newBoard(t, WithRegisterer(reg))
	room, empty, broken := testkit.Name(t), testkit.Name(t), testkit.Name(t)
	must(t, b.client.SAdd(t.Context(), b.names().RoomKey(room), "2", "1_2_3", "not a board", "").Err())
	must(t, b.client.Set(t.Context(), b.names().RoomKey(broken), "no set", 0).Err())

	rooms, err := b.RoomBoards(t.Context(), []string{room, empty})
	must(t, err)
	want := map[string][]rankcache.BoardID{room: {"1_2_3", "2"}, empty: {}}
	equal(t, "rooms", rooms, want)
	equal(t, "bad ids", testutil.ToFloat64(b.bulkReader.metrics.badBoards), 2.0)

	rooms, err = b.RoomBoards(t.Context(), []string{broken, room, empty})
	if err == nil {
		t.Error("a room that could not be read is no error")
	}
	equal(t, "other rooms", rooms, want)
}

// More boards than one pipeline has.
// Each way to read a board tells how far its life has come.
func TestLifeIsRead(t *testing.T) {
	b := newBoard(t)
	b.fill(t, 917, abc...)
	meta, found, err := b.Meta(t.Context(), b.id)
	must(t, err)
	meta.Life = rankcache.LifeClosed
	must(t, b.client.Set(t.Context(), wire.DefaultNames().MetaKey(b.id), wire.AppendMeta(nil, &meta), 0).Err())
	page := b.ask(rankcache.Query{Limit: 2})
	standing := b.ask(rankcache.Query{Members: []string{"a"}})
	whole := b.ask(rankcache.Query{Limit: 2, Members: []string{"a"}, Around: 3})
	tops := b.tops([]rankcache.BoardID{b.id, b.id}, 2)
	stamps, err := b.Stamps(t.Context(), []rankcache.BoardID{b.id})
	must(t, err)
	got := []rankcache.Life{page.Life, standing.Own[0].Stamp.Life, whole.Life, tops[0].Life, stamps[0].Life}
	if !found || slices.ContainsFunc(got, func(l rankcache.Life) bool { return l != rankcache.LifeClosed }) {
		t.Errorf("lives %v", got)
	}
}

func TestStampsOfManyBoards(t *testing.T) {
	b := newBoard(t)
	b.fill(t, 917, abc...)
	boards := slices.Repeat([]rankcache.BoardID{b.id}, stampsAtOnce+1)
	boards[stampsAtOnce-1] = rankcache.BoardID(testkit.Name(t))
	stamps, err := b.Stamps(t.Context(), boards)
	must(t, err)
	for i, s := range stamps {
		want := rankcache.Stamp{State: b.state(917), Members: 5, At: s.At}
		if i == stampsAtOnce-1 {
			want = rankcache.Stamp{At: s.At}
		}
		equal(t, strconv.Itoa(i), s, want)
	}
}
