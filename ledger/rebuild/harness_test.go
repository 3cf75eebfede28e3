package rebuild

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/ledger"
	"rankcache/origin"
	"rankcache/rooms"
	"rankcache/wire"
	"rankcache/writer"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// testTimeout is long enough for a busy machine.
const testTimeout = time.Minute

// fixture is a writer and a ledger, with one board.
type fixture struct {
	*Rebuilder
	redis    redis.UniversalClient
	dial     func(testing.TB) redis.UniversalClient
	handler  http.Handler // of the writer
	name     string
	board    rankcache.BoardID
	class    string // of the board
	kafka    string // address
	commands int    // partitions of the command topic, 0 for one
	database string
	file     *rooms.File
	at       int64 // of all commands
	orders   []order
}

// order is a command and its answer.
type order struct{ command, answer string }

// tiers has no board super-hot.
type tiers struct{ file *rooms.File }

func (t tiers) File() *rooms.File                                { return t.file }
func (t tiers) Mode(rankcache.BoardID, string) (mode rooms.Mode) { return mode }
func (t tiers) Boards(rooms.Mode) []rankcache.BoardID            { return nil }

// testLog shows the log of a failed test.
type testLog struct{ t testing.TB }

func (l testLog) Write(line []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(line)))
	return len(line), nil
}

// classes are those of the fixture's boards.
const classes = `classes:
- {name: plain, board: "NAME-plain:{zone}", period: none, ledger: true}
- {name: ties, board: "NAME-ties:{zone}", period: none, ledger: true, ties: first, score: integer}
- {name: trim, board: "NAME-trim:{zone}", period: none, ledger: true, trim: 8, ops: [incr]}
- {name: cars, board: "NAME-cars:{zone}", period: none, ledger: true, data: true, ops: [incr, set, best, delete]}
- {name: best, board: "NAME-best:{zone}", period: none, ledger: true, data: true, trim: 8, ops: [best]}
- {name: groups, board: "NAME-groups:{zone}", period: none, ledger: true, ops: [incr], feeds: [{class: guilds, by: guild}]}
- {name: guilds, board: "NAME-guilds:{zone}", period: none, ledger: true, ops: [incr]}
- {name: split, board: "NAME-split:{zone}", period: none, ledger: true, shards: 2, ops: [incr]}
- {name: hides, board: "NAME-hides:{zone}", period: none, ledger: true, ops: [incr, set, delete]}
- {name: hides-ties, board: "NAME-hides-ties:{zone}", period: none, ledger: true, ops: [incr, set, delete], ties: last, score: integer, order: asc}
- {name: hides-day, board: "NAME-hides-day:{zone}:{period}", period: year, ledger: true, ops: [incr, set, delete], keep: 96h}
- {name: free-ledger, board: "NAME-free-ledger:{zone}", period: none, ledger: true, ops: [incr]}
- {name: free, board: "NAME-free:{zone}", period: none, durable: true, ops: [incr]}
`

// single returns a client of one Redis.
func single(t testing.TB) redis.UniversalClient {
	return redis.NewClient(&redis.Options{Addr: testkit.Redis(t), Protocol: 2, DisableIdentity: true})
}

func clustered(t testing.TB) redis.UniversalClient {
	return redis.NewClusterClient(&redis.ClusterOptions{Addrs: testkit.RedisCluster(t), Protocol: 2, DisableIdentity: true})
}

// newIdle returns a fixture without a writer and a ledger that run.
func newIdle(t testing.TB, kind string, dial func(testing.TB) redis.UniversalClient) *fixture {
	t.Helper()
	name := strings.NewReplacer("_", "-", ":", "-").Replace(testkit.Name(t))
	f := &fixture{redis: dial(t), dial: dial, name: name, database: testkit.Database(t, kind), at: time.Now().UnixMilli()}
	t.Cleanup(func() { f.redis.Close() })
	var err error
	f.file, err = rooms.Parse([]byte(strings.ReplaceAll(classes, "NAME", name)))
	must(t, err)
	store, err := ledger.Open(f.database, nil)
	must(t, err)
	t.Cleanup(func() { store.Close() })
	must(t, store.Migrate(t.Context()))
	names := wire.DefaultNames()
	names.Commands, names.Refused, names.Ledger, names.Rooms, names.Finals = "c-"+name, "r-"+name, "l-"+name, "rooms-"+name, "f-"+name
	f.Rebuilder = New(Options{Redis: f.redis, Names: names, Origin: origin.New(f.redis, names, origin.WithData(f.hasData)), Store: store, Rules: f.rules, Log: slog.New(slog.NewTextHandler(testLog{t}, nil))})
	return f
}

// newFixture starts a writer and a ledger.
func newFixture(t testing.TB, kind string, dial func(testing.TB) redis.UniversalClient) *fixture {
	t.Helper()
	f := newIdle(t, kind, dial)
	run(t, f.start(t, nil).Run)
	return f
}

