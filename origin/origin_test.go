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
	LogTo(slog.New(slog.DiscardHandler)) // tests stop servers on purpose
	testkit.Main(m)
}

// testTimeout is long enough for a busy machine; the time-out has its own test.
const testTimeout = 10 * time.Second

// board is one board on the shared Redis, with an Origin that reads it.
type board struct {
	*Origin
	client redis.UniversalClient
	id     rankcache.BoardID
}

func newBoard(t testing.TB, opts ...Option) board {
	t.Helper()
	client, err := Dial(Options{URL: "redis://" + testkit.Redis(t), Timeout: testTimeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	opts = append([]Option{WithTimeout(testTimeout)}, opts...)
	return board{New(client, wire.DefaultNames(), opts...), client, rankcache.BoardID(testkit.Name(t))}
}

func (b board) names() wire.Names { return b.reader.names }

// ask reads the board.
func (b board) ask(q rankcache.Query) rankcache.Answer {
	q.Board = b.id
	return rankcache.One(context.Background(), b.Origin, q)
}

// tops reads the first rows of several boards in one pipeline.
func (b board) tops(boards []rankcache.BoardID, n int) []rankcache.Answer {
	qs, as := make([]rankcache.Query, len(boards)), make([]rankcache.Answer, len(boards))
	for i, id := range boards {
		qs[i] = rankcache.Query{Board: id, Limit: n}
	}
	b.Read(context.Background(), qs, as)
	return as
}

func standingsOf(own []rankcache.Own) (rows []rankcache.Standing) {
	for i := range own {
		rows = append(rows, own[i].Standing)
	}
	return rows
}

// testRun is the run of the boards that tests fill.
const testRun = 1 << 40

// fill sets scores and the meta as a writer does.
func (b board) fill(t testing.TB, seq int, entries ...rankcache.Entry) {
	t.Helper()
	rows := make([]redis.Z, len(entries))
	for i, e := range entries {
		rows[i] = redis.Z{Member: e.Member, Score: e.Score}
	}
	must(t, b.client.ZAdd(t.Context(), b.names().BoardKey(b.id), rows...).Err())
	b.setMeta(t, testRun, seq)
}

// setMeta makes the board's meta fit its members.
func (b board) setMeta(t testing.TB, run uint64, seq int) {
	t.Helper()
	members, err := b.client.ZRangeWithScores(t.Context(), b.names().BoardKey(b.id), 0, -1).Result()
	must(t, err)
	must(t, b.client.Set(t.Context(), b.names().MetaKey(b.id), testkit.Meta(run, uint64(seq), members), 0).Err())
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

// state is what the meta of a board with the members of abc has at seq.
func (b board) state(seq uint64) rankcache.State {
	s := rankcache.State{Run: testRun, Seq: seq, HasSum: true}
	for _, e := range abc {
		s.Sum = (s.Sum + wire.Hash(e.Member, e.Score)) & wire.SumMask
	}
	return s
}

// desc is abc as ZREVRANGE sorts it.
var desc = []rankcache.Entry{abc[0], abc[2], abc[1], abc[3], abc[4]}

func TestPage(t *testing.T) {
	b := newBoard(t)
	b.fill(t, 917, abc...)
	for _, c := range []struct {
		start, limit int
		dir          rankcache.Direction
		want         []rankcache.Entry
	}{
		{0, 50, rankcache.Descending, desc},
		{1, 2, rankcache.Descending, desc[1:3]},
		{0, 50, rankcache.Ascending, []rankcache.Entry{abc[4], abc[3], abc[1], abc[2], abc[0]}},
		{5, 50, rankcache.Descending, []rankcache.Entry{}},
	} {
		page := b.ask(rankcache.Query{Start: c.start, Limit: c.limit, Order: c.dir})
		must(t, page.Err)
		name := fmt.Sprint(c.start, c.limit, c.dir)
		equal(t, name, page.Entries, c.want)
		equal(t, name, []any{page.Start, page.Seq, page.Members}, []any{c.start, uint64(917), 5})
		if age := time.Since(page.At); age < 0 || age > time.Minute {
			t.Errorf("%s: made %v ago", name, age)
		}
	}
}

func TestPageOfMissingBoard(t *testing.T) {
	b := newBoard(t)
	page := b.ask(rankcache.Query{Limit: 50})
	must(t, page.Err)
	equal(t, "page", []any{len(page.Entries), page.Seq, page.Members}, []any{0, uint64(0), 0})
}

func TestPageRejectsArguments(t *testing.T) {
	b := newBoard(t)
	for _, c := range [][2]int{{-1, 1}, {0, -1}, {0, rankcache.MaxTop + 1}} {
		if a := b.ask(rankcache.Query{Start: c[0], Limit: c[1]}); a.Err == nil {
			t.Errorf("page %v was accepted", c)
		}
	}
}

func TestStandings(t *testing.T) {
	b := newBoard(t)
	b.fill(t, 917, abc...)
	members := []string{"d", "missing", "b", "a", ""}
	a := b.ask(rankcache.Query{Members: members})
	must(t, a.Err)
	equal(t, "desc", standingsOf(a.Own), []rankcache.Standing{{Member: "d", Score: -1e300, Rank: 5}, {Member: "missing"},
		{Member: "b", Score: 3, Rank: 3}, {Member: "a", Score: 7.5, Rank: 1}, {}})
	equal(t, "stamp", []any{a.Seq, a.Members, a.Own[0].Stamp == a.Stamp}, []any{uint64(917), 5, true})
	a = b.ask(rankcache.Query{Members: members[:1], Order: rankcache.Ascending})
	must(t, a.Err)
	equal(t, "asc", standingsOf(a.Own), []rankcache.Standing{{Member: "d", Score: -1e300, Rank: 1}})
}

// TestScores: those that members have beside the sorted set, on it or not, of one instant with
// the board's state.
func TestScores(t *testing.T) {
	b := newBoard(t)
	b.fill(t, 917, abc...)
	must(t, b.client.HSet(t.Context(), b.names().CompanionKey(b.id, wire.Scores), "a", 7.5, "out", "0.10000000000000001", "zero", "-0", "", "").Err())
	a := b.ask(rankcache.Query{Trimmed: true, Members: []string{"out", "missing", "a", "zero"}})
	must(t, a.Err)
	equal(t, "scores", standingsOf(a.Own), []rankcache.Standing{{Member: "out", Score: 0.1, Trimmed: true}, {Member: "missing"}, {Member: "a", Score: 7.5, Trimmed: true}, {Member: "zero", Trimmed: true}})
	equal(t, "stamp", []any{a.Seq, a.Members}, []any{uint64(917), 5})
	must(t, b.client.HSet(t.Context(), b.names().CompanionKey(b.id, wire.Scores), "bad", "inf").Err())
	if a := b.ask(rankcache.Query{Trimmed: true, Members: []string{"out", "bad"}}); a.Err == nil {
		t.Error("an infinite score is answered")
	}
}

func TestAround(t *testing.T) {
	b := newBoard(t)
	b.fill(t, 917, abc...)
	for _, c := range []struct {
		member      string
		n           int
		dir         rankcache.Direction
		start, rank int
		want        []rankcache.Entry
	}{
		{"b", 1, rankcache.Descending, 1, 3, desc[1:4]},
		{"a", 1, rankcache.Descending, 0, 1, desc[:2]},
		{"d", 2, rankcache.Descending, 2, 5, desc[2:]},
		{"d", 0, rankcache.Ascending, 0, 1, abc[4:]},
		{"b1", MaxAround, rankcache.Descending, 0, 2, desc},
	} {
		a := b.ask(rankcache.Query{Members: []string{c.member}, Around: 2*c.n + 1, Order: c.dir})
		must(t, a.Err)
		own := &a.Own[0]
		name := fmt.Sprint(c.member, c.n, c.dir)
		equal(t, name, own.Neighbours, c.want)
		equal(t, name, []any{own.First, own.Rank, own.Stamp.Seq, a.Members}, []any{c.start, c.rank, uint64(917), 5})
	}
}

func TestAroundUnknownMember(t *testing.T) {
	b := newBoard(t)
	b.fill(t, 917, abc...)
	q := rankcache.Query{Members: []string{"missing"}, Around: 9}
	a := b.ask(q)
	must(t, a.Err)
	equal(t, "answer", []any{len(a.Own[0].Neighbours), a.Own[0].Rank, a.Seq, a.Members}, []any{0, 0, uint64(917), 5})
	b.id = rankcache.BoardID(testkit.Name(t))
	if a := b.ask(q); a.Err != nil || a.Own[0].Rank != 0 {
		t.Errorf("missing board: %+v", a)
	}
	for _, around := range []int{-1, 2*MaxAround + 3} {
		q.Around = around
		if b.ask(q).Err == nil {
			t.Error(around, "rows around a member were accepted")
		}
	}
}

// A script that Redis has lost is sent again within the same call.
func TestScriptFlush(t *testing.T) {
	b := newBoard(t)
	b.fill(t, 1, abc...)
	for range 2 {
		must(t, b.client.ScriptFlush(context.Background()).Err()) // other tests load theirs again
		a := b.ask(rankcache.Query{Members: []string{"a"}, Around: 3})
		must(t, a.Err)
		equal(t, "rank", a.Own[0].Rank, 1)
	}
}
