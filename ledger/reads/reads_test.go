package reads

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/ledger"
	"rankcache/origin"
	"rankcache/wire"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// board is one board in a ledger and in Redis, with a client of the first.
type board struct {
	wire.Update
	t      *testing.T
	scores map[string]float64
	data   map[string]string
	store  *ledger.Store
	redis  *redis.Client
	origin *origin.Origin
	client *Client
	at     time.Time // what the server takes for current
	url    string    // of the database
	record int64
}

// newBoard returns an empty board and a server of reads.
func newBoard(t *testing.T, kind string) *board {
	t.Helper()
	b := &board{t: t, scores: map[string]float64{}, data: map[string]string{}, at: time.Now()}
	b.Run, b.Board = 7, rankcache.BoardID(strings.NewReplacer("_", "-", "/", "-").Replace(testkit.Name(t)))
	var err error
	b.url = testkit.Database(t, kind)
	b.store, err = ledger.Open(b.url, nil)
	must(t, err)
	t.Cleanup(func() { b.store.Close() })
	must(t, b.store.Migrate(t.Context()))
	must(t, b.store.MakeRankIndex(t.Context()))
	must(t, b.store.Begin(t.Context(), "topic", 0, 0))
	b.redis = redis.NewClient(&redis.Options{Addr: testkit.Redis(t), Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { b.redis.Close() })
	b.origin = origin.New(b.redis, wire.DefaultNames(), origin.WithData(func(rankcache.BoardID) bool { return true }))
	mux := http.NewServeMux()
	New(Config{Store: b.store, Current: func() time.Time { return b.at }, Log: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry()}).Register(mux)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	b.client, err = NewClient(server.URL, nil)
	must(t, err)
	return b
}

// set gives members, joined with their data, scores, in Redis and in the ledger.
func (b *board) set(scores ...rankcache.Entry) {
	b.t.Helper()
	batch := ledger.NewBatch("topic")
	first := b.record
	for _, e := range scores {
		u := b.next(e)
		e.Member = u.Member
		batch.Add(&wire.LedgerUpdate{Update: u, Class: "gift", Dims: map[string]string{"zone": "7"}, Tag: "20261122"}, 0, first, b.record)
		b.record++
		key := wire.DefaultNames().BoardKey(b.Board)
		if u.Op.Removes() {
			must(b.t, b.redis.ZRem(b.t.Context(), key, e.Member).Err())
		} else {
			must(b.t, b.redis.ZAdd(b.t.Context(), key, redis.Z{Member: e.Member, Score: e.Score}).Err())
		}
		if key := wire.DefaultNames().CompanionKey(b.Board, wire.Data); u.Data != "" {
			must(b.t, b.redis.HSet(b.t.Context(), key, e.Member, u.Data).Err())
		} else {
			must(b.t, b.redis.HDel(b.t.Context(), key, e.Member).Err())
		}
	}
	_, err := b.store.Apply(b.t.Context(), batch)
	must(b.t, err)
}

// gone and trimmed remove a member where they are a score.
const gone, trimmed = -1e300, -2e300

func (b *board) next(e rankcache.Entry) wire.Update {
	text := e.Member
	member, data := rankcache.SplitData(text)
	if before, there := b.scores[member]; there {
		b.Sum -= wire.Hash(rankcache.JoinData(member, b.data[member]), before)
	}
	e.Member = member
	b.Seq++
	u := b.Update
	u.Member, u.Score, u.Op, u.At, u.OrderID = e.Member, e.Score, wire.OpSet, 1700000000000, fmt.Sprint("o", b.Seq)
	if e.Score == gone || e.Score == trimmed {
		u.Op, u.Score = map[float64]wire.Op{gone: wire.OpDelete, trimmed: wire.OpTrim}[e.Score], 0
		delete(b.scores, e.Member)
	} else {
		b.scores[e.Member], b.data[e.Member], u.Data = e.Score, data, data
		b.Sum += wire.Hash(text, e.Score)
	}
	b.Sum &= 1<<48 - 1
	u.Sum, u.HasSum, u.Members = b.Sum, true, len(b.scores)
	return u
}

// TestAnswersEqualRedis: whatever is asked for, the ledger answers what Redis does.
func TestAnswersEqualRedis(t *testing.T) {
	for _, kind := range testkit.SQLKinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := newBoard(t, kind)
			r := rand.New(rand.NewPCG(1, 2))
			var changes []rankcache.Entry
			numbers := []float64{0, 1, 1, 2, 2.5, 2.75, -1, -1.5, -2, 0.1, 1e17, -1e17, 1<<53 - 1, 1048576.9999995232, 5e-324, 1e-7}
			for range 400 {
				e := rankcache.Entry{Member: rankcache.JoinData(memberOf(r), []string{"", "car", "ü>"}[r.IntN(3)]), Score: numbers[r.IntN(len(numbers))]}
				if r.IntN(8) == 0 {
					e.Score = gone
				}
				changes = append(changes, e)
			}
			b.set(changes...)
			for i := range testkit.Sized(100, 300) {
				b.compare(r, i)
			}
		})
	}
}

