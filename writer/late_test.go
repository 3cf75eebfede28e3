package writer

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/class"
	"rankcache/internal/httpserve"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

func TestOutside(t *testing.T) {
	start := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	p := class.Period{Tag: "20261122-1", Start: start, End: start.Add(time.Minute)}
	for arrived, want := range map[time.Duration]string{
		-time.Minute - time.Millisecond: "early", -time.Minute: "", 0: "", time.Minute: "",
		time.Minute + 5*time.Second: "", time.Minute + 5*time.Second + time.Millisecond: "late",
	} {
		got := ""
		if refusal := outside(p, 5*time.Second, start.Add(arrived)); refusal != nil {
			got = refusal.Reason
		}
		equal(t, arrived.String(), got, want)
	}
	if refusal := outside(class.Period{}, 0, start); refusal != nil {
		t.Error("without periods:", refusal)
	}
}

// A post that comes after its period and the grace is refused as late, one for a period
// to come as early, also if it names the board by its id. A repeat of a command that was
// in time is answered as a repeat, and its order id stays known to be another's.
func TestLatePosts(t *testing.T) {
	h := quiet(t, withClasses(t))
	first := h.do1(t, h.inClass("o1", h.zone(), h.at))
	post := func(body, code string, status int) {
		t.Helper()
		got, answer := h.post(t, body)
		checkProblem(t, body, got, answer, httpserve.Problem{Status: status, Code: code})
	}
	late := h.inClass("o2", h.zone(), h.at-2*time.Minute.Milliseconds())
	post(late, "late", 422)
	post(h.inClass("o3", h.zone(), h.at+3*time.Minute.Milliseconds()), "early", 422)
	zone := h.zone()
	board := h.board
	h.board = first.Update.Board
	named := h.command("o4", "a")
	h.board = board
	h.applier.now = func() time.Time { return time.UnixMilli(h.at).Add(3 * time.Minute) }
	post(named, "late", 422)
	again := h.do1(t, h.inClass("o1", zone, h.at))
	equal(t, "repeat", []any{again.Duplicate, again.Update}, []any{true, first.Update})
	post(strings.Replace(h.inClass("o1", zone, h.at), `"a"`, `"b"`, 1), "order_conflict", 409)
	h.board = first.Update.Board
	equal(t, "scores", h.scores(t), map[string]float64{"a": 1})
	equal(t, "late", testutil.ToFloat64(h.metrics.refused.WithLabelValues("late")), 2.0)
	must(t, h.client.Set(t.Context(), h.opts.Names.MetaKey(h.board), "of another version", 0).Err())
	post(h.inClass("o1", zone, h.at), "wrong_type", 409)
}

