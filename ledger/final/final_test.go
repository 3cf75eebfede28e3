package final

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/objects"
	"rankcache/internal/testkit"
	"rankcache/ledger"
	"rankcache/origin"
	"rankcache/rooms"
	"rankcache/wire"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// fixture is a board of an ended day, in Redis and in a ledger.
type fixture struct {
	*Finalizer
	redis *redis.Client
	names wire.Names
	board rankcache.BoardID
	next  int64 // record of the ledger's topic

	database string
}

func newFixture(t *testing.T, kind string, files Files) *fixture {
	t.Helper()
	f := &fixture{names: wire.DefaultNames()}
	f.redis = redis.NewClient(&redis.Options{Addr: testkit.Redis(t), Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { f.redis.Close() })
	name := strings.NewReplacer("_", "-", ":", "-").Replace(testkit.Name(t))
	file, err := rooms.Parse([]byte("classes:\n- {name: paid, board: \"" + name + ":{zone}:{period}\", period: day, ledger: true, score: integer}\n"))
	must(t, err)
	f.board = rankcache.BoardID(name + ":7:20261122")
	f.database = testkit.Database(t, kind)
	store, err := ledger.Open(f.database, nil)
	must(t, err)
	t.Cleanup(func() { store.Close() })
	must(t, store.Migrate(t.Context()))
	must(t, store.Begin(t.Context(), "topic", 0, 0))
	f.Finalizer = New(Options{Origin: origin.New(f.redis, f.names), Store: store, Files: files, Rooms: func() *rooms.File { return file }, Top: 2, Registerer: prometheus.NewRegistry()})
	return f
}

// change changes the board in Redis, and in the ledger unless it lags.
func (f *fixture) change(t *testing.T, member string, score float64, lags bool) {
	t.Helper()
	u := testkit.ChangeBoard(t, f.redis, f.names, f.board, wire.OpSet, member, score)
	if lags {
		return
	}
	b := ledger.NewBatch("topic")
	b.Add(&wire.LedgerUpdate{Update: u, Class: "paid", Dims: map[string]string{"zone": "7"}, Tag: "20261122"}, 0, f.next, f.next)
	f.next++
	_, err := f.opts.Store.Apply(t.Context(), b)
	must(t, err)
}

func both(t *testing.T, test func(*testing.T, *fixture)) {
	for _, kind := range testkit.SQLKinds {
		t.Run(kind, func(t *testing.T) { test(t, newFixture(t, kind, openFolder(t))) })
	}
}

func openFolder(t *testing.T) Files {
	files, err := objects.Open("file://" + t.TempDir())
	must(t, err)
	return files
}

// Data of members is in SQL, in the file and in the record, and what differs is no final.
func TestFinalOfMembersWithData(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, f *fixture) {
		template, _, _ := strings.Cut(string(f.board), ":")
		file, err := rooms.Parse([]byte("classes:\n- {name: cars, board: \"" + template + ":{zone}:{period}\", period: day, ledger: true, data: true}\n"))
		must(t, err)
		f.opts.Rooms = func() *rooms.File { return file }
		f.opts.Origin = origin.New(f.redis, f.names, origin.WithData(func(rankcache.BoardID) bool { return true }))
		f.opts.Top = 3
		var rows []redis.Z
		b := ledger.NewBatch("topic")
		for i, u := range []wire.Update{{Member: "a", Score: 7, Data: "car"}, {Member: "b", Score: 2}, {Member: "ab", Score: 2, Data: "ü"}} {
			must(t, f.redis.ZAdd(t.Context(), f.names.BoardKey(f.board), redis.Z{Member: u.Member, Score: u.Score}).Err())
			if u.Data != "" {
				must(t, f.redis.HSet(t.Context(), f.names.CompanionKey(f.board, wire.Data), u.Member, u.Data).Err())
			}
			rows = append(rows, redis.Z{Member: rankcache.JoinData(u.Member, u.Data), Score: u.Score})
			value := testkit.Meta(5, uint64(i)+1, rows)
			must(t, f.redis.Set(t.Context(), f.names.MetaKey(f.board), value, 0).Err())
			meta, err := wire.ParseMeta(string(value))
			must(t, err)
			u.Board, u.Op, u.OrderID, u.Run, u.Seq, u.Sum, u.HasSum, u.Members = f.board, wire.OpSet, u.Member, meta.Run, meta.Seq, meta.Sum, true, i+1
			b.Add(&wire.LedgerUpdate{Update: u, Class: "cars", Dims: map[string]string{"zone": "7"}, Tag: "20261122"}, 0, 0, int64(i))
		}
		_, err = f.opts.Store.Apply(t.Context(), b)
		must(t, err)
		key := f.names.CompanionKey(f.board, wire.Data)
		must(t, f.redis.HSet(t.Context(), key, "b", "stolen").Err())
		two := 2.0
		want := []ledger.Difference{{Member: "b", Redis: &two, Ledger: &two, RedisData: "stolen"}}
		_, err = f.Final(t.Context(), f.board)
		if d, ok := errors.AsType[*Differs](err); !ok || !cmp.Equal(d.List, want) {
			t.Fatalf("final of other data: %v", err)
		}
		must(t, f.redis.HDel(t.Context(), key, "b").Err())
		record, err := f.Final(t.Context(), f.board)
		must(t, err)
		if !strings.Contains(string(record), `{"rank":1,"member":"a","score":7,"data":"car"},{"rank":2,"member":"b","score":2},{"rank":3,"member":"ab","score":2,"data":"ü"}`) {
			t.Errorf("record %s", record)
		}
		made, err := f.opts.Store.FinalOf(t.Context(), f.board, 0, 10)
		must(t, err)
		if made.Top[0].Member != "a\x00car" || made.Top[1].Member != "b" || made.Top[2].Member != "ab\x00ü" {
			t.Errorf("in SQL %+v", made.Top)
		}
		at, err := url.Parse(made.File)
		must(t, err)
		data, err := os.ReadFile(at.Path)
		must(t, err)
		type row struct {
			Member string `parquet:"member"`
			Data   string `parquet:"data"`
		}
		got, err := parquet.Read[row](bytes.NewReader(data), int64(len(data)))
		if want := []row{{"a", "car"}, {"b", ""}, {"ab", "ü"}}; err != nil || !cmp.Equal(got, want) {
			t.Errorf("file %v, %v", got, err)
		}
	})
}