// memberOf returns one of 60 members whose bytes sort otherwise than their letters.
func memberOf(r *rand.Rand) string {
	return []string{"m", "M", "ü", "z", "\U0001f600", "a b"}[r.IntN(6)] + fmt.Sprint(r.IntN(10))
}

// compare asks both for a page with a member, for standings and for neighbours.
func (b *board) compare(r *rand.Rand, i int) {
	b.t.Helper()
	ctx := b.t.Context()
	order := rankcache.Direction(i % 2)
	q := rankcache.Query{Board: b.Board, Order: order, Start: r.IntN(70), Limit: r.IntN(20), Members: []string{memberOf(r)}, Around: max(2*r.IntN(6)-1, 0), Gap: r.IntN(2) == 0,
		Percentile: r.IntN(2) == 0, Form: rankcache.ScoreForm(r.IntN(2))}
	between, ends := q, []float64{math.Inf(-1), -1e17, -2, 0, 1, 2.5, 1 << 52, math.Inf(1)}
	least := r.IntN(len(ends) - 1)
	between.Start, between.Form = r.IntN(6), rankcache.ScoreForm(r.IntN(4))
	between.Range = &rankcache.ScoreRange{Least: ends[least], Most: ends[least+1+r.IntN(len(ends)-least-1)], Shown: true}
	count := rankcache.Query{Board: b.Board, Order: order, Form: between.Form, Range: between.Range}
	several := rankcache.Query{Board: b.Board, Order: order, Members: []string{q.Members[0], "nobody", memberOf(r)}}
	many := rankcache.Query{Board: b.Board, Order: order, Mode: rankcache.RankMode(i / 2 % 2), Form: q.Form}
	most := 10
	if i%50 == 0 {
		most = rankcache.MaxTop
	}
	for range most {
		many.Members = append(many.Members, memberOf(r))
	}
	many.Members[7] = "nobody"
	ranked := several
	ranked.Mode, ranked.Form = rankcache.Competition, q.Form
	qs := []rankcache.Query{q, several, ranked, many, between, count,
		{Board: b.Board, Order: order, Members: q.Members, Around: 7}, {Board: b.Board, Order: order, Start: q.Start, Limit: q.Limit + 1}}
	unstamped := cmp.Options{cmpopts.IgnoreFields(rankcache.Stamp{}, "State", "At"), cmpopts.IgnoreFields(rankcache.Answer{}, "Source", "CurrentAt", "Kept"), cmpopts.IgnoreFields(rankcache.Own{}, "Source"),
		cmpopts.EquateEmpty(), cmpopts.EquateErrors(), cmp.Transformer("texts", func(d *rankcache.Data) map[string]string {
			has := make(map[string]string)
			for member := range b.data {
				if text := d.Of(member); text != "" {
					has[member] = text
				}
			}
			return has
		})}
	alone := qs
	if i%10 != 0 {
		alone = nil // asked one by one they take most of the time
	}
	for _, q := range alone {
		want, got := rankcache.One(ctx, b.origin, q), rankcache.One(ctx, patient{b.client}, q)
		must(b.t, want.Err)
		if diff := cmp.Diff(want, got, unstamped); diff != "" {
			b.t.Fatalf("%+v (-Redis +ledger):\n%s", q, diff)
		}
		b.checkState(got)
	}
	want, got := make([]rankcache.Answer, len(qs)), make([]rankcache.Answer, len(qs))
	b.origin.Read(ctx, qs, want)
	patient{b.client}.Read(ctx, qs, got)
	for i := range qs {
		must(b.t, want[i].Err)
		b.checkState(got[i])
	}
	if diff := cmp.Diff(want, got, unstamped); diff != "" {
		b.t.Fatalf("together (-Redis +ledger):\n%s", diff)
	}
}

