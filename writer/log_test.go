package writer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/rooms"
	"rankcache/wire"
)

const testLogSize = 64 << 20

// logging returns a writer with a Redis of its own, which has the log, and without Kafka unless change names one.
func logging(t testing.TB, change func(*Options)) *fixture {
	t.Helper()
	server := testkit.StartRedis(t, servers.RedisOptions{})
	return newFixture(t, "none", func(o *Options) {
		o.Redis, o.LogSize, o.Kafka = redisClient(t, server.Addr()), testLogSize, nil
		if change != nil {
			change(o)
		}
	})
}

// logged returns what the log has of each board.
func (h *fixture) logged(t testing.TB) map[rankcache.BoardID][]wire.Update {
	t.Helper()
	entries, err := h.client.XRange(t.Context(), wire.LogKey, "-", "+").Result()
	must(t, err)
	all := make(map[rankcache.BoardID][]wire.Update)
	for _, e := range entries {
		name, _ := e.Values[wire.LogBoard].(string)
		changes, _ := e.Values[wire.LogChanges].(string)
		board := rankcache.BoardID(name)
		all[board], err = wire.DecodeLog(board, changes, all[board])
		must(t, err)
	}
	return all
}

// kinds are settings of classes that change what the script does.
var kinds = map[string]string{
	"plain": "", "up": "ops: [incr]", "first": "ties: first", "last": "ties: last", "best": "ops: [best, incr, delete]", "laps": "ops: [best], order: asc, ties: first", "asc": "order: asc",
	"trim": "ops: [incr], trim: 4", "first-trim": "ops: [incr], trim: 4, ties: first", "data": "data: true", "best-data": "data: true, ops: [best, incr, delete]", "data-trim": "data: true, ops: [incr], trim: 4",
	"guard": "guard: {changes: 9/1h, members: 8, action: refuse}", "gain": "ops: [incr], guard: {changes: 9/1h, gain: 20/1h, members: 8}", "durable": "ops: [incr], durable: true",
	"durable-trim": "ops: [incr], durable: true, trim: 4", "split": "shards: 3",
}

// kindsFile is a rooms file with a class of each kind, whose only board is <prefix>:<kind>.
func kindsFile(t testing.TB, prefix string) *rooms.File {
	t.Helper()
	text := "classes:\n"
	for name, settings := range kinds {
		text += fmt.Sprintf("  - {name: %s, board: \"%s:%s\", period: none, mode: super-hot, orders: 1h, %s}\n", name, prefix, name, settings)
	}
	file, err := rooms.Parse([]byte(text))
	must(t, err)
	return file
}

// randomChange returns a command of any operation for a member of a class's board; some are refused.
func randomChange(board, kind string, order int) json.RawMessage {
	member, n := fmt.Sprint("m", rand.IntN(12)), rand.IntN(9)
	change := fmt.Sprintf(`"op":"incr","delta":%d`, n)
	switch rand.IntN(20) {
	case 0, 1:
		change = fmt.Sprintf(`"op":"set","score":%d`, n)
	case 2, 3, 4:
		change = fmt.Sprintf(`"op":"best","score":%d`, n)
	case 5:
		change = `"op":"delete"`
	case 6, 7:
		op, serial := []string{"hide", "restore"}[rand.IntN(2)], uint64(order+1)
		return fmt.Appendf(nil, `{"board":%q,"member":%q,"op":%q,"order":%q,"reason":"x"}`, board, member, op, wire.HideOrder(serial, member))
	case 8:
		return fmt.Appendf(nil, `{"board":%q,"member":%q,"op":"forget","order":"f%d","reason":"x"}`, board, member, order)
	}
	if strings.Contains(kinds[kind], "data") && rand.IntN(2) == 0 {
		change += fmt.Sprintf(`,"data":"d%d"`, n)
	}
	return fmt.Appendf(nil, `{"board":%q,"member":%q,"order":"o%d",%s}`, board, member, order, change)
}