// start starts a writer, and returns a ledger that can run.
func (f *fixture) start(t testing.TB, beside func(context.Context, ledger.Now)) *ledger.Ledger {
	t.Helper()
	f.kafka = testkit.Kfake(t).Addr()
	o := f.opts
	f.handler = f.startWriter(t, f.redis).Handler()
	l, err := ledger.New(ledger.Options{Store: o.Store, Kafka: f.settings(), Topic: o.Names.Ledger, Finals: o.Names.Finals, Group: f.name, Beside: beside, Log: o.Log})
	must(t, err)
	f.of("plain", "warm").give(t, "warm", "m", `"op":"incr","delta":1`) // makes the ledger's topic
	return l
}

func (f *fixture) settings() map[string]string {
	return map[string]string{"bootstrap.servers": f.kafka}
}

// startWriter starts a writer of the fixture's group.
func (f *fixture) startWriter(t testing.TB, client redis.UniversalClient) *writer.Writer {
	t.Helper()
	w, err := writer.New(writer.Options{Redis: client, Names: f.opts.Names, Tiers: tiers{f.file}, Kafka: f.settings(), Group: f.name, BoardLife: 24 * time.Hour,
		Topics: writer.Topics{CommandPartitions: max(f.commands, 1), LedgerPartitions: 1}, Log: f.opts.Log})
	must(t, err)
	run(t, w.Run)
	return w
}

// of returns the fixture for a board of a class.
func (f *fixture) of(class, zone string) *fixture {
	own := *f
	own.class, own.board = class, rankcache.BoardID(f.name+"-"+class+":"+zone)
	if kind := f.file.Class(class); kind.Calendar().Periodic() {
		b, err := kind.At(map[string]string{"zone": zone}, time.UnixMilli(f.at))
		if own.board = b.ID; err != nil {
			panic(err)
		}
	}
	return &own
}

func (f *fixture) hasData(b rankcache.BoardID) bool {
	_, kind, _ := f.file.Board(b)
	return kind != nil && kind.Data
}

func (f *fixture) rules(b rankcache.BoardID) Rules {
	_, kind, _ := f.file.Board(b)
	r := RulesOf(f.file, b, Defaults{BoardLife: time.Hour, Buckets: 4})
	r.OrderLife = kind.Orders
	return r
}

// run runs a part until the test ends.
func run(t testing.TB, part func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() {
		if err := part(ctx); err != nil {
			t.Error("run:", err)
		}
	})
	t.Cleanup(func() { cancel(); ended.Wait() })
}

// post posts a command and returns status and answer.
func (f *fixture) post(command string) (int, string) {
	return f.postIn(context.Background(), command)
}

func (f *fixture) postIn(ctx context.Context, command string) (int, string) {
	rec := httptest.NewRecorder()
	req := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/scores", strings.NewReader(command))
	req.Header.Set("Content-Type", "application/json")
	f.handler.ServeHTTP(rec, req)
	return rec.Code, strings.TrimSpace(rec.Body.String())
}

// command is the JSON of a command.
func (f *fixture) command(id, member, what string) string {
	return fmt.Sprintf(`{"order":%q,"board":%q,"member":%q,%s,"at":%d}`, id, f.board, member, what, f.at)
}

// give has the writer apply a command, and remembers it.
func (f *fixture) give(t testing.TB, id, member, what string) {
	t.Helper()
	command, last := f.command(id, member, what), ""
	testkit.Eventually(t, testTimeout, func() error { // the producer needs a moment at the start
		status, answer := f.post(command)
		if last = answer; status != http.StatusOK {
			return fmt.Errorf("%d %s", status, answer)
		}
		return nil
	})
	f.orders = append(f.orders, order{command, last})
}