// patient asks again what was not answered: on a busy machine the largest questions take the database more than the three
// seconds that a request may.
type patient struct{ rankcache.Reader }

func (p patient) Read(ctx context.Context, qs []rankcache.Query, as []rankcache.Answer) {
	for range 5 {
		p.Reader.Read(ctx, qs, as)
		if !slices.ContainsFunc(as, func(a rankcache.Answer) bool { return errors.Is(a.Err, rankcache.ErrUnavailable) }) {
			return
		}
	}
}

func (b *board) checkState(a rankcache.Answer) {
	b.t.Helper()
	must(b.t, a.Err)
	if a.State != (rankcache.State{Run: b.Run, Seq: b.Seq, Sum: b.Sum, HasSum: true}) || a.Members != len(b.scores) {
		b.t.Fatalf("state %v, %d members, want %v", a.State, a.Members, b.Update)
	}
}

// TestTrimmedScores: a member that was driven out of its board has the score of its last
// change, as long as that is kept; one that is on the board has its score as well.
func TestTrimmedScores(t *testing.T) {
	for _, kind := range testkit.SQLKinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := newBoard(t, kind)
			b.set(rankcache.Entry{Member: "on", Score: 9}, rankcache.Entry{Member: "out", Score: 3}, rankcache.Entry{Member: "out", Score: 4.5},
				rankcache.Entry{Member: "out", Score: trimmed}, rankcache.Entry{Member: "ü", Score: 0}, rankcache.Entry{Member: "ü", Score: trimmed})
			a := b.ask(rankcache.Query{Trimmed: true, Members: []string{"out", "nobody", "on", "ü"}})
			var rows []rankcache.Standing
			for i := range a.Own {
				rows = append(rows, a.Own[i].Standing)
			}
			want := []rankcache.Standing{{Member: "out", Score: 4.5, Trimmed: true}, {Member: "nobody"}, {Member: "on", Score: 9, Trimmed: true}, {Member: "ü", Trimmed: true}}
			if diff := cmp.Diff(want, rows); diff != "" || a.Err != nil {
				t.Errorf("%v, (-want +got)\n%s", a.Err, diff)
			}
			if a := b.ask(rankcache.Query{Members: []string{"out"}}); a.Err != nil || a.Own[0].Found() {
				t.Errorf("its standing %+v", a)
			}
		})
	}
}

