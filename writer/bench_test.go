package writer

import (
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/rooms"
	"rankcache/wire"
)

// BenchmarkWriter processes b.N increments of 57,000 members of one board, from a
// real Kafka topic to acknowledged updates. Joining the group (3 s on a broker with
// default settings) is not measured.
func BenchmarkWriter(b *testing.B) {
	for _, published := range []bool{true, false} {
		b.Run(fmt.Sprintf("published=%v", published), func(b *testing.B) { benchWriter(b, published) })
	}
}

func benchWriter(b *testing.B, published bool) {
	h := newFixture(b, testkit.RealKafka(b), func(o *Options) {
		if !published {
			o.Tiers = tiers{}
		}
	})
	h.makeCommandTopicFor(b)
	records := make([]*kgo.Record, b.N)
	for i := range records {
		records[i] = &kgo.Record{Topic: h.opts.Names.Commands, Key: []byte(h.board), Value: []byte(h.randomCommand(i))}
	}
	testkit.Produce(b, h.kafka, records...)
	h.run(b)
	testkit.Eventually(b, testTimeout, func() error {
		if h.count("applied") == 0 {
			return errors.New("has not joined")
		}
		return nil
	})
	first, cpu, redisBefore := h.count("applied"), ownCPU(b), redisCPU(b, h.client)
	b.ResetTimer()
	h.await(b, "applied", b.N)
	n := float64(b.N - first)
	b.ReportMetric(n/b.Elapsed().Seconds(), "commands/s")
	b.ReportMetric((ownCPU(b)-cpu)*1e6/n, "writer-cpu-us/command")
	b.ReportMetric((redisCPU(b, h.client)-redisBefore)*1e6/n, "redis-cpu-us/command")
}

