package writer

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/rooms"
	"rankcache/wire"
	"rankcache/writer/internal/rewind"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// testTimeout is long enough for a busy machine.
const testTimeout = time.Minute

// tiers is a Tiers with one mode for all boards, except the listed ones.
type tiers struct {
	all    rooms.Mode
	boards map[rankcache.BoardID]rooms.Mode
	rooms  map[string]rooms.Mode
	file   *rooms.File // nil: empty
	now    time.Time   // zero: the machine's
}

func (t tiers) File() *rooms.File {
	if t.file == nil {
		return &rooms.File{}
	}
	return t.file
}

// Boards are the boards of classes as roomsync names them, and those with modes of their own.
func (t tiers) Boards(mode rooms.Mode) (named []rankcache.BoardID) {
	if t.now.IsZero() {
		t.now = time.Now()
	}
	for _, rule := range t.File().ClassBoards(t.now) {
		if rule.Mode == mode {
			named = append(named, rankcache.BoardID(rule.Match))
		}
	}
	for b, m := range t.boards {
		if m == mode {
			named = append(named, b)
		}
	}
	return named
}

func (t tiers) Mode(b rankcache.BoardID, room string) rooms.Mode {
	return max(t.all, t.boards[b], t.rooms[room])
}

// fixture is a writer with its servers and its own command topic.
type fixture struct {
	*Writer
	client *redis.Client
	kafka  string
	board  rankcache.BoardID
	at     int64 // of its commands
}

func redisClient(t testing.TB, addr string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, DisableIdentity: true, ContextTimeoutEnabled: true,
		DialerRetries: 1})
	t.Cleanup(func() { client.Close() })
	return client
}

// newFixture returns a writer on the shared servers whose boards are all super-hot,
// unless change changes its options. Its names start with the test's.
func newFixture(t testing.TB, kafkaAddr string, change func(*Options)) *fixture {
	t.Helper()
	h := &fixture{client: redisClient(t, testkit.Redis(t)), kafka: kafkaAddr, board: rankcache.BoardID(testkit.Name(t)), at: time.Now().UnixMilli()}
	opts := Options{Redis: h.client, Names: wire.DefaultNames(), Tiers: tiers{all: rooms.ModeSuperHot},
		Kafka: map[string]string{"bootstrap.servers": kafkaAddr}, Group: testkit.Name(t),
		Topics: Topics{CommandPartitions: 2}, Log: slog.New(slog.NewTextHandler(testLog{t}, nil))}
	opts.Names.Commands, opts.Names.Refused = "c_"+lastPart(string(h.board)), "r_"+lastPart(string(h.board))
	opts.Names.Readopt, opts.Names.Ends = "readopt:"+string(h.board), "ends:"+string(h.board)
	if change != nil {
		change(&opts)
	}
	if c, ok := opts.Redis.(*redis.Client); ok {
		h.client = c
	}
	w, err := New(opts)
	must(t, err)
	h.Writer = w
	return h
}

// lastPart keeps a name short enough for a topic with a prefix of 40 characters.
func lastPart(name string) string { return name[max(0, len(name)-20):] }

// testLog shows the writer's log in a failed test.
type testLog struct{ t testing.TB }

func (l testLog) Write(line []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(line)))
	return len(line), nil
}

// run starts the writer; stop stops it and waits, as does the end of the test.
func (h *fixture) run(t testing.TB) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	var stopped atomic.Bool
	stop = func() {
		cancel()
		if stopped.CompareAndSwap(false, true) {
			if err := <-ended; err != nil {
				t.Error("run:", err)
			}
		}
	}
	t.Cleanup(stop)
	testkit.Eventually(t, testTimeout, func() error {
		if h.producer.Load() == nil {
			return fmt.Errorf("no producer yet")
		}
		return nil
	})
	return stop
}