// TestAnswersHaveWhatIsShown: the score of an answer is the one that is shown, with the raw one, which sidecars rank by,
// beside it. Answers of a ledger that knows of raw scores alone are read, too.
func TestAnswersHaveWhatIsShown(t *testing.T) {
	b := newBoard(t, testkit.SQLKinds[0])
	b.Form = rankcache.ScoreInteger
	a, c := wire.TieScore(10, 1, false), wire.TieScore(8, 2, false)
	b.set(rankcache.Entry{Member: "a", Score: a}, rankcache.Entry{Member: "c", Score: c})
	read := fmt.Sprintf(`{"reads":[{"board":%q,"limit":2,"members":["c"],"gap":true,"integers":true}]}`, b.Board)
	resp, err := http.Post(b.client.url, "application/json", strings.NewReader(read))
	must(t, err)
	defer resp.Body.Close()
	var got bytes.Buffer
	_, err = got.ReadFrom(resp.Body)
	must(t, err)
	rows := fmt.Sprintf(`"entries":[{"member":"a","score":10,"raw":%v},{"member":"c","score":8,"raw":%v}]`, a, c)
	own := fmt.Sprintf(`"own":[{"member":"c","score":8,"raw":%v,"rank":2,"better":10,"better_raw":%v}]`, c, a)
	if !strings.Contains(got.String(), rows) || !strings.Contains(got.String(), own) {
		t.Errorf("answered %s, want %s and %s", &got, rows, own)
	}
	older := regexp.MustCompile(`"(score|better)":\d+,"(better_)?raw":`).ReplaceAllString(got.String(), `"$1":`)
	for _, body := range []string{got.String(), older} {
		answers, err := decode([]byte(body), []Read{{Board: b.Board, Limit: 2, Members: []string{"c"}, Gap: true}})
		must(t, err)
		var to rankcache.Answer
		answers[0].set(&rankcache.Query{Members: []string{"c"}, Gap: true}, &to, time.Now())
		s := to.Own[0]
		if diff := cmp.Diff([]rankcache.Entry{{Member: "a", Score: a}, {Member: "c", Score: c}}, to.Entries); diff != "" || s.Score != c || s.Better != a {
			t.Errorf("%s is read as %+v, entries (-want +got):\n%s", body, s, diff)
		}
	}
}

// TestWhatIsNotWholeIsRefused: a board with a missing change, or that was there before the
// ledger, is not answered, nor is one that the ledger does not know.
func TestWhatIsNotWholeIsRefused(t *testing.T) {
	for _, kind := range testkit.SQLKinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := newBoard(t, kind)
			b.refused("no such board")
			b.set(rankcache.Entry{Member: "a", Score: 1})
			b.answered(1)
			b.set(rankcache.Entry{Member: "b", Score: 2})
			b.answered(2)
			b.next(rankcache.Entry{Member: "lost", Score: 3}) // never reaches the ledger
			b.set(rankcache.Entry{Member: "c", Score: 4})
			b.refused("not_proved: the ledger does not have all of the board: 1 of the changes 1 to 4 are missing")
		})
	}
}

// TestBoardWithChangesSetAsideIsRefused: Redis may be the server that has them.
func TestBoardWithChangesSetAsideIsRefused(t *testing.T) {
	b := newBoard(t, testkit.SQLKinds[0])
	b.set(rankcache.Entry{Member: "a", Score: 1})
	fork := b.Update
	b.set(rankcache.Entry{Member: "b", Score: 2})
	b.answered(2)
	delete(b.scores, "b")
	b.Update = fork
	b.Run++
	b.set(rankcache.Entry{Member: "c", Score: 3})
	b.refused("not_proved: the ledger does not have all of the board: 1 changes are set aside in rank_lost")
}

func (b *board) refused(why string) {
	b.t.Helper()
	err := b.ask(rankcache.Query{Limit: 10}).Err
	if !errors.Is(err, rankcache.ErrUnavailable) || !strings.Contains(err.Error(), why) {
		b.t.Errorf("%v, want %s", err, why)
	}
}

// ask asks the ledger.
func (b *board) ask(q rankcache.Query) rankcache.Answer {
	q.Board = b.Board
	return rankcache.One(b.t.Context(), b.client, q)
}

func (b *board) answered(rows int) rankcache.Answer {
	b.t.Helper()
	p := b.ask(rankcache.Query{Limit: 10})
	if p.Err != nil || len(p.Entries) != rows {
		b.t.Errorf("%d rows, %v, want %d", len(p.Entries), p.Err, rows)
	}
	return p
}

