package history

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/ledger"
	"rankcache/wire"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// newServer returns the routes over a ledger with the finals of three half hours and two
// zones: member m<i> has the place i+1 of each, and "x" is in those of zone 1 alone.
func newServer(t *testing.T, kind string) (http.Handler, *ledger.Store) {
	t.Helper()
	store, err := ledger.Open(testkit.Database(t, kind), nil)
	must(t, err)
	t.Cleanup(func() { store.Close() })
	must(t, store.Migrate(t.Context()))
	for i, tag := range []string{"20261122-35", "20261122-36", "20261123-01"} {
		for _, zone := range []string{"1", "2"} {
			f := &ledger.Final{MadeAt: 1}
			f.Final = wire.Final{Board: rankcache.BoardID("gift:" + zone + ":" + tag), Class: "gift", Dims: map[string]string{"zone": zone}, Tag: tag, Start: int64(i) * 1800e3, End: int64(i+1) * 1800e3,
				State: rankcache.State{Run: 1, Seq: 2, Sum: 3, HasSum: true}, Members: 5, File: "file:///f"}
			for m := range 4 {
				f.Top = append(f.Top, rankcache.Entry{Member: fmt.Sprint("m", m), Score: 9.5 - float64(m)})
			}
			if zone == "1" {
				f.Form = rankcache.ScoreInteger
				f.Top = append(f.Top, rankcache.Entry{Member: rankcache.JoinData("x/ü", "car"), Score: 1})
			}
			must(t, store.SaveFinal(t.Context(), f))
		}
	}
	mux := http.NewServeMux()
	Register(mux, store, slog.New(slog.DiscardHandler))
	return mux, store
}

func get(t *testing.T, h http.Handler, path string, into any) int {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", path, nil))
	if into != nil {
		must(t, json.Unmarshal(w.Body.Bytes(), into))
	}
	return w.Code
}

type page struct {
	Finals, History []struct {
		Board  string
		State  string
		Rank   int
		Member string
	}
	Next string
}

// pages reads all pages of a list and returns their boards.
func pages(t *testing.T, h http.Handler, path string) (boards []string) {
	t.Helper()
	for cursor := ""; ; {
		var p page
		if code := get(t, h, path+"?limit=2"+cursor, &p); code != 200 || len(boards) > 10 {
			t.Fatalf("%s: %d, %q", path, code, boards)
		}
		for _, f := range slices.Concat(p.Finals, p.History) {
			boards = append(boards, f.Board)
		}
		if p.Next == "" {
			return boards
		}
		cursor = "&cursor=" + p.Next
	}
}

func TestFinalsArePaged(t *testing.T) {
	for _, kind := range testkit.SQLKinds {
		t.Run(kind, func(t *testing.T) {
			h, _ := newServer(t, kind)
			all := []string{"gift:2:20261123-01", "gift:1:20261123-01", "gift:2:20261122-36", "gift:1:20261122-36", "gift:2:20261122-35", "gift:1:20261122-35"}
			for path, want := range map[string][]string{"/v1/classes/gift/finals": all, "/v1/members/m3/history": all, "/v1/members/x%2F%C3%BC/history": {all[1], all[3], all[5]},
				"/v1/classes/none/finals": nil, "/v1/members/nobody/history": nil} {
				if got := pages(t, h, path); !slices.Equal(got, want) {
					t.Errorf("%s: %q, want %q", path, got, want)
				}
			}
			var p page
			get(t, h, "/v1/members/m3/history?limit=1", &p)
			if f := p.History[0]; f.Rank != 4 || f.Member != "m3" || f.State != "1-2-000000000003" {
				t.Errorf("history %+v", f)
			}
			var one struct{ History []entryRow }
			get(t, h, "/v1/members/x%2F%C3%BC/history?limit=1", &one)
			if got := fmt.Sprint(one.History); got != "[{5 x/ü 1 car}]" {
				t.Errorf("history %s", got)
			}
			for _, c := range []struct {
				zone, args, want string
			}{{"1", "", "[{1 m0 9 } {2 m1 8 } {3 m2 7 } {4 m3 6 } {5 x/ü 1 car}]"}, {"2", "", "[{1 m0 9.5 } {2 m1 8.5 } {3 m2 7.5 } {4 m3 6.5 }]"},
				{"2", "&start=2&limit=1", "[{3 m2 7.5 }]"}, {"2", "&start=4", "[]"}} {
				var f struct {
					Entries []entryRow
					Members int
				}
				path := "/v1/classes/gift/finals/20261122-36?zone=" + c.zone + c.args
				if code := get(t, h, path, &f); code != 200 || fmt.Sprint(f.Entries) != c.want || f.Members != 5 {
					t.Errorf("%s: %d %+v", path, code, f)
				}
			}
		})
	}
}

