package writer

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache/internal/httpserve"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// withoutReader has the writer take posts, while none reads the command topic.
func (h *fixture) withoutReader(t testing.TB, within time.Duration) (stop func()) {
	t.Helper()
	h.makeCommandTopicFor(t)
	p, err := newProducer(h.opts.Kafka, h.topics, h.metrics, h.log)
	must(t, err)
	usual := h.posts.time
	h.producer.Store(p)
	h.posts.time = within
	ctx, cancel := context.WithCancel(t.Context())
	var looks sync.WaitGroup
	looks.Go(func() { (&looker{processor: h.processor, limit: logLimit()}).run(ctx) })
	stop = sync.OnceFunc(func() {
		cancel()
		looks.Wait()
		h.producer.Store(nil)
		p.close()
		h.posts.time = usual
	})
	t.Cleanup(stop)
	return stop
}

// poster returns a writer that takes posts beside one that reads the topic.
func (d *durableFixture) poster(t *testing.T) *fixture {
	t.Helper()
	opts := d.opts
	client := d.at.client(t)
	opts.Redis, opts.Registerer = client, nil
	w, err := New(opts)
	must(t, err)
	h := &fixture{w, client, d.kafka, d.board, d.fixture.at}
	h.withoutReader(t, testTimeout)
	return h
}

func (d *durableFixture) shiftGrace(t *testing.T, end time.Time, left time.Duration) {
	t.Helper()
	d.opts.Tiers.(graceOf).set(t, (time.Since(end) + left).Truncate(time.Millisecond))
}

func notYetAnswer(t *testing.T, what string, status int, answer string) {
	t.Helper()
	checkProblem(t, what, status, answer, httpserve.Problem{Status: 503, Code: "not_yet"})
}

// A first post is in the command topic and not applied, as its writer hangs or was killed and the reader is slow. Once its period is
// over its repeat is not told that it is late: it gets what became of the first one, when that is known. A new one is late.
func TestLateRepeatWaitsForItsFirst(t *testing.T) {
	t.Parallel()
	d, post, end := newGraceful(t, testkit.StartRedis(t, servers.RedisOptions{}))
	stop := d.withoutReader(t, time.Second)
	testkit.Produce(t, d.kafka, &kgo.Record{Topic: d.opts.Names.Commands, Key: []byte("m1"), Value: []byte(d.lastPost(1, end))})
	d.shiftGrace(t, end, 0)
	for n := range 3 {
		status, answer := post(1)
		notYetAnswer(t, fmt.Sprint("repeat ", n), status, answer)
	}
	equal(t, "refused", d.count("refused"), 0)
	stop()
	d.run(t)
	testkit.Eventually(t, testTimeout, func() error {
		status, answer := post(1)
		if status != 200 {
			return fmt.Errorf("%d %s", status, answer)
		}
		if !strings.Contains(answer, `"score":1,`) || !strings.Contains(answer, `"duplicate":true`) {
			t.Error(answer)
		}
		return nil
	})
	status, answer := post(2)
	checkProblem(t, "a new one", status, answer, httpserve.Problem{Status: 422, Code: "late"})
	equal(t, "scores", d.scores(t), map[string]float64{"m1": 1})
	equal(t, "refused", d.count("refused"), 1)
}

// lastPost is that of post order n in the last millisecond of a period.
func (d *durableFixture) lastPost(n int, end time.Time) string {
	return fmt.Sprintf(`{"order":"o%d","class":"gift","dims":{"zone":%q},"member":"m%d","op":"incr","delta":1,"at":%d}`, n, d.zone, n%3, end.UnixMilli()-1)
}

// A writer that hangs for a minute between taking a post and appending it: its repeat was late meanwhile, and so is the first one then.
func TestPostOfAWriterThatHung(t *testing.T) {
	t.Parallel()
	d, post, end := newGraceful(t, testkit.StartRedis(t, servers.RedisOptions{}))
	d.run(t)
	status, answer := post(0)
	equal(t, answer, status, 200)
	d.shiftGrace(t, end, 0)
	status, answer = post(1)
	checkProblem(t, "repeat", status, answer, httpserve.Problem{Status: 422, Code: "late"})
	hung := d.poster(t)
	var asked atomic.Int32
	hung.applier.now = func() time.Time {
		if asked.Add(1) == 1 { // when it took the first one
			return time.Now().Add(-time.Minute)
		}
		return time.Now()
	}
	status, answer = hung.post(t, d.lastPost(1, end))
	checkProblem(t, "first", status, answer, httpserve.Problem{Status: 422, Code: "late"})
	equal(t, "scores", d.scores(t), map[string]float64{"m0": 1})
}

