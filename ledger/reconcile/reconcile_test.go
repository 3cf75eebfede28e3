package reconcile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rankcache"
	"rankcache/class"
	"rankcache/internal/testkit"
	"rankcache/ledger"
	"rankcache/wire"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// now is a whole hour, and a quiet one.
var now = time.UnixMilli(1_700_000_400_000)

// scene is a ledger, and books in a database of the other kind.
type scene struct {
	t      *testing.T
	store  *ledger.Store
	books  *sql.DB
	kind   string // of the books' database
	seq    uint64
	offset int64
	shards int // of the board; 0: it is not split
}

// on returns the board that has a member in the ledger.
func (s *scene) on(member string) rankcache.BoardID {
	if s.shards == 0 {
		return board
	}
	return class.ShardID(board, class.ShardOf(member, s.shards))
}

// entry is one order on its way to both sides.
type entry struct {
	class  bool // the books name it by class
	order  string
	member string
	op     wire.Op
	number float64
	at     int64
	form   rankcache.ScoreForm
}

func newScene(t *testing.T, kind string) *scene {
	s := &scene{t: t, kind: kind}
	var other string
	for _, other = range testkit.SQLKinds {
		if other != kind {
			break
		}
	}
	var err error
	if s.store, err = ledger.Open(testkit.Database(t, other), nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.store.Close() })
	if s.books, err = ledger.OpenSQL(testkit.Database(t, kind), nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.books.Close() })
	if err := s.store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.store.Begin(t.Context(), "topic", 0, 0); err != nil {
		t.Fatal(err)
	}
	s.exec("CREATE TABLE gifts (id varchar(64), board varchar(64), class varchar(40), dims varchar(200), member varchar(64), op varchar(10), amount numeric(20, 2), created bigint)")
	return s
}

func (s *scene) exec(text string) {
	s.t.Helper()
	if _, err := s.books.ExecContext(s.t.Context(), text); err != nil {
		s.t.Fatal(err)
	}
}

// states are what Redis knows: nothing but that one board is closed.
func states(_ context.Context, boards []rankcache.BoardID) (map[rankcache.BoardID]wire.Meta, error) {
	metas := make(map[rankcache.BoardID]wire.Meta)
	for _, b := range boards {
		if b == "shut" {
			metas[b] = wire.Meta{Life: wire.LifeClosed}
		}
	}
	return metas, nil
}

const board, className, dims = "gift:7:20261122", "gift", `{"zone":"7"}`

// entries makes n orders of the ten minutes before now.
func entries(n int) (all []entry) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		e := entry{class: i%3 == 0, order: fmt.Sprintf("O-%d é", i), member: fmt.Sprintf("m%d", random.IntN(1000)), op: wire.OpIncr, number: float64(random.IntN(100)), at: now.Add(-window).UnixMilli() + int64(i)*480_000/int64(n)}
		if i%10 == 0 {
			e.op, e.member = wire.OpSet, fmt.Sprintf("s%d", i) // an incr behind a set of its member is not posted
		}
		all = append(all, e)
	}
	return all
}

// write puts orders into the books.
func (s *scene) write(all ...entry) {
	s.t.Helper()
	for len(all) > 0 {
		var text strings.Builder
		n := min(len(all), 5000)
		for i, e := range all[:n] {
			b, c, d := "'"+board+"'", "NULL", "NULL"
			if e.class {
				b, c, d = "NULL", "'"+className+"'", "'"+dims+"'"
			}
			fmt.Fprintf(&text, "%s('%s', %s, %s, %s, '%s', '%s', %v, %d)", [2]string{"", ", "}[min(i, 1)], e.order, b, c, d, e.member, e.op, e.number, e.at)
		}
		s.exec("INSERT INTO gifts VALUES " + text.String())
		all = all[n:]
	}
}

// apply puts orders into the ledger, as a writer would have applied them.
func (s *scene) apply(all ...entry) {
	s.t.Helper()
	for len(all) > 0 {
		b, n := ledger.NewBatch("topic"), 0
		for n < min(len(all), 1000) {
			e := all[n]
			s.seq++
			u := &wire.LedgerUpdate{Class: className, Dims: map[string]string{"zone": "7"}, Tag: "20261122",
				Update: wire.Update{Board: s.on(e.member), Member: e.member, Op: e.op, Run: 1, Seq: s.seq, OrderID: e.order, At: e.at, Delta: e.number, Score: e.number, Form: e.form}}
			if e.op.Moves() {
				u.Hiding = wire.Hiding{Serial: s.seq, Hidden: e.op == wire.OpHide}
			}
			if !b.Add(u, 0, s.offset, s.offset+int64(n)) {
				s.seq--
				break
			}
			n++
		}
		if _, err := s.store.Apply(s.t.Context(), b); err != nil {
			s.t.Fatal(err)
		}
		s.offset += int64(n)
		all = all[n:]
	}
}

func (s *scene) query() string {
	text := "SELECT id AS order_id, board, class, dims, member, op, amount AS number, created AS at FROM gifts WHERE created >= ? AND created < ?"
	if s.kind == "postgres" {
		text = strings.Replace(strings.Replace(text, "?", "$1", 1), "?", "$2", 1)
	}
	return text
}