// TestHistoryBeyondTheKeptPlaces: a member beyond the places that finals keep is told without a rank as long as the ledger has the
// scores; then the history is not complete.
func TestHistoryBeyondTheKeptPlaces(t *testing.T) {
	for _, kind := range testkit.SQLKinds {
		t.Run(kind, func(t *testing.T) {
			url := testkit.Database(t, kind)
			store, err := ledger.Open(url, nil)
			must(t, err)
			t.Cleanup(func() { store.Close() })
			must(t, store.Migrate(t.Context()))
			must(t, store.Begin(t.Context(), "topic", 0, 0))
			batch, rows := ledger.NewBatch("topic"), []rankcache.Entry{{Member: "a", Score: 3}, {Member: "b", Score: 2}, {Member: "c", Score: 1}}
			for i, e := range rows {
				u := wire.LedgerUpdate{Class: "gift", Dims: map[string]string{}, Tag: "20261122", Update: wire.Update{Board: "b", Member: e.Member, Score: e.Score, Op: wire.OpSet, Run: 1, Seq: uint64(i) + 1, OrderID: e.Member}}
				batch.Add(&u, 0, 0, int64(i))
			}
			_, err = store.Apply(t.Context(), batch)
			must(t, err)
			f := &ledger.Final{MadeAt: 1, Final: wire.Final{Board: "b", Class: "gift", Dims: map[string]string{}, Tag: "20261122", End: 9, Members: 3, Top: rows[:2]}}
			must(t, store.SaveFinal(t.Context(), f))
			mux := http.NewServeMux()
			Register(mux, store, slog.New(slog.DiscardHandler))
			tell := func(member string) string {
				var h struct {
					History []struct {
						Board string
						Rank  *int
						Score float64
					}
					Complete bool
				}
				get(t, mux, "/v1/members/"+member+"/history", &h)
				text := fmt.Sprint(h.Complete)
				for _, row := range h.History {
					if text += fmt.Sprint(" ", row.Board, " ", row.Score); row.Rank != nil {
						text += fmt.Sprint(" rank ", *row.Rank)
					}
				}
				return text
			}
			check := func(when string, want map[string]string) {
				t.Helper()
				for member, want := range want {
					if got := tell(member); got != want {
						t.Errorf("%s: %s: %q, want %q", when, member, got, want)
					}
				}
			}
			check("with scores", map[string]string{"b": "true b 2 rank 2", "c": "true b 1", "d": "true"})
			db := testkit.SQL(t, url)
			for _, table := range []string{"rank_log", "rank_score", "rank_board"} {
				_, err := db.Exec("DELETE FROM " + table)
				must(t, err)
			}
			check("without", map[string]string{"b": "false b 2 rank 2", "c": "false", "d": "false"})
			f.Board, f.Rows = "all", rows
			must(t, store.SaveFinal(t.Context(), f))
			_, err = db.Exec("DELETE FROM rank_final_board WHERE board = 'b'")
			must(t, err)
			check("with all rows", map[string]string{"c": "true all 1 rank 3", "d": "true"})
		})
	}
}

func TestBadRequestsAreRefused(t *testing.T) {
	h, store := newServer(t, "postgres")
	cursor := cursorOf("20261122-36", "b")
	for path, want := range map[string]string{
		"/v1/classes/Gift/finals":                              "400 bad_argument class",
		"/v1/classes/gift/finals?limit=0":                      "400 bad_argument limit",
		"/v1/classes/gift/finals?limit=501":                    "400 bad_argument limit",
		"/v1/classes/gift/finals?limit=5&limit=6":              "400 bad_argument limit",
		"/v1/classes/gift/finals?more=1":                       "400 bad_argument more",
		"/v1/classes/gift/finals?limit=%zz":                    "400 bad_argument ",
		"/v1/classes/gift/finals?cursor=x":                     "400 bad_argument cursor",
		"/v1/members/m/history?cursor=" + cursor:               "400 bad_argument cursor",
		"/v1/members/%00/history":                              "400 bad_argument member",
		"/v1/members/" + strings.Repeat("m", 129) + "/history": "400 bad_argument member",
		"/v1/classes/gift/finals/20261122_36?zone=1":           "400 bad_argument tag",
		"/v1/classes/gift/finals/20261122-36?zone=%00":         "400 bad_argument zone",
		"/v1/classes/gift/finals/20261122-36?start=-1":         "400 bad_argument start",
		"/v1/classes/gift/finals/20261122-36":                  "404 unknown_final ",
		"/v1/classes/gift/finals/20261122-36?zone=1&x=1":       "404 unknown_final ",
		"/v1/classes/gift/finals/20261122-37?zone=1":           "404 unknown_final ",
	} {
		var p struct{ Code, Argument string }
		if code := get(t, h, path, &p); fmt.Sprint(code, " ", p.Code, " ", p.Argument) != want {
			t.Errorf("%.80s: %d %+v, want %s", path, code, p, want)
		}
	}
	store.Close()
	var p struct{ Code string }
	if code := get(t, h, "/v1/classes/gift/finals", &p); code != 503 || p.Code != "ledger_unavailable" {
		t.Errorf("without the database: %d %+v", code, p)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