// The clocks of writer and broker differ by 20 s either way: the broker's decides, for posts and when they are read again.
func TestBrokersClockDecidesPosts(t *testing.T) {
	t.Parallel()
	d, _, end := newGraceful(t, testkit.StartRedis(t, servers.RedisOptions{}))
	d.run(t)
	for n, differ := range []time.Duration{-20 * time.Second, 20 * time.Second} {
		other := d.poster(t)
		other.applier.now = func() time.Time { return time.Now().Add(differ) }
		d.shiftGrace(t, end, 15*time.Second) // the broker's clock is within it
		status, answer := other.post(t, d.lastPost(3*n, end))
		equal(t, fmt.Sprint(differ, answer), status, 200)
		d.shiftGrace(t, end, 0)
		status, answer = other.post(t, d.lastPost(1, end))
		checkProblem(t, differ.String(), status, answer, httpserve.Problem{Status: 422, Code: "late"})
		status, answer = other.post(t, d.lastPost(3*n, end))
		if status != 200 || !strings.Contains(answer, `"duplicate":true`) {
			t.Error(status, answer)
		}
		equal(t, "scores", d.scores(t), map[string]float64{"m0": float64(n + 1)})
	}
}

// So is one that is ahead of its time: its first was in time by the clock of another writer.
func TestEarlyRepeatWaitsForItsFirst(t *testing.T) {
	t.Parallel()
	d := newDurable(t, testkit.StartRedis(t, servers.RedisOptions{}), testkit.RealKafka(t))
	stop := d.withoutReader(t, time.Second)
	command := fmt.Sprintf(`{"order":"o1","class":"gift","dims":{"zone":%q},"member":"a","op":"incr","delta":1,"at":%d}`, d.zone, time.Now().Add(50*time.Second).UnixMilli())
	testkit.Produce(t, d.kafka, &kgo.Record{Topic: d.opts.Names.Commands, Key: []byte("a"), Value: []byte(command)})
	d.applier.now = func() time.Time { return time.Now().Add(-20 * time.Second) }
	status, answer := d.fixture.post(t, command)
	notYetAnswer(t, "repeat", status, answer)
	stop()
	d.run(t)
	d.await(t, "applied", 1)
	if status, answer = d.fixture.post(t, command); status != 200 || !strings.Contains(answer, `"duplicate":true`) {
		t.Error(status, answer)
	}
	status, answer = d.fixture.post(t, strings.NewReplacer("o1", "o2").Replace(command[:strings.LastIndex(command, ":")])+fmt.Sprintf(`:%d}`, time.Now().Add(3*time.Minute).UnixMilli()))
	checkProblem(t, "a new one", status, answer, httpserve.Problem{Status: 422, Code: "early"})
}

// What Redis refuses when a post comes it may take when the reader reads its record. So the reader's answer is the post's.
func TestRefusalOfTheReaderCounts(t *testing.T) {
	t.Parallel()
	d := newDurable(t, testkit.StartRedis(t, servers.RedisOptions{}), testkit.Kfake(t).Addr())
	add := func(order string, delta int64) string {
		return fmt.Sprintf(`{"order":%q,"class":"gift","dims":{"zone":%q},"member":"a","op":"incr","delta":%d,"at":%d}`, order, d.zone, delta, d.fixture.at)
	}
	stop := d.withoutReader(t, time.Second)
	status, answer := d.fixture.post(t, add("o1", maxScore))
	equal(t, answer, status, 200)
	status, answer = d.fixture.post(t, add("o2", 1))
	notYetAnswer(t, "beyond", status, answer)
	status, answer = d.fixture.post(t, add("o3", -5))
	equal(t, answer, status, 200)
	stop()
	d.run(t)
	testkit.Eventually(t, testTimeout, func() error {
		if got := d.scores(t)["a"]; got != maxScore-4 {
			return fmt.Errorf("score %v", got)
		}
		return nil
	})
	status, answer = d.fixture.post(t, add("o4", 5))
	checkProblem(t, "beyond", status, answer, httpserve.Problem{Status: 422, Code: "score_range"})
	equal(t, "of the reader alone", testutil.ToFloat64(d.metrics.refused.WithLabelValues("score_range")), 1.0)
}