// fill makes a board with changes of all kinds.
func (f *fixture) fill(t testing.TB) {
	t.Helper()
	for i := range 40 {
		change := fmt.Sprintf(`"op":"incr","delta":%d`, i+1)
		if f.class == "best" {
			change = fmt.Sprintf(`"op":"best","score":%d,"data":"car %d"`, (i*7)%40, i)
		}
		f.give(t, fmt.Sprint("incr-", i), fmt.Sprint("m", i%12), change)
	}
	if f.class == "cars" {
		f.give(t, "car", "m1", `"op":"incr","delta":1,"data":"car"`)
		f.give(t, "kept", "m1", `"op":"incr","delta":1`)
		f.give(t, "worse", "m1", `"op":"best","score":1,"data":"ü"`)
		f.give(t, "better", "m2", `"op":"best","score":1000,"data":"ü"`)
		f.give(t, "removed", "m2", `"op":"best","score":1001,"data":""`)
		f.give(t, "none", "m3", `"op":"incr","delta":1,"data":""`)
		f.give(t, "on m5", "m5", `"op":"set","score":3,"data":"gone with it"`)
		f.give(t, "on m6", "m6", `"op":"set","score":0,"data":"ü\""`)
	}
	if f.class == "groups" {
		f.give(t, "grouped", "m1", `"by":{"guild":"g1"},"op":"incr","delta":2`)
		f.give(t, "other", "m1", `"by":{"guild":"g\"2"},"op":"incr","delta":2`)
	} else if f.class != "trim" && f.class != "best" {
		f.give(t, "set", "m3", `"op":"set","score":7`)
		f.give(t, "delete", "m4", `"op":"delete"`)
		f.give(t, "later", "m4", `"op":"incr","delta":2`)
		f.give(t, "gone", "m5", `"op":"delete"`)
	}
	if strings.HasPrefix(f.class, "hides") {
		f.hide(t)
	}
	f.settle(t)
}

// move hides or restores a member.
func (f *fixture) move(t testing.TB, op wire.Op, member string, serial uint64) {
	t.Helper()
	f.give(t, wire.HideOrder(serial, member), member, fmt.Sprintf(`"op":%q,"reason":"bot"`, op))
}

// hide hides members in all ways: with points, that they go on to get, without, ahead, and restored.
func (f *fixture) hide(t testing.TB) {
	t.Helper()
	incr := func(id, member string) { f.give(t, "hidden "+id, member, `"op":"incr","delta":5`) }
	for i, m := range []string{"m0", "m1", "m2", "m3", "m4", "m5", "m6", "ahead", "bare"} {
		f.move(t, wire.OpHide, m, uint64(10+i))
	}
	for _, m := range []string{"m1", "m2", "m3", "ahead"} {
		incr(m, m)
	}
	f.move(t, wire.OpRestore, "m2", 30)
	incr("shown", "m2")
	f.move(t, wire.OpRestore, "m3", 5) // the hide stands
	f.give(t, "set unseen", "m4", `"op":"set","score":77`)
	f.give(t, "gone unseen", "m6", `"op":"delete"`)
	f.move(t, wire.OpHide, "m7", 40)
	f.move(t, wire.OpRestore, "m7", 41)
	f.give(t, "gone after it", "m7", `"op":"delete"`)
	f.move(t, wire.OpRestore, "nobody", 42)
}

// hidden returns who is or was hidden on the board.
func (f *fixture) hidden(t testing.TB) map[string]string {
	t.Helper()
	all, err := f.redis.HGetAll(t.Context(), f.opts.Names.CompanionKey(f.board, wire.Hidden)).Result()
	must(t, err)
	return veils(t, all)
}

// veils returns values of the hash of hidden members as Go writes them.
func veils(t testing.TB, all map[string]string) map[string]string {
	t.Helper()
	delete(all, "")
	for member, value := range all {
		v, raw, ok := wire.ParseHidden(value)
		if all[member] = v.Text(raw); !ok {
			t.Errorf("%s is hidden by %q", member, value)
		}
	}
	return all
}

// settle waits until the ledger has what Redis has.
func (f *fixture) settle(t testing.TB) {
	t.Helper()
	testkit.Eventually(t, testTimeout, func() error {
		settled, err := f.opts.Store.Settled(t.Context(), f.board, f.state(t))
		if err == nil && !settled {
			err = fmt.Errorf("the ledger is behind")
		}
		return err
	})
}

func (f *fixture) state(t testing.TB) rankcache.State {
	t.Helper()
	return testkit.BoardState(t, f.redis, f.opts.Names, f.board)
}

// lose has Redis lose the board, once the writer has read all commands from their topic, too: it
// would give the board another life otherwise.
func (f *fixture) lose(t testing.TB) {
	t.Helper()
	kafka := testkit.KafkaClient(t, f.kafka)
	testkit.Eventually(t, testTimeout, func() error {
		n, err := testkit.Lag(t.Context(), kafka, f.name, f.opts.Names.Commands)
		if err == nil && n > 0 {
			err = fmt.Errorf("the writer has to read %d commands", n)
		}
		return err
	})
	must(t, f.redis.Del(t.Context(), f.keys(t)...).Err())
}

// scores returns what is on the board, with members joined with their data.
func (f *fixture) scores(t testing.TB) map[string]float64 {
	t.Helper()
	rows, err := f.redis.ZRangeWithScores(t.Context(), f.opts.Names.BoardKey(f.board), 0, -1).Result()
	must(t, err)
	data, err := f.redis.HGetAll(t.Context(), f.opts.Names.CompanionKey(f.board, wire.Data)).Result()
	must(t, err)
	scores := make(map[string]float64)
	for _, r := range rows {
		scores[rankcache.JoinData(r.Member.(string), data[r.Member.(string)])] = r.Score
	}
	return scores
}