// ownCPU returns the seconds of CPU that this process has used, librdkafka's
// threads included. It is steadier than the rate on a busy machine.
func ownCPU(b *testing.B) float64 {
	var u syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

func (h *fixture) randomCommand(i int) string {
	return h.command(fmt.Sprint("order-", i), fmt.Sprint(1_000_000+rand.IntN(57_000)))
}

// BenchmarkApply measures Redis's part alone: batches of 1000 commands.
func BenchmarkApply(b *testing.B) {
	h := newFixture(b, "unused:1", nil)
	next := 0
	before := redisCPU(b, h.client)
	for b.Loop() {
		jobs := make([]*job, maxBatch)
		for i := range jobs {
			c, err := DecodeCommand([]byte(h.randomCommand(next)), 0)
			must(b, err)
			jobs[i], next = &job{Command: c}, next+1
		}
		must(b, h.applier.apply(b.Context(), jobs))
	}
	b.ReportMetric(float64(next)/b.Elapsed().Seconds(), "commands/s")
	b.ReportMetric((redisCPU(b, h.client)-before)*1e6/float64(next), "redis-cpu-us/command")
}

// BenchmarkScript compares apply.lua with the script before boards had a checksum: in
// turns on one server, 200,000 increments of 57,000 members of 1 board, or of 50 or 500
// boards together, pipelines of 500, order ids of 15 bytes. Run it with -benchtime 1x.
func BenchmarkScript(b *testing.B) {
	for _, boards := range []int{1, 50, 500} {
		b.Run(fmt.Sprintf("boards=%d", boards), func(b *testing.B) { compareScripts(b, boards, (*scriptRun).pipeline) })
	}
}

// BenchmarkPosts does the same with 50 posters at the same time, of one board or of one
// each; before, each post was a pipeline of its own.
func BenchmarkPosts(b *testing.B) {
	for _, boards := range []int{1, 50} {
		b.Run(fmt.Sprintf("boards=%d", boards), func(b *testing.B) { compareScripts(b, boards, (*scriptRun).posts) })
	}
}

// BenchmarkDurable compares boards of a durable class with plain ones, in the same way.
func BenchmarkDurable(b *testing.B) {
	for _, boards := range []int{1, 50, 500} {
		b.Run(fmt.Sprintf("boards=%d", boards), func(b *testing.B) {
			for b.Loop() {
				server := testkit.StartRedis(b, servers.RedisOptions{})
				h := quiet(b, func(o *Options) { o.Redis = redisClient(b, server.Addr()) })
				kind := &rooms.Class{Durable: true}
				plain := scriptRun{h: h, send: (*scriptRun).pipeline, boards: boards, name: "plain", apply: applyNow}
				durable := scriptRun{h: h, send: (*scriptRun).pipeline, boards: boards, name: "durable", apply: func(b *testing.B, h *fixture, jobs []*job) error {
					for _, j := range jobs {
						j.rules.kind = kind
					}
					return applyNow(b, h, jobs)
				}}
				compare(b, &plain, &durable)
			}
		})
	}
}

// BenchmarkHiding compares the script of boards that hide nobody with one that does not look for that, and with that of
// boards that hide a member, in the same way.
func BenchmarkHiding(b *testing.B) {
	for b.Loop() {
		server := testkit.StartRedis(b, servers.RedisOptions{})
		h := quiet(b, func(o *Options) { o.Redis = redisClient(b, server.Addr()) })
		blind := quiet(b, func(o *Options) { o.Redis = redisClient(b, server.Addr()) })
		whole := features{}.choose(applySource)
		source := strings.Replace(whole, "if flags >= 128 then\n  return 'h'\nend\n", "", 1)
		if source == whole {
			b.Fatal("the script does not look for hidden members")
		}
		blind.applier.scripts.made.Store(features{}, redis.NewScript(wire.Script(source)))
		without := scriptRun{h: blind, send: (*scriptRun).pipeline, boards: 1, name: "without", apply: applyNow}
		plain := scriptRun{h: h, send: (*scriptRun).pipeline, boards: 1, name: "plain", apply: applyNow}
		compare(b, &without, &plain)
		hides := scriptRun{h: h, send: (*scriptRun).pipeline, boards: 1, name: "hides", apply: applyNow}
		must(b, h.applier.apply(b.Context(), []*job{{Command: &Command{Board: "hides-0", Member: "m", Op: wire.OpHide, Number: 1, OrderID: wire.HideOrder(1, "m"), At: h.at}}}))
		hides.load(b)
		for range 20 {
			hides.block(b)
		}
		hides.report(b)
		b.ReportMetric(hides.median()/plain.median(), "hides-ratio")
	}
}

// BenchmarkLog compares boards whose changes are logged in Redis with plain ones, in the same way: with one change a call,
// and with 16.
func BenchmarkLog(b *testing.B) {
	for _, changes := range []int{1, 16} {
		b.Run(fmt.Sprintf("changes=%d", changes), func(b *testing.B) {
			for b.Loop() {
				server := testkit.StartRedis(b, servers.RedisOptions{})
				h := quiet(b, func(o *Options) { o.Redis = redisClient(b, server.Addr()) })
				logs := quiet(b, func(o *Options) {
					o.Redis, o.Tiers, o.LogSize = redisClient(b, server.Addr()), tiers{all: rooms.ModeSuperHot}, testLogSize
				})
				plain := scriptRun{h: h, send: (*scriptRun).pipeline, boards: 500 / changes, name: "plain", apply: applyNow}
				logged := scriptRun{h: logs, send: (*scriptRun).pipeline, boards: 500 / changes, name: "logged", apply: func(b *testing.B, h *fixture, jobs []*job) error {
					return errors.Join(applyNow(b, h, jobs), h.applier.logs.cut(b.Context(), h.client))
				}}
				compare(b, &plain, &logged)
			}
		})
	}
}

func compareScripts(b *testing.B, boards int, send func(*scriptRun, *testing.B)) {
	for b.Loop() {
		server := testkit.StartRedis(b, servers.RedisOptions{})
		h := quiet(b, func(o *Options) { o.Redis = redisClient(b, server.Addr()) })
		must(b, beforeScript.Load(b.Context(), h.client).Err())
		before := scriptRun{h: h, send: send, boards: boards, name: "before", apply: applyBefore, post: applyBefore}
		now := scriptRun{h: h, send: send, boards: boards, name: "now", apply: applyNow, post: postNow}
		compare(b, &before, &now)
	}
}

// compare runs both in turns.
func compare(b *testing.B, before, now *scriptRun) {
	before.load(b)
	now.load(b)
	for range 20 {
		before.block(b)
		now.block(b)
	}
	before.report(b)
	now.report(b)
	b.ReportMetric(now.median()/before.median(), "cpu-ratio")
}

//go:embed testdata/before.lua
var beforeSource string

var beforeScript = redis.NewScript(beforeSource)

// scriptRun is a script with what it has cost.
type scriptRun struct {
	h           *fixture
	send        func(*scriptRun, *testing.B)
	apply, post func(*testing.B, *fixture, []*job) error
	name        string
	boards      int
	orders      int
	cpu         []float64 // microseconds a command, of each block
	memory      float64
}

const scriptMembers = 57_000

// load makes the boards with all their members.
func (r *scriptRun) load(b *testing.B) {
	for range scriptMembers / 500 {
		r.pipeline(b)
	}
}

const blockLen = 10_000

func (r *scriptRun) block(b *testing.B) {
	cpu, memory := redisCPU(b, r.h.client), r.usedMemory(b)
	for range blockLen / 500 {
		r.send(r, b)
	}
	r.cpu = append(r.cpu, (redisCPU(b, r.h.client)-cpu)*1e6/blockLen)
	r.memory += r.usedMemory(b) - memory
}

func (r *scriptRun) pipeline(b *testing.B) { must(b, r.apply(b, r.h, r.jobs())) }

// posts has 50 posters send ten commands each.
func (r *scriptRun) posts(b *testing.B) {
	jobs := r.jobs()
	var posters sync.WaitGroup
	for p := range 50 {
		posters.Go(func() {
			for i := p; i < len(jobs); i += 50 {
				if err := r.post(b, r.h, jobs[i:i+1]); err != nil {
					b.Error(err)
				}
			}
		})
	}
	posters.Wait()
}

func (r *scriptRun) jobs() []*job {
	jobs := make([]*job, 500)
	for i := range jobs {
		board := rankcache.BoardID(fmt.Sprint(r.name, "-", r.orders%r.boards))
		jobs[i] = &job{Command: &Command{Board: board, Member: fmt.Sprint(1_000_000 + r.orders%scriptMembers), Op: wire.OpIncr, Number: 1,
			OrderID: fmt.Sprintf("order-%09d", r.orders), At: r.h.at}}
		r.orders++
	}
	return jobs
}

func applyNow(b *testing.B, h *fixture, jobs []*job) error { return h.applier.apply(b.Context(), jobs) }

func postNow(b *testing.B, h *fixture, jobs []*job) error {
	return h.applier.applyPosts(b.Context(), jobs[:1])
}

func applyBefore(b *testing.B, h *fixture, jobs []*job) error {
	_, err := h.client.Pipelined(b.Context(), func(p redis.Pipeliner) error {
		for _, j := range jobs {
			key := "{" + string(j.Board) + "}:"
			beforeScript.EvalSha(b.Context(), p, []string{string(j.Board), key + "seq", key + "order:" + j.OrderID},
				j.Op.String(), j.Member, strconv.FormatFloat(j.Number, 'g', -1, 64), j.At, 0)
		}
		return nil
	})
	return err
}

func (r *scriptRun) report(b *testing.B) {
	b.ReportMetric(r.median(), r.name+"-cpu-us")
	b.ReportMetric(r.memory/float64(len(r.cpu)*blockLen), r.name+"-B/order")
}

func (r *scriptRun) median() float64 {
	slices.Sort(r.cpu)
	return r.cpu[len(r.cpu)/2]
}

func (r *scriptRun) usedMemory(b *testing.B) float64 {
	info, err := r.h.client.InfoMap(b.Context(), "memory").Result()
	must(b, err)
	n, err := strconv.ParseFloat(info["Memory"]["used_memory"], 64)
	must(b, err)
	return n
}

// BenchmarkAdoption adds up sorted sets that no writer made. Run it with -benchtime 1x.
func BenchmarkAdoption(b *testing.B) {
	for _, members := range []int{maxAtOnce, 210_000, 2_000_000} {
		b.Run(fmt.Sprint(members), func(b *testing.B) {
			server := testkit.StartRedis(b, servers.RedisOptions{})
			h := quiet(b, func(o *Options) { o.Redis = redisClient(b, server.Addr()) })
			h.zadd(b, members)
			b.ResetTimer()
			must(b, h.applier.prepare(b.Context(), h.board, rules{}, ""))
		})
	}
}

// redisCPU returns the seconds of CPU that the server has used.
func redisCPU(t testing.TB, client *redis.Client) (seconds float64) {
	t.Helper()
	info, err := client.InfoMap(t.Context(), "cpu").Result()
	must(t, err)
	for _, key := range []string{"used_cpu_user", "used_cpu_sys"} {
		f, err := strconv.ParseFloat(info["CPU"][key], 64)
		must(t, err)
		seconds += f
	}
	return seconds
}

// BenchmarkDecode decodes one command of the usual size.
func BenchmarkDecode(b *testing.B) {
	data := []byte(`{"order":"20250101-000001","board":"1_2_3","room":"88","member":"1000123","op":"incr","delta":1,"at":1760000000000}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeCommand(data, 0); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEncode encodes the update of one command.
func BenchmarkEncode(b *testing.B) {
	u := wire.Update{Board: "1_2_3", Member: "1000123", Op: wire.OpIncr, Delta: 1, Score: 42, Seq: 917, OrderID: "20250101-000001", At: 1760000000000}
	var buf []byte
	for b.Loop() {
		buf = wire.AppendUpdate(buf[:0], &u)
	}
}