// The log has what the topics of the boards have, in the same sequence, but for order ids and deltas.
func TestLogIsTheTopics(t *testing.T) {
	t.Parallel()
	prefix, file := lastPart(testkit.Name(t)), (*rooms.File)(nil)
	h := logging(t, func(o *Options) {
		file = kindsFile(t, prefix)
		o.Kafka, o.Tiers = map[string]string{"bootstrap.servers": testkit.Kafka(t)}, tiers{all: rooms.ModeSuperHot, file: file}
	})
	h.kafka = testkit.Kafka(t)
	equal(t, "log", h.getStatus(t).Log, "both")
	h.run(t)
	ctx := context.WithValue(t.Context(), forgetKey{}, true)
	for round := range testkit.Sized(4, 40) {
		for kind := range kinds {
			batch := make([]json.RawMessage, 1+19*(round%2))
			for i := range batch {
				batch[i] = randomChange(prefix+":"+kind, kind, round*100+i)
			}
			for _, done := range h.posts.doAll(ctx, append(batch, batch...)) {
				if done.err != nil && asRefusal(done.err) == nil {
					t.Fatalf("%s: %s: %v", kind, done.body, done.err)
				}
			}
		}
	}
	log, ops := h.logged(t), map[wire.Op]int{}
	equal(t, "boards", len(log), len(kinds)+2) // of the split one there are three
	for board, got := range log {
		meta, err := h.applier.meta(t.Context(), board)
		must(t, err)
		equal(t, string(board)+": changes", uint64(len(got)), meta.Seq)
		want := h.told(t, file.Log(h.opts.Names, board).Topic, len(got))
		for _, u := range want {
			ops[u.Op]++
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-topic +log):\n%s", board, diff)
		}
		equal(t, string(board)+": last", got[len(got)-1].State(), meta.State)
	}
	for _, op := range []wire.Op{wire.OpIncr, wire.OpSet, wire.OpDelete, wire.OpTrim} {
		if ops[op] == 0 {
			t.Errorf("no %v was made", op)
		}
	}
}

// told returns the updates up to a seq that a topic has, repeats once, without order ids and deltas.
func (h *fixture) told(t *testing.T, topic string, upTo int) []wire.Update {
	t.Helper()
	all := make([]wire.Update, upTo)
	from := testkit.KafkaClient(t, h.kafka, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	for missing := upTo; missing > 0; {
		fetches := from.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			t.Fatalf("topic %s lacks %d of %d updates: %v", topic, missing, upTo, err)
		}
		for _, r := range fetches.Records() {
			var u wire.Update
			must(t, wire.DecodeUpdate(r.Value, &u))
			u.OrderID, u.Delta = "", 0
			if u.Seq > uint64(upTo) {
				t.Fatalf("the topic has seq %d, the log ends at %d", u.Seq, upTo)
			}
			if all[u.Seq-1].Seq == 0 {
				missing--
			}
			all[u.Seq-1] = u
		}
	}
	return all
}

// Repeats and refusals append nothing, nor do boards that nobody follows; what one call changes is one entry.
func TestLogHasNewChangesAlone(t *testing.T) {
	t.Parallel()
	h := logging(t, func(o *Options) {
		o.Tiers = tiers{boards: map[rankcache.BoardID]rooms.Mode{"followed": rooms.ModeSuperHot}, rooms: map[string]rooms.Mode{"88": rooms.ModeSuperHot}}
	})
	entries := func() int64 { return h.client.XLen(t.Context(), wire.LogKey).Val() }
	post := func(board, order, more string) json.RawMessage {
		return fmt.Appendf(nil, `{"order":%q,"board":%q,"member":"a","op":"incr","delta":1%s}`, order, board, more)
	}
	for range 2 {
		for _, done := range h.posts.doAll(t.Context(), []json.RawMessage{post("followed", "o1", ""), post("followed", "o2", ""), post("followed", "o3", "")}) {
			must(t, done.err)
		}
		equal(t, "entries of one call", entries(), int64(1))
	}
	h.do1(t, string(post("followed", "o2", "")))
	h.checkRefused(t, string(post("followed", "o4", ",\"at\":1")), "too_old")
	h.do1(t, string(post("other", "o1", "")))
	equal(t, "entries", entries(), int64(1))
	h.do1(t, string(post("of-a-room", "o1", `,"room":"88"`)))
	equal(t, "entries with the room's", entries(), int64(2))
	equal(t, "of the room", h.logged(t)["of-a-room"][0].Score, 1.0)
}

