package writer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/httpserve"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/rooms"
)

// orderedClasses are classes whose posts wait, but for plain.
const orderedClasses = `
classes:
  - {name: sets, board: "sets:{zone}", period: none, durable: true}
  - {name: ties, board: "ties:{zone}", period: none, durable: true, ops: [incr], ties: first}
  - {name: caps, board: "caps:{zone}", period: none, durable: true, ops: [incr], guard: {members: 2, action: refuse}}
  - {name: feeds, board: "feeds:{zone}", period: none, ops: [incr], score: integer, feeds: [fed]}
  - {name: fed, board: "fed:{zone}", period: none, ops: [incr], ties: first}
  - {name: plain, board: "plain:{zone}", period: none}
`

func orderedWriters(t *testing.T, n int) []*fixture {
	t.Helper()
	file, err := rooms.Parse([]byte(orderedClasses))
	must(t, err)
	return writersOf(t, testkit.Kfake(t).Addr(), file, n)
}

// writersOf are n writers of one group with two partitions, on one Redis.
func writersOf(t testing.TB, kafkaAddr string, file *rooms.File, n int) []*fixture {
	t.Helper()
	server := testkit.StartRedis(t, servers.RedisOptions{})
	first := newFixture(t, kafkaAddr, func(o *Options) {
		o.Redis, o.Tiers = redisClient(t, server.Addr()), tiers{all: rooms.ModeSuperHot, file: file}
	})
	first.makeCommandTopicFor(t)
	all := []*fixture{first}
	for range n - 1 {
		opts := first.opts
		opts.Redis, opts.Registerer = redisClient(t, server.Addr()), nil
		w, err := New(opts)
		must(t, err)
		all = append(all, &fixture{Writer: w, client: opts.Redis.(*redis.Client), kafka: first.kafka, board: first.board, at: first.at})
	}
	return all
}

// runAll runs writers until their partitions are read.
func runAll(t testing.TB, all []*fixture) {
	t.Helper()
	for _, h := range all {
		h.run(t)
	}
	testkit.Eventually(t, testTimeout, func() error {
		partitions := 0
		for _, h := range all {
			h.rewinds.mu.Lock()
			mine := len(h.rewinds.assigned)
			h.rewinds.mu.Unlock()
			if st := h.rewinds.status(t.Context()); mine > 2/len(all) || st == nil || st.State != "whole" {
				return fmt.Errorf("%d partitions, status %+v", mine, st)
			}
			partitions += mine
		}
		if partitions != 2 {
			return fmt.Errorf("%d partitions are read", partitions)
		}
		return nil
	})
}

// inZone is a command of a class for one of several boards.
func (h *fixture) inZone(class string, zone int, order, member, change string) string {
	return fmt.Sprintf(`{"order":%q,"class":%q,"dims":{"zone":%q},"member":%q,%s}`, order, class, h.zoneOf(zone), member, change)
}

func (h *fixture) zoneOf(n int) string {
	return fmt.Sprintf("%sx%d", strings.ReplaceAll(h.zone(), ":", ""), n)
}

// applied counts the commands that the fixtures have applied as readers and posters.
func applied(all []*fixture, result string) (n int) {
	for _, h := range all {
		n += h.count(result)
	}
	return n
}