// keys returns the board's keys.
func (f *fixture) keys(t testing.TB) (keys []string) {
	t.Helper()
	find := func(ctx context.Context, node redis.Cmdable) []string {
		keys, err := node.Keys(ctx, "*"+string(f.board)+"*").Result()
		must(t, err)
		return keys
	}
	nodes, ok := f.redis.(*redis.ClusterClient)
	if !ok {
		return find(t.Context(), f.redis)
	}
	var mu sync.Mutex
	must(t, nodes.ForEachMaster(t.Context(), func(ctx context.Context, node *redis.Client) error {
		found := find(ctx, node)
		mu.Lock()
		defer mu.Unlock()
		keys = append(keys, found...)
		return nil
	}))
	return keys
}

// wantRebuilt checks scores, checksum, expiry and order ids of a board that was rebuilt.
func (f *fixture) wantRebuilt(t testing.TB, want map[string]float64, before rankcache.State) {
	t.Helper()
	equal(t, "scores", f.scores(t), want)
	sum := uint64(0)
	for member, score := range want {
		sum += wire.Hash(member, score)
	}
	state := f.state(t)
	if state.Run <= before.Run || state.Seq != before.Seq || !state.HasSum || state.Sum != sum&wire.SumMask {
		t.Errorf("state %v, was %v: want a later run, the same seq and the sum of the members", state, before)
	}
	for _, key := range f.keys(t) {
		if strings.Contains(key, "rebuild") || strings.Contains(key, "adopter") {
			t.Error("left over:", key)
		}
		if ttl := f.redis.PTTL(t.Context(), key).Val(); ttl <= 0 {
			t.Errorf("%s does not expire: %v", key, ttl)
		}
	}
	f.wantRepeats(t)
	equal(t, "state after repeats", f.state(t), state)
}

// wantRepeats checks that all order ids are known.
func (f *fixture) wantRepeats(t testing.TB) {
	t.Helper()
	for _, o := range f.orders {
		if status, answer := f.post(o.command); status != http.StatusOK || repeated(answer) != repeated(o.answer) || !strings.Contains(answer, `"duplicate":true`) {
			t.Errorf("a repeat of %s is answered %d %s, want %s", o.command, status, answer, o.answer)
		}
	}
}

// repeated returns an answer without what tells a repeat.
func repeated(answer string) string {
	var fields map[string]any
	if err := json.Unmarshal([]byte(answer), &fields); err != nil {
		return answer
	}
	delete(fields, "duplicate")
	return fmt.Sprint(fields)
}

// wantProved compares the ledger with itself and Redis.
func (f *fixture) wantProved(t testing.TB) {
	t.Helper()
	f.settle(t)
	testkit.Eventually(t, testTimeout, func() error { // the last change may come before others
		p, err := f.opts.Store.Prove(t.Context(), f.board)
		if state := f.state(t); err == nil && (!p.Proved || p.State.Seq != state.Seq || p.Sum != state.Sum) {
			err = fmt.Errorf("ledger at %v, Redis at %v, not proved: %s", p.State, state, p.Why())
		}
		return err
	})
	f.wantChecked(t)
	rows := testkit.SQL(t, f.database)
	scores := maps.Collect(allScores(t, rows, f.board))
	equal(t, "ledger's scores", scores, f.scores(t))
	all := make(map[string]string)
	must(t, f.opts.Store.Snapshot(t.Context(), f.board, func(v *ledger.Snapshot) error {
		return v.Hidings(func(member, veil string) error { all[member] = veil; return nil })
	}))
	equal(t, "ledger's hidden members", veils(t, all), f.hidden(t))
}

// wantChecked has the board checked with Redis, and change by change.
func (f *fixture) wantChecked(t testing.TB) {
	t.Helper()
	folded, err := f.opts.Store.Fold(t.Context(), f.board)
	must(t, err)
	differs, err := f.opts.Store.Compare(t.Context(), f.board, origin.New(f.redis, f.opts.Names), nil)
	if must(t, err); folded+differs != "" {
		t.Errorf("the ledger is checked: %s%s", folded, differs)
	}
}

func allScores(t testing.TB, db *sql.DB, board rankcache.BoardID) func(func(string, float64) bool) {
	return func(yield func(string, float64) bool) {
		rows, err := db.QueryContext(t.Context(), "SELECT member, raw, COALESCE(data, '') FROM rank_score WHERE raw IS NOT NULL AND board = '"+string(board)+"'")
		must(t, err)
		defer rows.Close()
		for rows.Next() {
			var member, data string
			var score float64
			must(t, rows.Scan(&member, &score, &data))
			yield(rankcache.JoinData(member, data), score)
		}
		must(t, rows.Err())
	}
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