func (s *scene) reconciler(posted *[]*wire.LedgerUpdate) *Reconciler {
	return &Reconciler{Books: NewBooks(s.books, s.query()), Store: s.store, Metas: states, Most: 10_000, Post: func(_ context.Context, commands []*wire.LedgerUpdate) error {
		*posted = append(*posted, commands...)
		return nil
	}}
}

func (s *scene) compare(r *Reconciler) *Report {
	s.t.Helper()
	report, err := r.Compare(s.t.Context(), now.Add(-window).UnixMilli(), now.Add(-Settling).UnixMilli(), now)
	if err != nil {
		s.t.Fatal(err)
	}
	return report
}

func wantCounts(t *testing.T, r *Report, want map[string]int) {
	t.Helper()
	got := maps.Clone(r.Counts)
	maps.DeleteFunc(got, func(_ string, n int) bool { return n == 0 })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("differences (-want +got):\n%s\nthe first: %+v", diff, r.Differences[:min(3, len(r.Differences))])
	}
}

// TestEveryPlantedDifferenceIsFound: what was planted is found, and nothing else; what was posted is there the next time.
func TestEveryPlantedDifferenceIsFound(t *testing.T) {
	for _, kind := range testkit.SQLKinds {
		t.Run(kind, func(t *testing.T) {
			n, planted := 20_000, 50
			if testkit.Full() && !testkit.Race {
				n, planted = 200_000, 500
			}
			s := newScene(t, kind)
			missing, different, extra := make(map[string]bool), make(map[string]bool), make(map[string]bool)
			var books, rows []entry
			for i, e := range entries(n) {
				theirs := e
				switch every := n / planted; i % every {
				case 1:
					missing[e.order] = true
					books = append(books, theirs)
					continue
				case every / 2:
					theirs.number++
					different[e.order] = true
				case every - 1:
					extra[e.order] = true
					rows = append(rows, e)
					continue
				}
				if theirs.number == e.number {
					theirs.at += int64(i%2)*8000 - 4000 // the two sides' clocks differ
				}
				books, rows = append(books, theirs), append(rows, e)
			}
			s.write(books...)
			s.apply(rows...)
			var posted []*wire.LedgerUpdate
			r := s.reconciler(&posted)
			books, rows = nil, nil
			most, begun := watchHeap(), time.Now()
			report := s.compare(r)
			t.Logf("%d orders of the books, %d changes of the ledger in %v, a heap of %d MiB at most", report.Books, report.Ledger, time.Since(begun).Round(time.Millisecond), most()>>20)
			wantCounts(t, report, map[string]int{Missing: planted, Different: planted, Extra: planted})
			for _, d := range report.Differences {
				if !map[string]map[string]bool{Missing: missing, Different: different, Extra: extra}[d.Kind][d.Order] {
					t.Fatalf("%+v was not planted", d)
				}
			}
			if report.Posted != planted || len(posted) != planted {
				t.Fatalf("%d are posted, the report has %d, want %d", len(posted), report.Posted, planted)
			}
			for _, u := range posted {
				s.apply(entry{order: u.OrderID, member: u.Member, op: u.Op, number: u.Delta + u.Score, at: u.At})
			}
			posted = nil
			wantCounts(t, s.compare(r), map[string]int{Different: planted, Extra: planted})
			if posted != nil {
				t.Errorf("the second comparison posts %d orders", len(posted))
			}
		})
	}
}

// Hides and restores are in no books, and don't keep a missing order from being posted.
func TestHidesAreNotCompared(t *testing.T) {
	for _, kind := range testkit.SQLKinds {
		t.Run(kind, func(t *testing.T) {
			s, at := newScene(t, kind), now.Add(-5*time.Minute).UnixMilli()
			missing, there := entry{order: "O-1", member: "m", op: wire.OpIncr, number: 1, at: at}, entry{order: "O-2", member: "m", op: wire.OpIncr, number: 2, at: at + 3}
			s.write(missing, there)
			s.apply(entry{order: "hide/1/m", member: "m", op: wire.OpHide, at: at + 1}, there, entry{order: "hide/2/m", member: "m", op: wire.OpRestore, at: at + 4})
			var posted []*wire.LedgerUpdate
			wantCounts(t, s.compare(s.reconciler(&posted)), map[string]int{Missing: 1})
			if len(posted) != 1 || posted[0].OrderID != "O-1" {
				t.Errorf("posted %+v", posted)
			}
		})
	}
}

// watchHeap returns a function that stops the watch and returns the most that the heap had, garbage included.
func watchHeap() func() uint64 {
	debug.FreeOSMemory()
	stop, most := make(chan struct{}), make(chan uint64)
	go func() {
		var highest uint64
		for tick := time.NewTicker(20 * time.Millisecond); ; {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			highest = max(highest, m.HeapAlloc)
			select {
			case <-stop:
				tick.Stop()
				most <- highest
				return
			case <-tick.C:
			}
		}
	}()
	return func() uint64 { close(stop); return <-most }
}