// TestRemovedRowsProveNothing: where retention has removed rows since the board was proved, all
// of it is added up again.
func TestRemovedRowsProveNothing(t *testing.T) {
	state := func(seq uint64) rankcache.State { return rankcache.State{Run: 7, Seq: seq, HasSum: true} }
	p := &proofs{boards: map[rankcache.BoardID]proof{"b": {state: state(3)}}}
	if whole, err := p.holds(&ledger.Snapshot{Board: "b", State: state(9), First: 5}); whole || err != nil {
		t.Errorf("%t, %v", whole, err)
	}
	if whole, err := p.holds(&ledger.Snapshot{Board: "b", State: state(3), First: 5}); !whole || err != nil {
		t.Errorf("a board at rest: %t, %v", whole, err)
	}
}

// TestAgeIsHonest: an answer is as old as the ledger was last known to have all, and there is
// none before that is known.
func TestAgeIsHonest(t *testing.T) {
	t.Parallel()
	b := newBoard(t, testkit.SQLKinds[0])
	b.set(rankcache.Entry{Member: "a", Score: 1})
	b.at = time.Now().Add(-90 * time.Second)
	p := b.answered(1)
	if age := time.Since(p.At); age < 90*time.Second || age > 100*time.Second {
		t.Errorf("the answer is %v old, want 90 s", age)
	}
	b.at = time.Time{}
	b.refused("not_ready")
}

// TestFinalAnswers: a board whose scores the ledger does not keep any more is answered from
// its final, as far as that goes.
func TestFinalAnswers(t *testing.T) {
	for _, kind := range testkit.SQLKinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := newBoard(t, kind)
			f := &ledger.Final{MadeAt: 1, Final: wire.Final{Board: b.Board, Class: "gift", Dims: map[string]string{}, Tag: "t", State: rankcache.State{Run: 7, Seq: 9, Sum: 3, HasSum: true}, Members: 4, File: "f"}}
			f.Top = []rankcache.Entry{{Member: "a", Score: 9}, {Member: "c", Score: 8}, {Member: "b", Score: 8}}
			must(t, b.store.SaveFinal(t.Context(), f))
			b.at = time.Now().Add(-time.Hour)
			p := b.ask(rankcache.Query{Start: 1, Limit: 2, Members: []string{"b"}})
			if p.Err != nil || p.Life != rankcache.LifeFinal || p.Members != 4 || p.Seq != 9 || time.Since(p.At) > time.Minute {
				t.Errorf("%+v", p)
			}
			if diff := cmp.Diff(f.Top[1:], p.Entries); diff != "" {
				t.Error(diff)
			}
			if len(p.Own) != 1 || p.Own[0].Rank != 3 || p.Own[0].Score != 8 || p.Own[0].Stamp != p.Stamp {
				t.Errorf("%+v", p.Own)
			}
			between := func(least, most float64) *rankcache.ScoreRange {
				return &rankcache.ScoreRange{Least: least, Most: most}
			}
			if p = b.ask(rankcache.Query{Range: between(8.5, 9), Limit: 9}); p.Err != nil || p.Start != 0 || p.Matches != 1 || len(p.Entries) != 1 {
				t.Errorf("above the last place that is kept: %+v", p)
			}
			for what, q := range map[string]rankcache.Query{
				"scores of the last":  {Range: between(8, 9)},
				"lower scores":        {Range: between(1, 2)},
				"scores upwards":      {Range: between(8.5, 9), Order: rankcache.Ascending},
				"a deeper page":       {Start: 2, Limit: 2},
				"the other direction": {Limit: 1, Order: rankcache.Ascending},
				"a score behind":      {Members: []string{"d"}, Trimmed: true},
			} {
				if err := b.ask(q).Err; !errors.Is(err, rankcache.ErrFinalCut) {
					t.Errorf("%s: %v", what, err)
				}
			}
			for what, q := range map[string]rankcache.Query{
				"a member behind":   {Limit: 3, Members: []string{"d"}},
				"neighbours behind": {Limit: 3, Members: []string{"b"}, Around: 3},
			} {
				if a := b.ask(q); a.Err != nil || len(a.Entries) != 3 || a.Source != rankcache.SourceFinal || !errors.Is(a.Own[0].Err, rankcache.ErrFinalCut) {
					t.Errorf("%s: %+v", what, a)
				}
			}
		})
	}
}