// Kafka may have a command twice, as its first acknowledgement was lost: the post is the first one all the same, and its repeat is none.
func TestPostThatKafkaHasTwice(t *testing.T) {
	t.Parallel()
	d := newDurable(t, testkit.StartRedis(t, servers.RedisOptions{}), testkit.Kfake(t).Addr())
	d.onePartition(t, 0)
	h := &held{make(chan struct{}), make(chan struct{}), make(chan []any, 1)}
	other := d.poster(t)
	other.client.AddHook(h)
	told := make(chan string, 1)
	go func() { _, answer := other.post(t, d.gift("gift", 1)); told <- answer }()
	<-h.waits // it is appended
	first := testkit.Records(t, d.kafka, d.opts.Names.Commands, 1)[0]
	testkit.Produce(t, d.kafka, &kgo.Record{Topic: first.Topic, Key: first.Key, Value: first.Value, Headers: first.Headers})
	d.deleteBefore(t, 1) // so that the reader applies the other one
	d.run(t)
	d.await(t, "applied", 1)
	close(h.letGo)
	if answer := <-told; !strings.Contains(answer, `"duplicate":false`) {
		t.Error(answer)
	}
	if _, answer := d.fixture.post(t, d.gift("gift", 1)); !strings.Contains(answer, `"duplicate":true`) {
		t.Error(answer)
	}
}

// A repeat that is appended before the first one is applied is told so, though no record was known when it came.
func TestRepeatInTheLogIsADuplicate(t *testing.T) {
	t.Parallel()
	h := orderedWriters(t, 1)[0]
	h.withoutReader(t, testTimeout)
	h.posts.time = testTimeout
	body := h.inZone("sets", 0, "o1", "a", `"op":"set","score":7`)
	told := [2]chan string{make(chan string, 1), make(chan string, 1)}
	for n, answer := range told {
		go func() { _, text := h.post(t, body); answer <- text }()
		testkit.Eventually(t, testTimeout, func() error {
			if due, _ := h.waits.due(); len(due) != n+1 {
				return fmt.Errorf("%d posts wait", len(due))
			}
			return nil
		})
	}
	h.run(t)
	for n, want := range []string{`"duplicate":false`, `"duplicate":true`} {
		if answer := <-told[n]; !strings.Contains(answer, want) {
			t.Error(answer, want)
		}
	}
}

// What a late post costs: a flood of them is decided in few round trips, and does not hold up what is in time.
func BenchmarkLatePosts(b *testing.B) {
	h := quiet(b, withClasses(b))
	ctx := context.Background()
	jobs := make([]*job, 1000)
	for i := range jobs {
		j, err := h.accept([]byte(h.inClass(fmt.Sprint("o", i), h.zone(), h.at)), h.at, time.UnixMilli(h.at).Add(3*time.Minute))
		must(b, err)
		jobs[i] = j
	}
	b.ResetTimer()
	for range b.N {
		for _, j := range jobs {
			j.done = false
		}
		must(b, h.applier.answerOutside(ctx, jobs))
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(jobs)), "us/post")
}

// An order id that may be forgotten is not told to be late: it is not known whether it was applied.
func TestForgottenOrderIsNotLate(t *testing.T) {
	h := quiet(t, withClasses(t))
	zone := h.zone()
	first := h.do1(t, h.inClass("o1", zone, h.at))
	h.applier.now = func() time.Time { return time.UnixMilli(h.at).Add(3 * time.Minute) }
	h.board = first.Update.Board
	m := h.meta(t)
	post := func(want string) {
		t.Helper()
		status, answer := h.post(t, h.inClass("o2", zone, h.at))
		checkProblem(t, want, status, answer, httpserve.Problem{Status: 422, Code: want})
	}
	post("late")
	m.Turn += 2
	must(t, h.client.Set(t.Context(), h.opts.Names.MetaKey(h.board), wire.AppendMeta(nil, &m), redis.KeepTTL).Err())
	post("too_old")
}