// A key of another type in the log's place: changes stand and are answered, it is told and counted, and nobody's key is
// touched; once it is away the log goes on.
func TestLogKeyOfAnotherType(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	h := logging(t, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	must(t, h.client.Set(t.Context(), wire.LogKey, "somebody's", 0).Err())
	equal(t, "alone", h.do1(t, h.command("o1", "a")).Update.Seq, uint64(1))
	for i, done := range h.posts.doAll(t.Context(), []json.RawMessage{[]byte(h.command("o2", "a")), []byte(h.command("o3", "b"))}) {
		must(t, done.err)
		equal(t, "together", done.Update.Seq, uint64(i+2))
	}
	equal(t, "again", h.do1(t, h.command("o1", "a")).Duplicate, true)
	h.checkSum(t)
	equal(t, "adoptions", testutil.ToFloat64(h.metrics.adoptions), 0.0)
	equal(t, "key", h.client.Get(t.Context(), wire.LogKey).Val(), "somebody's")
	equal(t, "counted", testutil.ToFloat64(h.metrics.logFailed), 2.0)
	if !strings.Contains(log.String(), "WRONGTYPE") {
		t.Error(log.String())
	}
	if st := h.getStatus(t).Dependencies["redis_log"]; st.State != "failing" || !strings.Contains(st.Error, "WRONGTYPE") || h.Fault() == nil {
		t.Errorf("%+v, %v", st, h.Fault())
	}
	h.client.Del(t.Context(), wire.LogKey)
	h.do1(t, h.command("o4", "a"))
	equal(t, "seq in the log", h.logged(t)[h.board][0].Seq, uint64(4))
	h.applier.logs.last.Load().at = h.applier.logs.last.Load().at.Add(-logFaultLasts)
	equal(t, "fault", h.Fault(), nil)
}

// A Redis without memory: a change is refused with its entry, and one that Redis still takes has its entry.
func TestLogWithoutMemory(t *testing.T) {
	t.Parallel()
	h := logging(t, nil)
	h.do1(t, h.command("o1", "a"))
	h.do1(t, h.command("o2", "b"))
	before := h.meta(t)
	must(t, h.client.ConfigSet(t.Context(), "maxmemory", "1").Err())
	_, err := h.do(t.Context(), []byte(h.command("o3", "a")))
	if err == nil || !strings.Contains(err.Error(), "OOM") {
		t.Error(err)
	}
	equal(t, "meta", h.meta(t), before)
	h.do1(t, h.opCommand("delete", "o4", "b", "score", 0))
	must(t, h.client.ConfigSet(t.Context(), "maxmemory", "0").Err())
	h.do1(t, h.command("o3", "a"))
	var seqs []uint64
	for _, u := range h.logged(t)[h.board] {
		seqs = append(seqs, u.Seq)
	}
	equal(t, "seqs", seqs, []uint64{1, 2, 3, 4})
	h.checkSum(t)
}

// The log is cut to about its size, its last entries stay.
func TestLogIsCut(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	h := logging(t, func(o *Options) { o.LogSize = size })
	must(t, h.applier.logs.cut(t.Context(), h.client)) // there is none
	for i := range 600 {
		jobs := make([]*job, maxPerCall)
		for k := range jobs {
			jobs[k] = &job{Command: &Command{Board: h.board, Member: fmt.Sprint("m", i*maxPerCall+k), Op: wire.OpIncr, Number: 1, OrderID: fmt.Sprint(i, "/", k), At: h.at}}
		}
		must(t, h.applier.apply(t.Context(), jobs))
	}
	if was := h.client.MemoryUsage(t.Context(), wire.LogKey).Val(); was < 3*size/2 {
		t.Fatalf("the log has only %d bytes", was)
	}
	h.run0(t)
	testkit.Eventually(t, testTimeout, func() error {
		if is := h.client.MemoryUsage(t.Context(), wire.LogKey).Val(); is > size*11/10 || is < size/2 {
			return fmt.Errorf("the log has %d bytes, want about %d", is, size)
		}
		return nil
	})
	log := h.logged(t)[h.board]
	equal(t, "last", log[len(log)-1].Seq, h.meta(t).Seq)
	must(t, h.client.Set(t.Context(), wire.LogKey, "somebody's", 0).Err())
	testkit.Eventually(t, testTimeout, func() error {
		if h.Fault() == nil {
			return fmt.Errorf("a key of another type is not noticed")
		}
		return nil
	})
}

// Of several instances each has the log of its own boards, and is cut.
func TestLogOfInstances(t *testing.T) {
	t.Parallel()
	var instances [2]*redis.Client
	var slots []redis.ClusterSlot
	for i := range instances {
		server := testkit.StartRedis(t, servers.RedisOptions{})
		instances[i] = redisClient(t, server.Addr())
		slots = append(slots, redis.ClusterSlot{Start: i * 8192, End: i*8192 + 8191, Nodes: []redis.ClusterNode{{Addr: server.Addr()}}})
	}
	all := redis.NewClusterClient(&redis.ClusterOptions{Protocol: 2, ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) { return slots, nil }})
	t.Cleanup(func() { all.Close() })
	h := logging(t, func(o *Options) { o.Redis = all })
	for i := range 20 {
		h.do1(t, fmt.Sprintf(`{"order":"o","board":"b%d","member":"a","op":"incr","delta":1}`, i))
	}
	of := [2]int64{instances[0].XLen(t.Context(), wire.LogKey).Val(), instances[1].XLen(t.Context(), wire.LogKey).Val()}
	if of[0]+of[1] != 20 || of[0] == 0 || of[1] == 0 {
		t.Errorf("%v entries, want 20 on both", of)
	}
	h.applier.logs.LogSize = 1
	h.run0(t)
	testkit.Eventually(t, testTimeout, func() error {
		for _, one := range instances {
			if stats := one.Info(t.Context(), "commandstats").Val(); !strings.Contains(stats, "cmdstat_xtrim:") {
				return fmt.Errorf("not cut: %s", stats)
			}
		}
		return nil
	})
	equal(t, "fault", h.Fault(), nil)
}