// TestBadRequests: what can't be asked is refused with what is wrong.
// TestFinalBeyondItsPlaces: members beyond the places that a final keeps are answered from the scores, while these are there; a final
// that keeps all needs none.
func TestFinalBeyondItsPlaces(t *testing.T) {
	for _, kind := range testkit.SQLKinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := newBoard(t, kind)
			for _, e := range []rankcache.Entry{{Member: "a", Score: 9}, {Member: "b", Score: 8}, {Member: "c", Score: 8}, {Member: "d", Score: 2}} {
				b.set(e)
			}
			f := &ledger.Final{MadeAt: 1, Final: wire.Final{Board: b.Board, Class: "gift", Dims: map[string]string{}, Tag: "t", State: b.answered(4).State, Members: 4, File: "f"}}
			f.Top = []rankcache.Entry{{Member: "a", Score: 9}, {Member: "c", Score: 8}}
			must(t, b.store.SaveFinal(t.Context(), f))
			want := func(rank int, why error) {
				t.Helper()
				a := b.ask(rankcache.Query{Limit: 2, Members: []string{"d"}, Around: 3})
				if a.Err != nil || a.Source != rankcache.SourceFinal || a.Life != rankcache.LifeFinal || cmp.Diff(f.Top, a.Entries) != "" || a.Own[0].Rank != rank || !errors.Is(a.Own[0].Err, why) {
					t.Errorf("%+v, want rank %d, %v", a, rank, why)
				}
			}
			want(4, nil)
			if a := b.ask(rankcache.Query{Start: 2, Limit: 5}); a.Err != nil || len(a.Entries) != 2 || a.Entries[1].Member != "d" {
				t.Errorf("a deeper page: %+v", a)
			}
			if a := b.ask(rankcache.Query{Members: []string{"nobody"}}); a.Err != nil || a.Own[0].Found() {
				t.Errorf("nobody: %+v", a)
			}
			db := testkit.SQL(t, b.url)
			for _, table := range []string{"rank_log", "rank_score", "rank_board"} {
				_, err := db.Exec("DELETE FROM " + table)
				must(t, err)
			}
			want(0, rankcache.ErrFinalCut)

			all := *f
			all.Board, all.Rows = "all", append(slices.Clone(f.Top), rankcache.Entry{Member: "b", Score: 8}, rankcache.Entry{Member: "d", Score: 2})
			must(t, b.store.SaveFinal(t.Context(), &all))
			b.Board = "all"
			want(4, nil)
			if a := b.ask(rankcache.Query{Members: []string{"nobody"}}); a.Err != nil || a.Own[0].Found() {
				t.Errorf("nobody: %+v", a)
			}
		})
	}
}