// A record arrives when the broker appends it, however long Redis is away afterwards;
// where the sender chooses the record's time, when it is polled. A late repeat in the
// batch of the first one is a repeat.
func TestLateRecords(t *testing.T) {
	var log strings.Builder
	h := quiet(t, func(o *Options) { withClasses(t)(o); o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	begin := time.UnixMilli(h.at).Truncate(time.Minute) // of a period
	ended := begin.Add(-time.Minute)
	topic := "commands"
	record := func(order string, kind kafka.TimestampType, at time.Time) *kafka.Message {
		return &kafka.Message{Value: []byte(h.inClass(order, h.zone(), ended.UnixMilli())), Timestamp: at, TimestampType: kind,
			TopicPartition: kafka.TopicPartition{Topic: &topic}}
	}
	appended := kafka.TimestampLogAppendTime
	done, err := h.applyBatch(t.Context(), &batch{round: noRewinds, polled: begin.Add(time.Hour), records: []*kafka.Message{
		record("o1", appended, begin.Add(6*time.Second)), // refused: the grace is over
		record("o2", appended, begin.Add(5*time.Second)),
		record("o2", appended, begin.Add(time.Minute)),
		record("o3", kafka.TimestampCreateTime, ended),   // refused: polled later
		record("o4", kafka.TimestampNotAvailable, ended), // refused: likewise
	}})
	must(t, err)
	for result, n := range map[string]int{"applied": 1, "duplicate": 1, "refused": 3} {
		equal(t, result, h.count(result), n)
	}
	equal(t, "late", testutil.ToFloat64(h.metrics.refused.WithLabelValues("late")), 3.0)
	kept := 0
	for _, m := range done.messages {
		if m.topic == h.opts.Names.Refused && strings.Contains(string(m.value), `"reason":"late"`) {
			kept++
		}
	}
	equal(t, "kept", kept, 3)
	early, err := h.applyBatch(t.Context(), &batch{round: noRewinds, polled: ended.Add(-2 * time.Minute), records: []*kafka.Message{record("o5", kafka.TimestampCreateTime, ended)}})
	must(t, err)
	equal(t, "warnings of the topic", strings.Count(log.String(), "LogAppendTime"), 1)
	equal(t, "early", []any{len(early.messages), testutil.ToFloat64(h.metrics.refused.WithLabelValues("early"))}, []any{1, 1.0})
}

// A durable command is judged by its record's time alone, so that it is decided alike whenever it is read: not by the writer that takes
// the post, nor by the one that reads the record.
func TestRecordsTimeDecides(t *testing.T) {
	t.Parallel()
	d := newDurable(t, testkit.StartRedis(t, servers.RedisOptions{}), testkit.Kfake(t).Addr())
	for i, c := range []struct {
		appended, at time.Duration // from now
		want         string
	}{
		{-10 * time.Minute, -9*time.Minute + time.Second, "refused"}, // more than a minute after its record
		{-10 * time.Minute, -9*time.Minute - time.Second, "applied"},
		{5 * time.Second, 64 * time.Second, "applied"}, // the broker's clock is ahead
		{-5 * time.Second, 56 * time.Second, "refused"},
	} {
		before := d.count(c.want)
		now := time.Now()
		command := fmt.Sprintf(`{"order":"o%d","board":%q,"member":"m","op":"incr","delta":1,"at":%d}`, i, d.board, now.Add(c.at).UnixMilli())
		_, err := d.applyBatch(t.Context(), &batch{round: noRewinds, polled: now, records: []*kafka.Message{record(command, kafka.TimestampLogAppendTime, now.Add(c.appended).UnixMilli())}})
		must(t, err)
		equal(t, fmt.Sprint(c.appended, c.at), d.count(c.want)-before, 1)
	}
	equal(t, "early", testutil.ToFloat64(d.metrics.refused.WithLabelValues("early")), 2.0)
}

// A post that comes in time, and is appended when the grace is over, as Kafka was slow, is late: who reads its record after a loss
// finds it so.
func TestPostIsAppendedTooLate(t *testing.T) {
	t.Parallel()
	d, post, end := newGraceful(t, testkit.StartRedis(t, servers.RedisOptions{}))
	d.run(t)
	status, answer := post(0)
	equal(t, answer, status, 200)
	grace := time.Since(end) + time.Second
	d.opts.Tiers.(graceOf).set(t, grace)
	d.topics.mu.Lock() // a producer waits for it
	told := make(chan string, 1)
	go func() {
		_, answer := post(1)
		told <- answer
	}()
	testkit.Eventually(t, testTimeout, func() error {
		if left := grace - time.Since(end); left >= 0 {
			return fmt.Errorf("%v are left", left)
		}
		return nil
	})
	d.topics.mu.Unlock()
	if answer := <-told; !strings.Contains(answer, `"code":"late"`) {
		t.Error(answer)
	}
	equal(t, "scores", d.scores(t), map[string]float64{"m0": 1})
}

// A marker changes nothing and is not refused; its offset is committed.
func TestMarkersArePassedOver(t *testing.T) {
	h := quiet(t, nil)
	topic := "commands"
	record := func(value string) *kafka.Message {
		return &kafka.Message{Value: []byte(value), TopicPartition: kafka.TopicPartition{Topic: &topic}}
	}
	marker := string(wire.Marker())
	done, err := h.applyBatch(t.Context(), &batch{round: noRewinds, polled: time.Now(), ends: offsets{0: 3},
		records: []*kafka.Message{record(marker), record(h.command("o1", "a")), record(marker)}})
	must(t, err)
	equal(t, "applied, refused, messages, to commit", []any{h.count("applied"), h.count("refused"), len(done.messages), done.ends},
		[]any{1, 0, 0, offsets{0: 3}})
}

// A board with a period is in the index of ends before it is born; one without is not.
func TestBoardIsIndexedBeforeItsBirth(t *testing.T) {
	h := quiet(t, withClasses(t))
	indexed := func() []redis.Z {
		return h.client.ZRangeWithScores(t.Context(), h.opts.Names.Ends, 0, -1).Val()
	}
	prepare := func(b rankcache.BoardID, r rules) {
		t.Helper()
		must(t, h.applier.prepare(t.Context(), b, r, ""))
	}
	prepare(h.board, rules{})
	equal(t, "without a period", len(indexed()), 0)
	b := h.board + "x"
	h.client.Set(t.Context(), h.opts.Names.MetaKey(b), "of another version", 0)
	prepare(b, rules{end: 1000, expires: 1 << 60})
	prepare(b, rules{end: 2000, expires: 1 << 60}) // the first end stays
	equal(t, "index", indexed(), []redis.Z{{Score: 1000, Member: string(b)}})
}

// The command topic that the writer makes has the broker's clock in its records.
func TestCommandTopicHasTheBrokersTime(t *testing.T) {
	h := newFixture(t, testkit.Kfake(t).Addr(), nil)
	h.makeCommandTopicFor(t)
	equal(t, "type", topicConfig(t, h.kafka, h.opts.Names.Commands)["message.timestamp.type"], "LogAppendTime")
}

// A real broker puts its own time into the records of that topic.
func TestBrokerSetsTheTimeOfCommands(t *testing.T) {
	h := newFixture(t, testkit.RealKafka(t), nil)
	h.produce(t, h.command("o1", "a"))
	const appended = 1 // LogAppendTime in a record's attributes
	equal(t, "type", testkit.Records(t, h.kafka, h.opts.Names.Commands, 1)[0].Attrs.TimestampType(), int8(appended))
}

// periodRules are those of a board whose period ends in a minute.
func (h *fixture) periodRules() rules {
	const minute = 60_000
	return rules{end: h.at + minute, over: h.at + minute + 5000, expires: h.at + 60*minute, orderLife: 2 * time.Hour}
}

func (h *fixture) applyOne(t *testing.T, r rules, c Command) *job {
	t.Helper()
	c.Board = h.board
	if c.At == 0 {
		c.At = h.at
	}
	j := &job{Command: &c, rules: r}
	must(t, h.applier.apply(t.Context(), []*job{j}))
	return j
}

// A board of a class gets the end of its period and its class's order life at birth, and
// all its keys one expiry, also if its sorted set was there before.
func TestBirthInAClass(t *testing.T) {
	for _, there := range []bool{false, true} {
		h := quiet(t, func(o *Options) { o.BoardLife = time.Minute })
		if there {
			h.zadd(t, 3)
		}
		r := h.periodRules()
		h.applyOne(t, r, Command{Member: "m", Op: wire.OpIncr, Number: 1, OrderID: "o1"})
		m := h.meta(t)
		equal(t, "meta", []any{m.End, m.Expires, m.OrderLife}, []any{uint64(r.end), uint64(r.expires), uint32(7200)})
		for _, key := range h.applier.allKeys(h.board, &rules{}) {
			equal(t, key, h.client.PExpireTime(t.Context(), key).Val().Milliseconds(), r.expires)
		}
	}
}

// A closed board answers repeats and takes nothing new, whatever was changed past it.
func TestClosedBoard(t *testing.T) {
	h := quiet(t, nil)
	incr := Command{Member: "m", Op: wire.OpIncr, Number: 1, OrderID: "o1"}
	first := h.applyOne(t, h.periodRules(), incr)
	for _, life := range []wire.Life{wire.LifeClosing, wire.LifeClosed, wire.LifeFinal} {
		m := h.meta(t)
		m.Life = life
		must(t, h.client.Set(t.Context(), h.opts.Names.MetaKey(h.board), wire.AppendMeta(nil, &m), redis.KeepTTL).Err())
		again := h.applyOne(t, h.periodRules(), incr)
		equal(t, "repeat", []any{again.Duplicate, again.Update}, []any{true, first.Update})
		next := incr
		next.OrderID, next.Number = "closing", 0
		if life == wire.LifeClosing {
			h.applyOne(t, h.periodRules(), next)
			continue
		}
		for _, past := range []int{0, 1} {
			must(t, h.client.ZAdd(t.Context(), string(h.board), redis.Z{Member: "m", Score: 1}, redis.Z{Member: "past", Score: float64(past)}).Err())
			m = h.meta(t)
			status, answer := h.post(t, h.opCommand("incr", fmt.Sprint("new", life), "m", "delta", 1))
			checkProblem(t, "closed", status, answer, httpserve.Problem{Status: 422, Code: "ended"})
			equal(t, "meta", h.meta(t), m)
		}
	}
}

// A repeat of a board that has expired makes none of its keys again, though the first one
// came in time; nor does its update go to a topic that may be deleted.
func TestRepeatOfAnExpiredBoard(t *testing.T) {
	h := quiet(t, func(o *Options) { o.PublishAll = true })
	r, incr := h.periodRules(), Command{Member: "m", Op: wire.OpIncr, Number: 1, OrderID: "o1"}
	j := h.applyOne(t, r, incr)
	j.Duplicate = true
	for _, at := range []int64{r.over, r.expires - 1, r.expires} {
		h.at0(at)
		published := h.appendUpdate(nil, j)
		equal(t, fmt.Sprint("published ", at-r.expires), len(published) == 1, at < r.expires)
	}
	must(t, h.client.Del(t.Context(), append(h.applier.allKeys(h.board, &rules{}), h.opts.Names.Ends)...).Err()) // they expire, and the controller takes it out
	h.at0(r.expires)
	again := h.applyOne(t, r, incr)
	if again.Refusal == nil || again.Refusal.Reason != "ended" {
		t.Errorf("outcome %+v", again.Outcome)
	}
	equal(t, "keys", h.client.Keys(t.Context(), "*"+string(h.board)+"*").Val(), []string{})
	h.at0(r.expires - 1) // was held up by an outage: not lost
	equal(t, "in time", h.applyOne(t, r, incr).Update.Seq, uint64(1))
}