// judge has it known, of a writer that does not run, that Redis has lost nothing.
func judge(t testing.TB, h *Writer) *Writer {
	t.Helper()
	asked, _ := h.rewinds.readEras(t.Context(), rewind.ReadEras{})
	eras, ok := asked.(rewind.ErasRead)
	read, ok2 := h.rewinds.readPositions(t.Context(), rewind.ReadPositions{Eras: eras.Eras}).(rewind.PositionsRead)
	if !ok || !ok2 {
		t.Fatal("Redis does not tell its history")
	}
	h.rewinds.round.Store(&round{number: 1, reading: true, eras: eras.Eras, list: listOf(eras.Eras), hashes: read.Of})
	return h
}

// command is the JSON of an incr by one.
func (h *fixture) command(order, member string) string {
	return fmt.Sprintf(`{"order":%q,"board":%q,"member":%q,"op":"incr","delta":1,"at":%d}`, order, h.board, member, h.at)
}

// produce creates the command topic if needed and writes commands to it.
func (h *fixture) produce(t testing.TB, commands ...string) {
	t.Helper()
	h.makeCommandTopicFor(t)
	records := make([]*kgo.Record, len(commands))
	for i, c := range commands {
		records[i] = &kgo.Record{Topic: h.opts.Names.Commands, Key: []byte(h.board), Value: []byte(c)}
	}
	testkit.Produce(t, h.kafka, records...)
}

func (h *fixture) makeCommandTopicFor(t testing.TB) {
	t.Helper()
	p, err := newProducer(h.opts.Kafka, h.topics, h.metrics, h.log)
	must(t, err)
	defer p.close()
	must(t, h.makeCommandTopic(t.Context(), p))
}

// updates reads the first n records of the board's topic.
func (h *fixture) updates(t testing.TB, n int) []string {
	t.Helper()
	var values []string
	for _, r := range testkit.Records(t, h.kafka, h.opts.Names.Topic(h.board), n) {
		values = append(values, string(r.Value))
	}
	return values
}

// await waits until n commands had the result.
func (h *fixture) await(t testing.TB, result string, n int) {
	t.Helper()
	testkit.Eventually(t, testTimeout, func() error {
		if got := h.count(result); got != n {
			return fmt.Errorf("%d commands %s, want %d", got, result, n)
		}
		return nil
	})
}

func (h *fixture) count(result string) int {
	return int(testutil.ToFloat64(h.metrics.commands.WithLabelValues(result)))
}

// do takes one command all the way, as a post.
func (h *fixture) do(ctx context.Context, command []byte) (Outcome, error) {
	done := h.posts.doAll(ctx, []json.RawMessage{command})[0]
	return done.Outcome, done.err
}

// do1 applies one command directly, without Kafka.
func (h *fixture) do1(t testing.TB, command string) Outcome {
	t.Helper()
	out, err := h.do(t.Context(), []byte(command))
	must(t, err)
	return out
}

// post sends one command over HTTP.
func (h *fixture) post(t testing.TB, body string) (status int, answer string) {
	t.Helper()
	rec := h.send(body, "Content-Type", "application/json")
	return rec.Code, strings.TrimSpace(rec.Body.String())
}

// send posts body with no header but those of the pairs.
func (h *fixture) send(body string, header ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodPost, "/v1/scores", strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	h.Handler().ServeHTTP(rec, req)
	return rec
}

// meta returns the board's meta.
func (h *fixture) meta(t testing.TB) wire.Meta {
	t.Helper()
	m, err := h.applier.meta(t.Context(), h.board)
	must(t, err)
	return m
}

// checkSum compares the board's meta with its members and their sum.
func (h *fixture) checkSum(t testing.TB) {
	t.Helper()
	var sum uint64
	scores := h.scores(t)
	for member, score := range scores {
		sum = (sum + wire.Hash(member, score)) & wire.SumMask
	}
	m := h.meta(t)
	equal(t, "members, sum", []any{m.Members, m.HasSum, m.Sum}, []any{uint64(len(scores)), true, sum})
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