func TestBadRequests(t *testing.T) {
	t.Parallel()
	b := newBoard(t, testkit.SQLKinds[0])
	for body, why := range map[string]string{
		`{`:                                     "unexpected EOF",
		`{"reads":[]}`:                          "want 1 to 10",
		`{"reads":[{"board":"a b","limit":1}]}`: "bad board id",
		`{"reads":[{"board":"a","limit":501}]}`: "want 0 to 500",
		`{"reads":[{"board":"a"}]}`:             "neither rows nor members",
		`{"reads":[{"board":"a","limit":1,"limits":2}]}`:                     `"reads.0.limits"`,
		`{"reads":[{"board":"a","members":["\ud800"]}]}`:                     "surrogate",
		`{"reads":[{"board":"a","board":"b","limit":1}]}`:                    "twice",
		`{"reads":[{"board":"a","limit":1,"order":"up"}]}`:                   "want asc or desc",
		`{"reads":[{"board":"a","members":["x","y"],"around":1}]}`:           "one with around or gap",
		`{"reads":[{"board":"a","members":["x"],"scores":true,"gap":true}]}`: "a read of scores takes no rows",
		`{"reads":[{"board":"a","members":[""]}]}`:                           "bad member id",
	} {
		if status, p := postRead(t, b, body); status != http.StatusBadRequest || p.Code != "bad_request" || !strings.Contains(p.Detail, why) {
			t.Errorf("%.60s: %d %+v, want %s", body, status, p, why)
		}
	}
	body := `{"reads":[{"board":"a","members":["` + strings.Repeat("m", 2<<20) + `"]}]}`
	if status, p := postRead(t, b, body); status != http.StatusRequestEntityTooLarge || p.Code != "body_too_large" {
		t.Errorf("a large body: %d %+v", status, p)
	}
}

// postRead posts a body, and returns the status and the problem.
func postRead(t *testing.T, b *board, body string) (status int, p struct{ Code, Detail string }) {
	t.Helper()
	resp, err := http.Post(b.client.url, "application/json", strings.NewReader(body)) //nolint:noctx // of this test
	must(t, err)
	defer resp.Body.Close()
	must(t, json.NewDecoder(resp.Body).Decode(&p))
	return resp.StatusCode, p
}

// TestLedgerThatAnswersWrongly: an answer that is not to the question is an error.
func TestLedgerThatAnswersWrongly(t *testing.T) {
	t.Parallel()
	state := `"state":"1-2-","members":3,"age_ms":1`
	for _, body := range []string{"", "{}", `{"answers":[]}`, `{"answers":[{` + state + `},{` + state + `}]}`,
		`{"answers":[{"state":"x"}]}`, `{"answers":[{` + state + `,"own":[{"member":"other","rank":1}]}]}`,
		`{"answers":[{` + state + `,"own":[{"member":"m","rank":-1}]}]}`, `{"answers":[{` + state + `,"own":[{"member":"m","rank":5}]}]}`,
		`{"answers":[{` + state + `,"own":[{"member":"m","rank":5,"first":1,"neighbours":[{"member":"m"}]}]}]}`} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }))
		client, err := NewClient(server.URL, nil)
		must(t, err)
		if a := rankcache.One(t.Context(), client, rankcache.Query{Board: "a", Members: []string{"m"}, Around: 3}); !errors.Is(a.Err, rankcache.ErrUnavailable) {
			t.Errorf("%s: %+v", body, a)
		}
		server.Close()
	}
	for _, bad := range []string{"", "ledger:8976", "ftp://x", "http://u:p@x", "http://x?y=1"} {
		if _, err := NewClient(bad, nil); err == nil {
			t.Errorf("%q is taken for a URL", bad)
		}
	}
}

// FuzzAnswers: whatever a ledger answers, the client returns what was asked for or an error.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte(`{"answers":[{"state":"1-2-","members":3,"age_ms":1,"entries":[{"member":"a","score":1}],"own":[{"member":"m","score":1,"rank":2,"first":1,"neighbours":[{"member":"m","score":1}],"better":2}]}]}`))
	f.Add([]byte(`{"answers":[{"code":"not_proved","detail":"x"}]}`))
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) }))
	f.Cleanup(server.Close)
	client, err := NewClient(server.URL, nil)
	must(f, err)
	f.Fuzz(func(t *testing.T, data []byte) {
		body = bytes.Clone(data)
		p := rankcache.One(context.Background(), client, rankcache.Query{Board: "a", Limit: 2, Members: []string{"m"}, Around: 3, Percentile: true})
		if p.Err != nil {
			return
		}
		if own := &p.Own[0]; len(p.Entries) > 2 || own.Member != "m" || own.Rank > 0 && own.Neighbours[own.Rank-1-own.First].Member != "m" {
			t.Errorf("%+v", p)
		}
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