// A post of an ordered class is applied once, by the reader of its partition, in whichever writer that is; the poster gets the
// outcome: an update, the reason of a refusal, and what a fed board has.
func TestOrderedPostsAreAppliedByTheReader(t *testing.T) {
	t.Parallel()
	for _, writers := range []int{1, 2} {
		t.Run(fmt.Sprint(writers, " writers"), func(t *testing.T) {
			t.Parallel()
			all := orderedWriters(t, writers)
			runAll(t, all)
			post := func(n int, body string) (int, string) { return all[n%writers].post(t, body) }
			const boards = 6 // so that both partitions have some
			n := 0
			expect := func(body string, want ...string) {
				t.Helper()
				n++
				status, answer := post(n, body)
				if status != 200 {
					t.Error(status, answer)
				}
				for _, w := range want {
					if !strings.Contains(answer, w) {
						t.Errorf("%s: %s, want %s in it", body, answer, w)
					}
				}
			}
			h := all[0]
			for zone := range boards {
				expect(h.inZone("sets", zone, "s1", "a", `"op":"set","score":7`), `"score":7,`, `"duplicate":false`)
				expect(h.inZone("sets", zone, "s2", "a", `"op":"set","score":5`), `"score":5,`, `"duplicate":false`)
				expect(h.inZone("sets", zone, "s1", "a", `"op":"set","score":7`), `"score":7,`, `"duplicate":true`)
				expect(h.inZone("ties", zone, "t1", "a", `"op":"incr","delta":3`), `"score":3,`, `"duplicate":false`)
				expect(h.inZone("feeds", zone, "f1", "a", `"op":"incr","delta":2`), `"duplicate":false`, `"fed":[{"board":"fed:`, `"score":2,"seq":1}`)
				expect(h.inZone("feeds", zone, "f1", "a", `"op":"incr","delta":2`), `"duplicate":true`, `"score":2,"seq":1}`)
				expect(h.inZone("caps", zone, "c1", "a", `"op":"incr","delta":1`))
				expect(h.inZone("caps", zone, "c2", "b", `"op":"incr","delta":1`))
				n++
				status, answer := post(n, h.inZone("caps", zone, "c3", "c", `"op":"incr","delta":1`))
				checkProblem(t, "guard", status, answer, httpserve.Problem{Status: 422, Code: "guard"})
				n++
				status, answer = post(n, h.inZone("sets", zone, "s1", "a", `"op":"set","score":9`))
				checkProblem(t, "conflict", status, answer, httpserve.Problem{Status: 409, Code: "order_conflict"})
			}
			testkit.Eventually(t, testTimeout, func() error { // s1 and its repeat: one change
				if got := applied(all, "applied"); got != 6*boards {
					return fmt.Errorf("%d commands applied, want %d", got, 6*boards)
				}
				return nil
			})
			equal(t, "refused", applied(all, "refused"), 2*boards)
			equal(t, "waiting", []int{waitingIn(all[0].waits), waitingIn(all[writers-1].waits)}, []int{0, 0})
		})
	}
}

// waitingIn returns how many posts wait.
func waitingIn(w *waits) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.of)
}

// Commands of one request keep their sequence, and those of classes that are not ordered are applied at once.
func TestOrderedBatch(t *testing.T) {
	t.Parallel()
	all := orderedWriters(t, 1)
	runAll(t, all)
	h := all[0]
	var commands []string
	for i := range 30 {
		commands = append(commands, h.inZone("sets", i%3, fmt.Sprint("o", i), "a", fmt.Sprintf(`"op":"set","score":%d`, i)),
			h.inZone("plain", 0, fmt.Sprint("p", i), "a", `"op":"incr","delta":1`))
	}
	answer, _, ok := h.PostBatch(t.Context(), []byte(`{"commands":[`+strings.Join(commands, ",")+`]}`))
	if !ok || strings.Contains(string(answer), "problem") {
		t.Fatal(string(answer))
	}
	for i := range 30 {
		if want := fmt.Sprintf(`"order":"o%d"`, i); !strings.Contains(string(answer), want) {
			t.Error("no answer of", want)
		}
	}
	for zone, want := range []float64{27, 28, 29} {
		equal(t, fmt.Sprint("board ", zone), h.client.ZScore(t.Context(), "sets:"+h.zoneOf(zone), "a").Val(), want)
	}
}