// finalFileRow is a row of a class whose scores are S.
type finalFileRow[S int64 | float64] struct {
	Rank   int64   `parquet:"rank"`
	Member string  `parquet:"member"`
	Score  S       `parquet:"score"`
	Raw    float64 `parquet:"raw"`
}

// A class with final_rows: all has all members in SQL; the record has the first ones as ever.
func TestFinalOfAllRows(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, f *fixture) {
		for i := range 3 {
			f.change(t, "m"+strconv.Itoa(i), float64(i), false)
		}
		template, _, _ := strings.Cut(string(f.board), ":")
		file, err := rooms.Parse([]byte("classes:\n- {name: paid, board: \"" + template + ":{zone}:{period}\", period: day, ledger: true, final_rows: all}\n"))
		must(t, err)
		f.opts.Rooms = func() *rooms.File { return file }
		record, err := f.Final(t.Context(), f.board)
		must(t, err)
		found, err := f.opts.Store.FinalOf(t.Context(), f.board, 0, 10)
		must(t, err)
		if n := strings.Count(string(record), `"rank":`); n != 2 || found.Kept != 3 || len(found.Top) != 3 || found.Top[2].Member != "m0" {
			t.Errorf("%d places in the record, want 2; in SQL %+v", n, found)
		}
	})
}

func TestFinalIsMadeOnce(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, f *fixture) {
		for _, e := range []rankcache.Entry{{Member: "b", Score: 2.5}, {Member: "a", Score: 7}, {Member: "c", Score: 2.5}} {
			f.change(t, e.Member, e.Score, false)
		}
		record, err := f.Final(t.Context(), f.board)
		must(t, err)
		var got struct {
			V                     int
			Class, Tag, Sum, File string
			Start, Seq, Members   int64
			Top                   []struct {
				Rank       int
				Member     string
				Score, Raw float64
			}
		}
		must(t, json.Unmarshal(record, &got))
		state := testkit.BoardState(t, f.redis, f.names, f.board)
		if got.Class != "paid" || got.Tag != "20261122" || got.Start != time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC).UnixMilli() || got.Seq != 3 || got.Members != 3 ||
			!strings.HasSuffix(state.String(), got.Sum) || len(got.Top) != 2 || got.V != 2 || got.Top[1].Member != "c" || got.Top[1].Score != 2 || got.Top[1].Raw != 2.5 {
			t.Errorf("record %s", record)
		}
		at, err := url.Parse(got.File)
		must(t, err)
		want := []finalFileRow[int64]{{1, "a", 7, 7}, {2, "c", 2, 2.5}, {3, "b", 2, 2.5}}
		if rows := readFile(t, at.Path, "sum", got.Sum); !cmp.Equal(rows, want) {
			t.Errorf("file: %v", cmp.Diff(want, rows))
		}
		var score, raw float64
		must(t, testkit.SQL(t, f.database).QueryRowContext(t.Context(), "SELECT score, raw FROM rank_final WHERE place = 2").Scan(&score, &raw))
		if score != 2 || raw != 2.5 {
			t.Errorf("rank_final has the score %v, raw %v", score, raw)
		}
		f.change(t, "a", 9, false) // whatever is done to the board later
		if again, err := f.Final(t.Context(), f.board); err != nil || !bytes.Equal(again, record) {
			t.Errorf("second final %s %v, want %s", again, err, record)
		}
		if err := f.opts.Store.SaveFinal(t.Context(), &ledger.Final{Final: wire.Final{Board: f.board}}); !errors.Is(err, ledger.ErrFinalThere) {
			t.Errorf("saving another one: %v", err)
		}
	})
}

