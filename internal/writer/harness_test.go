package writer

import (
	"context"
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
)

func TestMain(m *testing.M) { testkit.Main(m) }

// patience is how long a shared machine may take.
const patience = time.Minute

// tiers gives every board one mode, except those named.
type tiers struct {
	all    rankcache.Mode
	boards map[rankcache.BoardID]rankcache.Mode
	rooms  map[string]rankcache.Mode
}

func (t tiers) Mode(b rankcache.BoardID, room string) rankcache.Mode {
	return max(t.all, t.boards[b], t.rooms[room])
}

// house is a writer with its servers and a command topic of its own.
type house struct {
	*Writer
	client *redis.Client
	kafka  string
	board  rankcache.BoardID
}

func redisClient(t testing.TB, addr string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, DisableIdentity: true, ContextTimeoutEnabled: true,
		DialerRetries: 1})
	t.Cleanup(func() { client.Close() })
	return client
}

// newHouse makes a writer on the shared servers whose boards are all super-hot,
// unless change says otherwise. Its names begin with the test's.
func newHouse(t testing.TB, kafkaAddr string, change func(*Options)) *house {
	t.Helper()
	h := &house{client: redisClient(t, testkit.Redis(t)), kafka: kafkaAddr, board: rankcache.BoardID(testkit.Name(t))}
	opts := Options{Redis: h.client, Names: rankcache.DefaultNames(), Tiers: tiers{all: rankcache.ModeSuperHot},
		Kafka: map[string]string{"bootstrap.servers": kafkaAddr}, Group: testkit.Name(t),
		Topics: Topics{CommandPartitions: 2}, Log: slog.New(slog.NewTextHandler(testLog{t}, nil))}
	opts.Names.Commands = "c_" + lastPart(string(h.board))
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

// testLog shows the writer's log with the test that fails.
type testLog struct{ t testing.TB }

func (l testLog) Write(line []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(line)))
	return len(line), nil
}

// run starts the writer; stop ends it and waits, as the test's end does.
func (h *house) run(t testing.TB) (stop func()) {
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
	testkit.Eventually(t, patience, func() error {
		if h.producer.Load() == nil {
			return fmt.Errorf("no producer yet")
		}
		return nil
	})
	return stop
}

// command is the JSON of an incr by one.
func (h *house) command(order, member string) string {
	return fmt.Sprintf(`{"order":%q,"board":%q,"member":%q,"op":"incr","delta":1,"at":5}`, order, h.board, member)
}

// give makes the command topic if need be and writes commands to it.
func (h *house) give(t testing.TB, commands ...string) {
	t.Helper()
	h.makeCommandTopicFor(t)
	records := make([]*kgo.Record, len(commands))
	for i, c := range commands {
		records[i] = &kgo.Record{Topic: h.opts.Names.Commands, Key: []byte(h.board), Value: []byte(c)}
	}
	testkit.Produce(t, h.kafka, records...)
}

func (h *house) makeCommandTopicFor(t testing.TB) {
	t.Helper()
	p, err := newProducer(settings(h.opts.Kafka).producer(), h.topics, h.metrics, h.log)
	must(t, err)
	defer p.close()
	must(t, h.makeCommandTopic(t.Context(), p))
}

// updates reads the first n records of the board's topic.
func (h *house) updates(t testing.TB, n int) []string {
	t.Helper()
	var values []string
	for _, r := range testkit.Records(t, h.kafka, h.opts.Names.Topic(h.board), n) {
		values = append(values, string(r.Value))
	}
	return values
}

// await waits until so many commands had the result.
func (h *house) await(t testing.TB, result string, n int) {
	t.Helper()
	testkit.Eventually(t, patience, func() error {
		if got := h.count(result); got != n {
			return fmt.Errorf("%d commands %s, want %d", got, result, n)
		}
		return nil
	})
}

func (h *house) count(result string) int {
	return int(testutil.ToFloat64(h.metrics.commands.WithLabelValues(result)))
}

// do1 applies one command directly, without Kafka.
func (h *house) do1(t testing.TB, command string) Outcome {
	t.Helper()
	out, err := h.Writer.do(t.Context(), []byte(command))
	must(t, err)
	return out
}

// post sends one command over HTTP.
func (h *house) post(t testing.TB, body string) (status int, answer string) {
	t.Helper()
	rec := h.send(body, "Content-Type", "application/json")
	return rec.Code, strings.TrimSpace(rec.Body.String())
}

// send posts body with nothing but the header in pairs.
func (h *house) send(body string, header ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodPost, "/v1/scores", strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	h.Handler().ServeHTTP(rec, req)
	return rec
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