// run0 starts a writer without Kafka, which ends with the test.
func (h *fixture) run0(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	stop = func() {
		cancel()
		if err, open := <-ended; open && err != nil {
			t.Error("run:", err)
		}
	}
	t.Cleanup(cancel)
	return stop
}

// A writer without Kafka takes posts of all kinds, adopts boards, tells where its log is, and ends.
func TestWithoutKafka(t *testing.T) {
	t.Parallel()
	h := logging(t, nil)
	stop := h.run0(t)
	status, answer := h.post(t, h.command("o1", "a"))
	equal(t, answer, status, 200)
	status, answer = h.post(t, `{"order":"o2","board":"b","member":"a","op":"fly"}`)
	equal(t, answer, status, 400)
	equal(t, "hidden", h.moved(t, "hide", "a").Seq, uint64(2))
	must(t, h.client.ZAdd(t.Context(), string(h.board), redis.Z{Member: "by hand", Score: 5}).Err())
	status, answer = h.post(t, h.command("o3", "b"))
	equal(t, answer, status, 200)
	h.checkSum(t)
	st := h.getStatus(t)
	_, asked := st.Dependencies["kafka"]
	equal(t, "status", []any{st.Log, asked, st.Dependencies["redis"].State, st.Dependencies["redis_log"].State, h.Fault()}, []any{"redis", false, "ok", "ok", nil})
	log := h.logged(t)[h.board]
	equal(t, "last", log[len(log)-1].State(), h.meta(t).State)
	stop()
}

// Without Kafka and without a log in Redis there is no writer.
func TestNoLogAtAll(t *testing.T) {
	_, err := New(Options{Redis: redisClient(t, "unused:1"), Names: wire.DefaultNames(), Tiers: tiers{}})
	if err == nil || !strings.Contains(err.Error(), "bootstrap.servers") {
		t.Error(err)
	}
}