// A reader in another writer is quicker than the one that takes the post: the post is the first all the same, and its repeat
// is none.
func TestFirstPostIsNoDuplicate(t *testing.T) {
	t.Parallel()
	file, err := rooms.Parse([]byte(strings.Replace(orderedClasses, "ops: [incr], score: integer, feeds: [fed]", "ops: [incr], durable: true", 1)))
	must(t, err)
	all := writersOf(t, testkit.Kfake(t).Addr(), file, 2)
	poster, reader := all[0], all[1]
	reader.run(t)
	p, err := newProducer(poster.opts.Kafka, poster.topics, poster.metrics, poster.log)
	must(t, err)
	defer p.close()
	poster.producer.Store(p)
	h := &held{make(chan struct{}), make(chan struct{}), make(chan []any, 1)}
	poster.client.AddHook(h)
	body := poster.inZone("feeds", 0, "o1", "a", `"op":"incr","delta":2`)
	told := make(chan string, 1)
	go func() { _, answer := poster.post(t, body); told <- answer }()
	<-h.waits
	reader.await(t, "applied", 1)
	close(h.letGo)
	if answer := <-told; !strings.Contains(answer, `"score":2,`) || !strings.Contains(answer, `"duplicate":false`) {
		t.Error(answer)
	}
	for _, again := range all {
		if _, answer := again.post(t, body); !strings.Contains(answer, `"score":2,`) || !strings.Contains(answer, `"duplicate":true`) {
			t.Error(answer)
		}
	}
}

// failing fails commands of Redis by their name while it is set.
type failing struct{ name atomic.Pointer[string] }

func (f *failing) DialHook(next redis.DialHook) redis.DialHook { return next }
func (f *failing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if name := f.name.Load(); name != nil && cmd.Name() == *name {
			err := errors.New("fails in the test")
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}
func (f *failing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if name := f.name.Load(); name != nil {
			for _, cmd := range cmds {
				if cmd.Name() == *name {
					for _, c := range cmds {
						c.SetErr(errors.New("fails in the test"))
					}
					return errors.New("fails in the test")
				}
			}
		}
		return next(ctx, cmds)
	}
}