// TestWhatIsNotPosted: orders that may have been forgotten, of closed boards, and that
// were posted a moment ago.
func TestWhatIsNotPosted(t *testing.T) {
	s := newScene(t, testkit.SQLKinds[0])
	old := now.Add(-forgotten)
	s.write(entry{order: "old", member: "m", op: wire.OpIncr, number: 1, at: old.UnixMilli()})
	var posted []*wire.LedgerUpdate
	r := s.reconciler(&posted)
	compare := func(from time.Time, order, why string) {
		t.Helper()
		report, err := r.Compare(t.Context(), from.UnixMilli(), now.Add(-Settling).UnixMilli(), now)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range report.Differences {
			if d.Order == order && d.Why == why && d.Posted == (why == "") {
				return
			}
		}
		t.Errorf("%s is not reported with %q: %+v", order, why, report.Differences)
	}
	compare(old, "old", TooOld)
	s.exec(fmt.Sprintf("INSERT INTO gifts VALUES ('shut', 'shut', NULL, NULL, 'm', 'incr', 1, %d)", now.Add(-2*time.Minute).UnixMilli()))
	compare(old, "shut", Closed)
	s.write(entry{order: "new", member: "m", op: wire.OpIncr, number: 1, at: now.Add(-2 * time.Minute).UnixMilli()})
	compare(old, "new", "")
	compare(old, "new", PostedLately)
	now = now.Add(postAgain)
	defer func() { now = now.Add(-postAgain) }()
	compare(old, "new", "")
	for _, e := range []entry{{order: "set", member: "s", op: wire.OpSet, number: 5}, {order: "behind", member: "s", op: wire.OpIncr, number: 1},
		{order: "incr", member: "i", op: wire.OpIncr, number: 5}, {order: "also", member: "i", op: wire.OpIncr, number: 1}, {order: "over", member: "i", op: wire.OpDelete},
		{order: "best", member: "b", op: wire.OpBest, number: 5}, {order: "better", member: "b", op: wire.OpBest, number: 6}, {order: "beside", member: "b", op: wire.OpIncr, number: 1}} {
		e.at = now.Add(-3 * time.Minute).UnixMilli()
		if s.write(e); e.order == "set" || e.order == "incr" || e.order == "best" {
			e.at += 1000
			s.apply(e)
		}
	}
	compare(old, "behind", Changed)
	compare(old, "over", Changed)
	compare(old, "beside", Changed)
	compare(old, "better", PostedLately)
	compare(old, "also", PostedLately)
	for i := len(r.posted); i < mostPosted; i++ {
		r.posted[uint64(i)] = now
	}
	s.write(entry{order: "more", member: "m", op: wire.OpIncr, number: 1, at: now.Add(-2 * time.Minute).UnixMilli()})
	compare(old, "more", TooMany)
	r.Post = nil
	compare(old, "more", OnlyLooked)
	if better := func(u *wire.LedgerUpdate) bool { return u.OrderID == "better" && u.Op == wire.OpBest && u.Score == 6 }; len(posted) != 4 || !slices.ContainsFunc(posted, better) {
		t.Errorf("%d posts, want new twice, also and better: %+v", len(posted), posted)
	}
}

// TestBadBooks: a query that can't be used is refused with what is wanted, and rows that no command could be like are counted.
func TestBadBooks(t *testing.T) {
	for _, kind := range testkit.SQLKinds {
		t.Run(kind, func(t *testing.T) {
			s := newScene(t, kind)
			at := now.Add(-2 * time.Minute).UnixMilli()
			s.write(entry{order: "a", member: "m", op: wire.OpTrim, number: 1, at: at}, entry{order: "", member: "m", op: wire.OpIncr, number: 1, at: at},
				entry{order: "b", member: "", op: wire.OpIncr, number: 1, at: at})
			var posted []*wire.LedgerUpdate
			wantCounts(t, s.compare(s.reconciler(&posted)), map[string]int{Bad: 3})
			for name, text := range map[string]string{
				"a column is missing": strings.Replace(s.query(), ", op", "", 1),
				"an unknown column":   strings.Replace(s.query(), "id AS order_id", "id AS order_id, id AS other", 1),
				"twice":               strings.Replace(s.query(), "id AS order_id", "id AS order_id, member AS order_id", 1),
				"no board":            strings.Replace(strings.Replace(s.query(), "board, ", "", 1), "dims, ", "", 1),
				"no parameters":       s.query()[:strings.Index(s.query(), " WHERE")],
				"not SQL":             "orders please",
				"it writes":           "DELETE FROM gifts",
			} {
				err := NewBooks(s.books, text).Each(t.Context(), 0, now.UnixMilli(), func(*Row) error { return nil })
				if !errors.Is(err, ErrQuery) || !strings.Contains(err.Error(), "order_id") {
					t.Errorf("%s: %v", name, err)
				}
			}
			var left int
			if err := s.books.QueryRowContext(t.Context(), "SELECT count(*) FROM gifts").Scan(&left); err != nil || left != 3 {
				t.Errorf("%d rows are left, %v", left, err)
			}
		})
	}
}