// readFile reads a file whose metadata has a value.
func readFile(t *testing.T, path, key, value string) []finalFileRow[int64] {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	must(t, err)
	if got, _ := file.Lookup(key); got != value {
		t.Errorf("%s is %q in the file, want %q", key, got, value)
	}
	if score, _ := file.Schema().Lookup("score"); score.Node.Type().Kind() != parquet.Int64 {
		t.Errorf("scores are of type %v", score.Node.Type())
	}
	rows, err := parquet.Read[finalFileRow[int64]](bytes.NewReader(data), int64(len(data)))
	must(t, err)
	return rows
}

func TestNoFinalWhileTheLedgerLags(t *testing.T) {
	both(t, func(t *testing.T, f *fixture) {
		f.change(t, "a", 1, true)
		for range 2 {
			if _, err := f.Final(t.Context(), f.board); !errors.Is(err, ErrBehind) {
				t.Errorf("final: %v", err)
			}
			f.change(t, "a", 2, false) // of which the ledger knows; the first change is missing for ever
			f.change(t, "b", 2, true)
		}
	})
}

// Two servers have applied the same commands in runs of their own, and the one that Redis is now has the lower one.
func TestFinalOfALowerRun(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, f *fixture) {
		f.change(t, "a", 1, false)
		value := testkit.Meta(1, 1, []redis.Z{{Member: "a", Score: 1}})
		must(t, f.redis.Set(t.Context(), f.names.MetaKey(f.board), value, 0).Err())
		if _, err := f.Final(t.Context(), f.board); err != nil {
			t.Error(err)
		}
	})
}

// Redis and the ledger are at the same change, but not of one mind.
func TestNoFinalIfRedisAndLedgerDiffer(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, f *fixture) {
		f.change(t, "gone", 1, true)
		f.change(t, "here", 2, false)
		must(t, f.redis.ZAdd(t.Context(), f.names.BoardKey(f.board), redis.Z{Member: "here", Score: 3}).Err()) // past the writer
		_, err := f.Final(t.Context(), f.board)
		d, ok := errors.AsType[*Differs](err)
		if !ok {
			t.Fatalf("final: %v", err)
		}
		one, two, three := 1.0, 2.0, 3.0
		want := []ledger.Difference{{Member: "gone", Redis: &one}, {Member: "here", Redis: &three, Ledger: &two}}
		if diff := cmp.Diff(want, d.List); diff != "" || d.Members != 2 {
			t.Errorf("%d differences (-want +got):\n%s", d.Members, diff)
		}
		at, err := url.Parse(d.File)
		must(t, err)
		data, err := os.ReadFile(at.Path)
		must(t, err)
		var listed Differs
		must(t, json.Unmarshal(data, &listed))
		if !cmp.Equal(listed.List, want) {
			t.Errorf("the file has %s", data)
		}
		if made, err := f.opts.Store.FinalOf(t.Context(), f.board, 0, 1); made != nil || err != nil {
			t.Errorf("a final is there: %v %v", made, err)
		}
	})
}

// Both agree on scores that do not add up to the checksum.
func TestNoFinalWithoutProof(t *testing.T) {
	both(t, func(t *testing.T, f *fixture) {
		f.change(t, "a", 1, false)
		must(t, f.redis.ZAdd(t.Context(), f.names.BoardKey(f.board), redis.Z{Member: "a", Score: 3}).Err())
		_, err := testkit.SQL(t, f.database).ExecContext(t.Context(), "UPDATE rank_score SET raw = 3")
		must(t, err)
		_, err = f.Final(t.Context(), f.board)
		if d, ok := errors.AsType[*Differs](err); !ok || d.Members != 0 || !strings.Contains(err.Error(), "changed past the writer") {
			t.Errorf("final: %v", err)
		}
	})
}

