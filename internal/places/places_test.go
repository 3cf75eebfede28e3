package places

import (
	"database/sql"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache"
	"rankcache/internal/kafka"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/ledger"
	"rankcache/wire"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// TestNamesAreInTheList: each key and topic that rankcache has a name for is of a place, by its own name.
func TestNamesAreInTheList(t *testing.T) {
	n := wire.DefaultNames()
	var patterns []string
	for _, k := range redisKeys[:len(redisKeys)-1] { // the last takes whatever has no place
		patterns = append(patterns, k.names(n)...)
	}
	for _, topic := range topics(n) {
		patterns = append(patterns, strings.TrimSuffix(topic, "*"))
	}
	v := reflect.ValueOf(n)
	for i := range v.NumField() {
		field, value := v.Type().Field(i).Name, v.Field(i).String()
		isPlace := func(p string) bool { return p == value || field == "States" && strings.HasPrefix(p, value) }
		if field != "Board" && field != "Companion" && !slices.ContainsFunc(patterns, isPlace) {
			t.Errorf("%s, %s, is of no place", field, value)
		}
	}
	kind := kindOf(n)
	for _, id := range []string{"1_2_3", "lb:{eu}:weekly"} {
		b := rankcache.BoardID(id)
		seen := map[string]bool{}
		keys := []string{n.LadderKey(b), n.OrdersKey(b, 1, 2)}
		for _, c := range wire.Companions() {
			keys = append(keys, n.CompanionKey(b, c))
		}
		for _, key := range keys {
			place, _ := kind(key)
			if place == "" || place == boardSets || strings.Contains(place, "other") || seen[place] {
				t.Errorf("%s is of %q", key, place)
			}
			seen[place] = true
		}
		if got, board := kind(id); got != boardSets || board != b {
			t.Errorf("%s is of %q", b, got)
		}
	}
}

// without are the columns of the ledger that can't have an id.
var without = strings.Fields("run seq op delta score raw sum members at id lost_at redressed_seq state reason now_score posted_at class tag base_run begin_seq first_seq incomplete place end_at start_at integers made_at kept after_run end_seq eras part record veil")

// TestColumnsAreInTheList: each column of each table that the ledger makes has an id by the list, or can have none.
func TestColumnsAreInTheList(t *testing.T) {
	db, _ := newLedger(t, testkit.SQLKinds[0])
	rows, err := db.Query("SELECT table_name, column_name FROM information_schema.columns WHERE table_name LIKE 'rank%' AND table_schema = current_schema()")
	must(t, err)
	defer rows.Close()
	n := 0
	for ; rows.Next(); n++ {
		var name, column string
		must(t, rows.Scan(&name, &column))
		i := slices.IndexFunc(tables, func(t table) bool { return t.name == name })
		listed := i >= 0 && slices.Contains(slices.Concat(tables[i].is, tables[i].texts, tables[i].bytes), column)
		if !listed && !slices.Contains(without, column) && name != "rank_offset" && name != "rank_schema" {
			t.Errorf("%s.%s is in no place", name, column)
		}
	}
	if must(t, rows.Err()); n < 60 {
		t.Errorf("only %d columns", n)
	}
}

// writesFiles are the source files that make files, and the place of those; "" where no member is in them.
var writesFiles = map[string]string{
	"internal/doctor/files.go":    "",
	"internal/serve/files.go":     "",
	"internal/operate/debug.go":   "files: bundles of rankcache debug",
	"internal/objects/objects.go": "files: finals and their differences (Parquet, CSV)",
	"ledger/final/final.go":       "files: finals and their differences (Parquet, CSV)",
	"ledger/final/compare.go":     "files: finals and their differences (Parquet, CSV)",
	"replay/files/store.go":       "files: boards, snapshots and hot pages",
	"replay/files/shared.go":      "files: boards, snapshots and hot pages",
}

// TestFilesAreInTheList: whatever makes a file is known, and what it makes is of a place.
func TestFilesAreInTheList(t *testing.T) {
	makes := regexp.MustCompile(`os\.(Create|CreateTemp|WriteFile|OpenFile)\(|[fF]iles\.Put\(|objects\.Put\(`)
	found := map[string]bool{}
	must(t, filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(filepath.ToSlash(path), "../../")
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{"internal/lab", "internal/testkit", "deploy", "docs", "examples", "scripts", ".git", ".cache"}, name):
			return filepath.SkipDir
		case strings.HasSuffix(name, "_test.go") || !strings.HasSuffix(name, ".go"):
			return nil
		}
		source, err := os.ReadFile(path)
		if makes.Match(source) {
			place, known := writesFiles[name]
			if found[name] = true; !known || place != "" && !slices.ContainsFunc(elsewhere, func(f Found) bool { return f.Place == place }) {
				t.Errorf("%s makes files that are of no place", name)
			}
		}
		return err
	}))
	if len(found) != len(writesFiles) {
		t.Errorf("found %v", found)
	}
}