// While the reader can't apply a post's command, the post waits; then it is to be repeated, and gets what has become of
// the command meanwhile.
func TestOrderedPostOutOfTime(t *testing.T) {
	t.Parallel()
	all := orderedWriters(t, 1)
	h := all[0]
	var hook failing
	h.client.AddHook(&hook)
	runAll(t, all)
	hook.name.Store(new("evalsha"))
	body := h.inZone("sets", 0, "o1", "a", `"op":"set","score":7`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for { // until it is appended
			if due, _ := h.waits.due(); len(due) > 0 || ctx.Err() != nil {
				cancel()
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	_, err := h.do(ctx, []byte(body))
	problem := problemOf(err)
	equal(t, problem.Detail, []any{problem.Status, problem.Code, strings.Contains(problem.Detail, "order o1")}, []any{503, "not_yet", true})
	equal(t, "waiting", waitingIn(h.waits), 0)
	hook.name.Store(nil)
	h.await(t, "applied", 1)
	status, answer := h.post(t, body)
	if status != 200 || !strings.Contains(answer, `"duplicate":true`) {
		t.Error(status, answer)
	}
}

// A reader that can't leave the reason of a refusal for another writer's post: that is answered by the position.
func TestRefusalWithoutReason(t *testing.T) {
	t.Parallel()
	all := orderedWriters(t, 2)
	for _, h := range all {
		var hook failing
		hook.name.Store(new("set"))
		h.client.AddHook(&hook)
	}
	runAll(t, all)
	h := all[0]
	var wg sync.WaitGroup
	codes := make([]string, 8)
	for zone := range codes {
		for _, member := range []string{"a", "b"} {
			status, answer := h.post(t, h.inZone("caps", zone, member, member, `"op":"incr","delta":1`))
			equal(t, answer, status, 200)
		}
	}
	for zone := range codes {
		wg.Go(func() {
			_, codes[zone] = h.post(t, h.inZone("caps", zone, "c", "c", `"op":"incr","delta":1`))
		})
	}
	wg.Wait()
	generic := 0
	for _, answer := range codes {
		switch {
		case strings.Contains(answer, `"code":"refused"`) && strings.Contains(answer, h.opts.Names.Refused):
			generic++
		case !strings.Contains(answer, `"code":"guard"`):
			t.Error(answer)
		}
	}
	if generic == 0 || generic == len(codes) {
		t.Errorf("%d of %d refusals are of the other writer", generic, len(codes))
	}
}

// A failover under posts of ordered classes: what was acknowledged is there, once, in the sequence of the log.
func TestFailoverUnderOrderedPosts(t *testing.T) {
	t.Parallel()
	master := testkit.StartRedis(t, servers.RedisOptions{})
	replica := replicaOf(t, master)
	d := newDurable(t, master, testkit.Kfake(t).Addr())
	file, err := rooms.Parse([]byte(orderedClasses))
	must(t, err)
	d.opts.Tiers = tiers{all: rooms.ModeSuperHot, file: file}
	w, err := New(d.opts)
	must(t, err)
	d.Writer = w
	d.posts = 0
	d.run(t)
	set := func(n int) {
		t.Helper()
		body := d.inZone("sets", 0, fmt.Sprint("o", n), fmt.Sprint("m", n%3), fmt.Sprintf(`"op":"set","score":%d`, n))
		testkit.Eventually(t, testTimeout, func() error {
			status, answer := d.fixture.post(t, body)
			if status != 200 {
				return fmt.Errorf("%d %s", status, answer)
			}
			return nil
		})
	}
	for n := range 20 {
		set(n)
	}
	testkit.Eventually(t, testTimeout, func() error {
		next := int64(0)
		for _, p := range d.positions(t).Of {
			next += p.Next
		}
		if next < 20 {
			return fmt.Errorf("positions tell %d", next)
		}
		return nil
	})
	board := "sets:" + d.zoneOf(0)
	client := replica.Client()
	defer client.Close()
	testkit.Eventually(t, testTimeout, func() error {
		if got := client.ZScore(t.Context(), board, "m1").Val(); got != 19 {
			return fmt.Errorf("the replica has %v", got)
		}
		return nil
	})
	must(t, replica.Do(t.Context(), "REPLICAOF", "NO", "ONE"))
	for n := 20; n < 40; n++ {
		set(n)
	}
	must(t, master.Kill())
	d.at.moveTo(replica)
	for n := 40; n < 50; n++ {
		set(n)
	}
	for member, want := range map[string]float64{"m0": 48, "m1": 49, "m2": 47} {
		equal(t, member, d.client.ZScore(t.Context(), board, member).Val(), want)
	}
	d.board = rankcache.BoardID(board)
	d.checkSum(t)
	equal(t, "seq", d.meta(t).Seq, uint64(50))
}

// BenchmarkWaits measures how long posts take: of a class that commutes, and of one whose posts wait for the reader in
// the same writer, and in another one.
func BenchmarkWaits(b *testing.B) {
	for name, at := range map[string]struct {
		class   string
		writers int
	}{"commuting": {"feeds", 1}, "ordered": {"ties", 1}, "ordered, other reader": {"ties", 2}} {
		b.Run(name, func(b *testing.B) {
			file, err := rooms.Parse([]byte(strings.Replace(orderedClasses, "feeds: [fed]", "durable: true", 1)))
			must(b, err)
			all := writersOf(b, testkit.RealKafka(b), file, at.writers)
			runAll(b, all)
			var took []time.Duration
			for n := range b.N {
				begin := time.Now()
				if status, answer := all[n%at.writers].post(b, all[0].inZone(at.class, n%16, fmt.Sprint("o", n), "a", `"op":"incr","delta":1`)); status != 200 {
					b.Fatal(status, answer)
				}
				took = append(took, time.Since(begin))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
		})
	}
}
