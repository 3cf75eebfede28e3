package origin

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

func TestMain(m *testing.M) {
	LogTo(slog.New(slog.DiscardHandler)) // tests take servers away on purpose
	testkit.Main(m)
}

// patient outlasts a shared machine; the time-out itself has its own test.
const patient = 10 * time.Second

// board is one board on the shared Redis, with an Origin that reads it.
type board struct {
	*Origin
	client redis.UniversalClient
	id     rankcache.BoardID
}

func newBoard(t testing.TB, opts ...Option) board {
	t.Helper()
	client, err := Dial(Options{URL: "redis://" + testkit.Redis(t), Timeout: patient})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	opts = append([]Option{WithTimeout(patient)}, opts...)
	return board{New(client, wire.DefaultNames(), opts...), client, rankcache.BoardID(testkit.Name(t))}
}

// fill sets scores and the total, as a writer leaves them.
func (b board) fill(t testing.TB, total int, entries ...rankcache.Entry) {
	t.Helper()
	rows := make([]redis.Z, len(entries))
	for i, e := range entries {
		rows[i] = redis.Z{Member: e.Member, Score: e.Score}
	}
	must(t, b.client.ZAdd(t.Context(), b.names.BoardKey(b.id), rows...).Err())
	must(t, b.client.Set(t.Context(), b.names.SeqKey(b.id), total, 0).Err())
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal(t testing.TB, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// abc is a board with a tie, a negative and a tiny score.
var abc = []rankcache.Entry{{Member: "a", Score: 7.5}, {Member: "b", Score: 3}, {Member: "b1", Score: 3},
	{Member: "c", Score: math.SmallestNonzeroFloat64}, {Member: "d", Score: -1e300}}

// desc is abc in ZREVRANGE's order.
var desc = []rankcache.Entry{abc[0], abc[2], abc[1], abc[3], abc[4]}

func TestPage(t *testing.T) {
	b := newBoard(t)
	b.fill(t, 917, abc...)
	for _, c := range []struct {
		start, limit int
		order        rankcache.Direction
		want         []rankcache.Entry
	}{
		{0, 50, rankcache.Descending, desc},
		{1, 2, rankcache.Descending, desc[1:3]},
		{0, 50, rankcache.Ascending, []rankcache.Entry{abc[4], abc[3], abc[1], abc[2], abc[0]}},
		{5, 50, rankcache.Descending, []rankcache.Entry{}},
	} {
		page, err := b.Page(t.Context(), b.id, c.start, c.limit, c.order)
		must(t, err)
		name := fmt.Sprint(c.start, c.limit, c.order)
		equal(t, name, page.Entries, c.want)
		equal(t, name, []any{page.Start, page.Seq, page.Members}, []any{c.start, uint64(917), 5})
		if age := time.Since(page.At); age < 0 || age > time.Minute {
			t.Errorf("%s: made %v ago", name, age)
		}
	}
}

func TestPageOfNothing(t *testing.T) {
	b := newBoard(t)
	page, err := b.Page(t.Context(), b.id, 0, 50, rankcache.Descending)
	must(t, err)
	equal(t, "page", []any{len(page.Entries), page.Seq, page.Members}, []any{0, uint64(0), 0})
}

func TestPageRefusesArguments(t *testing.T) {
	b := newBoard(t)
	for _, c := range [][2]int{{-1, 1}, {0, 0}, {0, -1}, {0, rankcache.MaxTop + 1}} {
		if _, err := b.Page(context.Background(), b.id, c[0], c[1], rankcache.Descending); err == nil {
			t.Errorf("page %v was given", c)
		}
	}
}

func TestTopsAndTotals(t *testing.T) {
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

	stamps, err := one.Totals(t.Context(), boards)
	if err == nil {
		t.Error("a key that is no board has totals")
	}
	for i, want := range []rankcache.Stamp{{Seq: 917, Members: 5}, {}, {}} {
		stamps[i].At = time.Time{}
		equal(t, string(boards[i]), stamps[i], want)
	}
}

func TestStandings(t *testing.T) {
	b := newBoard(t)
	b.fill(t, 917, abc...)
	members := []string{"d", "nobody", "b", "a", ""}
	places, stamp, err := b.Standings(t.Context(), b.id, members, rankcache.Descending)
	must(t, err)
	equal(t, "desc", places, []rankcache.Standing{{Member: "d", Score: -1e300, Rank: 5}, {Member: "nobody"},
		{Member: "b", Score: 3, Rank: 3}, {Member: "a", Score: 7.5, Rank: 1}, {}})
	equal(t, "stamp", []any{stamp.Seq, stamp.Members}, []any{uint64(917), 5})
	places, _, err = b.Standings(t.Context(), b.id, members[:1], rankcache.Ascending)
	must(t, err)
	equal(t, "asc", places, []rankcache.Standing{{Member: "d", Score: -1e300, Rank: 1}})
}