// TestFind finds what is put into each place, in both databases, and nothing of a member that is nowhere.
func TestFind(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: testkit.StartRedis(t, servers.RedisOptions{}).Addr()})
	t.Cleanup(func() { client.Close() })
	n, ctx := wire.DefaultNames(), t.Context()
	name := testkit.Name(t)
	n.Commands, n.Refused, n.Ledger, n.Finals, n.UpdatePrefix, n.ClassPrefix = name+"-c", name+"-r", name+"-l", name+"-f", name+"-u_", name+"-k_"
	must(t, client.ZAdd(ctx, "b1", redis.Z{Member: "u-77"}, redis.Z{Member: "u-1"}).Err())
	must(t, client.ZAdd(ctx, "{eu}:b2", redis.Z{Member: "u-77"}).Err())
	must(t, client.Set(ctx, "not-a-board", "u-77", 0).Err())
	for _, c := range append(wire.Companions(), "ladder") {
		must(t, client.HSet(ctx, n.CompanionKey("b1", c), "u-77", "1", "u-1", "2").Err())
		must(t, client.Expire(ctx, n.CompanionKey("b1", c), time.Hour).Err())
	}
	for i := range 500 { // more than Redis answers at once
		must(t, client.HSet(ctx, n.OrdersKey("b1", 0, 0), fmt.Sprint("o", i), "x").Err())
	}
	must(t, client.HSet(ctx, n.OrdersKey("b1", 0, 0), "o9999", "\x00\x01Xu-77{}").Err())
	must(t, client.HSet(ctx, n.HiddenListKey("day"), "u-77", "1").Err())
	must(t, client.SAdd(ctx, n.RoomKey("u-77"), "b1").Err())
	must(t, client.HSet(ctx, n.Rooms, "u-77", "{}").Err())
	must(t, client.ZAdd(ctx, n.RoomEnds, redis.Z{Member: "b1 u-77"}).Err())
	broker := testkit.Kfake(t).Addr()
	testkit.CreateTopic(t, broker, n.Commands, 2, nil)
	testkit.CreateTopic(t, broker, n.UpdatePrefix+"b1", 1, nil)
	for i := range 30 {
		testkit.Produce(t, broker, &kgo.Record{Topic: n.Commands, Value: fmt.Appendf(nil, `{"member":"u-%d"}`, 60+i)}, &kgo.Record{Topic: n.UpdatePrefix + "b1", Value: []byte("u-77")})
	}
	for _, sqlKind := range testkit.SQLKinds {
		db, postgres := newLedger(t, sqlKind)
		_, err := db.Exec("INSERT INTO rank_score (board, member, run, seq) VALUES ('b1', 'u-77', 1, 1), ('b1', 'u-1', 1, 2)")
		must(t, err)
		_, err = db.Exec("INSERT INTO rank_log (board, run, seq, member, op, members, at, by_groups) VALUES ('b1', 1, 1, 'u-77', 'incr', 1, 5000, NULL), ('b1', 1, 2, 'u-1', 'incr', 1, 4000, '{\"g\":\"u-77\"}')")
		must(t, err)
		_, err = db.Exec("INSERT INTO rank_bad (topic, part, record, reason, value) VALUES ('t', 0, 1, 'x', '{u-77')")
		must(t, err)
		f := &Finder{Redis: client, Names: n, DB: db, Postgres: postgres, Kafka: kafka.Settings{"bootstrap.servers": broker}, Newest: 10}
		found := find(t, f, "u-77")
		for place, want := range map[string]int64{boardSets: 2, "redis: guards of boards": 1, "redis: ladders of boards": 1, "redis: order ids of boards": 1, "redis: members hidden in classes": 1,
			"redis: boards of rooms": 1, "redis: rooms set at run time": 1, "redis: ends of boards": 1, "redis: hot boards": 0, "ledger: rank_score": 1, "ledger: rank_log": 2, "ledger: rank_bad": 1, "ledger: rank_final": 0,
			"kafka: " + n.UpdatePrefix + "*": 10} {
			if found[place].Count != want || found[place].Unseen != "" {
				t.Errorf("%s: %+v, want %d", place, found[place], want)
			}
		}
		if got := f.Find(ctx, "u-77").Boards; !slices.Equal(got, []rankcache.BoardID{"b1", "{eu}:b2"}) {
			t.Errorf("boards %v", got)
		}
		if stays := found[orderRecords].Stays; stays != "two order lives while the board changes, else for ever" {
			t.Error(stays)
		}
		if log := found["ledger: rank_log"]; log.Oldest == nil || log.Oldest.UnixMilli() != 4000 {
			t.Errorf("%+v", log)
		}
		if !strings.HasPrefix(found["redis: data of boards"].Stays, "until 2") || found[boardSets].Stays != "for ever" {
			t.Errorf("%+v %+v", found["redis: data of boards"], found[boardSets])
		}
		for place, f := range find(t, f, "u-9999") {
			if f.Count != 0 {
				t.Errorf("%s has one that is nowhere: %+v", place, f)
			}
		}
	}
	for place, f := range find(t, &Finder{Redis: client, Names: n}, "u-77") {
		if looked := strings.HasPrefix(place, "redis"); looked != (f.Unseen == "") {
			t.Errorf("%s: %+v", place, f)
		}
	}
}