// A file of several groups is read by another program's reader.
func TestFileOfManyRows(t *testing.T) {
	t.Parallel()
	rows := make([]rankcache.Entry, 2*groupRows+1)
	for i := range rows {
		rows[i] = rankcache.Entry{Member: strconv.Itoa(i), Score: float64(-i) / 3}
	}
	for _, n := range []int{len(rows), 0} {
		data, err := encode(&wire.Final{Board: "b"}, false, rows[:n])
		must(t, err)
		got, err := parquet.Read[finalFileRow[float64]](bytes.NewReader(data), int64(len(data)))
		must(t, err)
		if len(got) != n {
			t.Fatalf("%d rows, want %d", len(got), n)
		}
		for i, row := range got {
			if want := (finalFileRow[float64]{int64(i + 1), rows[i].Member, rows[i].Score, rows[i].Score}); row != want {
				t.Fatalf("row %d: %v, want %v", i, row, want)
			}
		}
	}
}

// Scores that Redis had before, and that no int64 can hold, are written as doubles.
func TestFileOfScoresThatNoIntegerHolds(t *testing.T) {
	f := &wire.Final{Board: "b", Form: rankcache.ScoreInteger}
	data, err := encode(f, false, []rankcache.Entry{{Member: "a", Score: 1e300}, {Member: "b", Score: 1.5}})
	must(t, err)
	got, err := parquet.Read[finalFileRow[float64]](bytes.NewReader(data), int64(len(data)))
	if want := []finalFileRow[float64]{{1, "a", 1e300, 1e300}, {2, "b", 1, 1.5}}; err != nil || !cmp.Equal(got, want) {
		t.Errorf("%v, %v, want %v", err, got, want)
	}
}

// Where the lowest score is the best the file has it as it is meant, and the negative beside it.
func TestFileOfLowestScores(t *testing.T) {
	f := &wire.Final{Board: "b", Form: rankcache.ScoreInteger | rankcache.ScoreLowest}
	data, err := encode(f, false, []rankcache.Entry{{Member: "a", Score: -72499.5}, {Member: "b", Score: -72500}})
	must(t, err)
	got, err := parquet.Read[finalFileRow[int64]](bytes.NewReader(data), int64(len(data)))
	if want := []finalFileRow[int64]{{1, "a", 72500, -72499.5}, {2, "b", 72500, -72500}}; err != nil || !cmp.Equal(got, want) {
		t.Errorf("%v, %v, want %v", err, got, want)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A hidden member is in no row, file or record of the final, and its points stay in the ledger.
func TestFinalOfHiddenMembers(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, f *fixture) {
		f.change(t, "a", 5, false)
		f.change(t, "b", 9, false)
		u := testkit.ChangeBoard(t, f.redis, f.names, f.board, wire.OpDelete, "b", 0) // as a hide does for the sorted set
		u.Op, u.Score, u.OrderID, u.Hiding = wire.OpHide, 9, wire.HideOrder(7, "b"), wire.Hiding{Serial: 7, Hidden: true}
		b := ledger.NewBatch("topic")
		b.Add(&wire.LedgerUpdate{Update: u, Class: "paid", Dims: map[string]string{"zone": "7"}, Tag: "20261122"}, 0, f.next, f.next)
		_, err := f.opts.Store.Apply(t.Context(), b)
		must(t, err)
		record, err := f.Final(t.Context(), f.board)
		must(t, err)
		if !strings.Contains(string(record), `"members":1,"top":[{"rank":1,"member":"a","score":5}]`) {
			t.Errorf("record %s", record)
		}
		places, _, err := f.opts.Store.Places(t.Context(), "b", 0, "", 10)
		must(t, err)
		if len(places) > 0 {
			t.Errorf("history of the hidden member: %+v", places)
		}
		var veil string
		must(t, testkit.SQL(t, f.database).QueryRowContext(t.Context(), "SELECT veil FROM rank_score WHERE member = 'b' AND score IS NULL AND raw IS NULL").Scan(&veil))
		if veil != "7 9" {
			t.Errorf("rank_score has %q", veil)
		}
	})
}

// A database from an older dump lacks finals that were published: none is made until it has them.
func TestNoFinalBeforeThoseThatWerePublished(t *testing.T) {
	f := newFixture(t, testkit.SQLKinds[0], openFolder(t))
	f.change(t, "a", 5, false)
	behind := true
	f.opts.Published = func(context.Context) error {
		if behind {
			return ledger.ErrBehind
		}
		return nil
	}
	if _, err := f.Final(t.Context(), f.board); !errors.Is(err, ErrBehind) {
		t.Errorf("made before: %v", err)
	}
	behind = false
	_, err := f.Final(t.Context(), f.board)
	must(t, err)
}