// TestFindEscaped: an id that JSON writes in another way is found all the same, and so is one in a stream.
func TestFindEscaped(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: testkit.StartRedis(t, servers.RedisOptions{}).Addr()})
	t.Cleanup(func() { client.Close() })
	n, name, ctx := wire.DefaultNames(), testkit.Name(t), t.Context()
	n.Commands = name + "-c"
	const member, record = "a&b<7>", `{"member":"a\u0026b\u003c7\u003e"}`
	must(t, client.HSet(ctx, n.Rooms, "1", record).Err())
	for range scanPage + 1 { // more than are read at once
		must(t, client.XAdd(ctx, &redis.XAddArgs{Stream: rankcache.OwnPrefix + "log:x", Values: []string{"u", record}}).Err())
	}
	broker := testkit.Kfake(t).Addr()
	testkit.CreateTopic(t, broker, n.Commands, 1, nil)
	testkit.Produce(t, broker, &kgo.Record{Topic: n.Commands, Value: []byte(record)})
	for _, sqlKind := range testkit.SQLKinds {
		db, postgres := newLedger(t, sqlKind)
		_, err := db.Exec("INSERT INTO rank_bad (topic, part, record, reason, value) VALUES ('t', 0, 1, 'x', '" + strings.ReplaceAll(record, `\`, `\\`) + "')")
		must(t, err)
		f := &Finder{Redis: client, Names: n, DB: db, Postgres: postgres, Kafka: kafka.Settings{"bootstrap.servers": broker}, Newest: 10}
		found := find(t, f, member)
		for place, want := range map[string]int64{"redis: rooms set at run time": 1, "redis: other keys of rankcache": scanPage + 1, "kafka: " + n.Commands: 1, "ledger: rank_bad": 1} {
			if found[place].Count != want {
				t.Errorf("%s: %+v, want %d", place, found[place], want)
			}
		}
	}
}

func find(t *testing.T, f *Finder, member string) map[string]Found {
	t.Helper()
	found := make(map[string]Found)
	for _, one := range f.Find(t.Context(), member).Places {
		found[one.Place] = one
	}
	return found
}

// newLedger returns an empty ledger.
func newLedger(t *testing.T, kind string) (db *sql.DB, postgres bool) {
	t.Helper()
	url := testkit.Database(t, kind)
	store, err := ledger.Open(url, nil)
	must(t, err)
	defer store.Close()
	must(t, store.Migrate(t.Context()))
	db, err = ledger.OpenSQL(url, nil)
	must(t, err)
	t.Cleanup(func() { db.Close() })
	return db, strings.HasPrefix(url, "postgres")
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
