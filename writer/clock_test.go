package writer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"rankcache/internal/httpserve"
	"rankcache/internal/redisclock"
	"rankcache/internal/testkit"
)

// off has the writer's machine live at another time than Redis.
func (h *fixture) off(by time.Duration) {
	h.applier.clock.Local = func() time.Time { return time.Now().Add(by) }
}

// record is a command of the topic, dated by its sender or by the broker.
func record(value string, by kafka.TimestampType, at int64) *kafka.Message {
	topic := "commands"
	return &kafka.Message{Value: []byte(value), TimestampType: by, Timestamp: time.UnixMilli(at), TopicPartition: kafka.TopicPartition{Topic: &topic}}
}

// A writer whose clock differs by more than a class allows puts nothing into its boards and
// refuses nothing for good; within that it judges by Redis's clock.
func TestWrongClockJudgesNoPost(t *testing.T) {
	h := quiet(t, withClasses(t)) // grace 5 s
	wrongClock := httpserve.Problem{Status: 503, Code: "wrong_clock"}
	h.at0(h.at - 3*time.Minute.Milliseconds())
	ended := h.inClass("ended", h.zone(), h.at-3*time.Minute.Milliseconds())
	first := h.do1(t, ended) // so that its board is there
	for _, by := range []time.Duration{-3 * time.Minute, 3 * time.Minute, -7 * time.Second, 7 * time.Second} {
		wrong := h.restarted(t)
		wrong.off(by)
		for i, at := range []int64{h.at - 3*time.Minute.Milliseconds(), h.at, h.at + 3*time.Minute.Milliseconds()} {
			command := h.inClass(fmt.Sprint("o", by, i), h.zone(), at)
			status, answer := wrong.post(t, command)
			checkProblem(t, by.String(), status, answer, wrongClock)
		}
		if err := wrong.ClockError(); err == nil {
			t.Errorf("%v: the writer knows nothing of it", by)
		}
		equal(t, "refused", testutil.CollectAndCount(wrong.metrics.refused), 0)
	}
	zone := h.zone()
	h.board = first.Update.Board
	equal(t, "scores", h.scores(t), map[string]float64{"a": 1})

	near := h.restarted(t)
	near.off(-5 * time.Second)
	if got, real := near.applier.now(), time.Now(); near.ClockError() != nil || got.Sub(real).Abs() < 4*time.Second {
		t.Errorf("before a comparison: %v at %v, %v", got, real, near.ClockError())
	}
	equal(t, "in time", near.do1(t, h.inClass("near", zone, time.Now().UnixMilli())).Duplicate, false)
	if got, real := near.applier.now(), time.Now(); near.ClockError() != nil || got.Sub(real).Abs() > 2*time.Second {
		t.Errorf("it judges by %v at %v, %v", got, real, near.ClockError())
	}
}

// Boards without a period need the clock within a minute, as orders are forgotten by it.
func TestWrongClockGivesNoTurn(t *testing.T) {
	h := quiet(t, nil)
	for _, by := range []time.Duration{24 * time.Hour, -time.Hour} {
		wrong := h.restarted(t)
		wrong.off(by)
		status, answer := wrong.post(t, h.opCommand("incr", "o", "m", "delta", 1))
		checkProblem(t, by.String(), status, answer, httpserve.Problem{Status: 503, Code: "wrong_clock"})
		equal(t, "posts", testutil.ToFloat64(wrong.metrics.posts.WithLabelValues("503", "wrong_clock")), 1.0)
		if err := wrong.applier.prepare(t.Context(), h.board, rules{}, ""); !isWrong(err) {
			t.Errorf("%v: prepared: %v", by, err)
		}
	}
	equal(t, "keys", h.client.Keys(t.Context(), "*"+string(h.board)+"*").Val(), []string{})
	near := h.restarted(t)
	near.off(30 * time.Second)
	equal(t, "half a minute", near.do1(t, h.opCommand("incr", "o", "m", "delta", 1)).Update.Seq, uint64(1))
}

func isWrong(err error) bool {
	_, is := errors.AsType[*redisclock.Wrong](err)
	return is
}

// A command of the topic waits until the clock is right again, and is then judged by when it
// came. What the broker dates needs no clock of ours but for its orders.
func TestCommandsWaitForTheClock(t *testing.T) {
	h := quiet(t, withClasses(t))
	h.off(-3 * time.Minute)
	polled := time.Now().Add(-3 * time.Minute) // as the consumer notes it
	mine := &batch{round: noRewinds, polled: polled, records: []*kafka.Message{record(h.inClass("o1", h.zone(), h.at), kafka.TimestampCreateTime, h.at)}}
	ctx, stop := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	waiting.Go(func() { _, _ = h.applyBatch(ctx, mine) })
	defer waiting.Wait()
	defer stop()
	testkit.Eventually(t, testTimeout, func() error {
		if testutil.ToFloat64(h.metrics.retries.WithLabelValues("clock")) < 2 {
			return errors.New("it does not wait")
		}
		return nil
	})
	equal(t, "applied, refused", []int{h.count("applied"), h.count("refused")}, []int{0, 0})
	right := h.restarted(t) // the clock is set right
	_, err := right.applyBatch(t.Context(), &batch{round: noRewinds, polled: time.Now(), records: mine.records})
	must(t, err)
	equal(t, "applied, refused", []int{right.count("applied"), right.count("refused")}, []int{1, 0})

	dated := h.restarted(t)
	dated.off(30 * time.Second)
	_, err = dated.applyBatch(t.Context(), &batch{round: noRewinds, polled: time.Now(), records: []*kafka.Message{
		record(h.inClass("o2", h.zone(), h.at), kafka.TimestampLogAppendTime, h.at),
		record(h.inClass("o3", h.zone(), h.at-3*time.Minute.Milliseconds()), kafka.TimestampLogAppendTime, h.at)}})
	must(t, err)
	equal(t, "applied, refused", []int{dated.count("applied"), dated.count("refused")}, []int{1, 1})
}

// Before something is refused for good the clocks are compared, however well they agreed a
// moment ago: another server with another clock may have become the master.
func TestClocksAreComparedBeforeARefusal(t *testing.T) {
	h := quiet(t, withClasses(t))
	h.do1(t, h.inClass("o1", h.zone(), h.at))
	j, err := h.accept([]byte(h.inClass("o2", h.zone(), h.at)), h.at, time.UnixMilli(h.at).Add(3*time.Minute))
	must(t, err)
	h.off(3 * time.Minute)
	if err := h.applier.answerOutside(t.Context(), []*job{j}); !isWrong(err) || j.done {
		t.Errorf("refused with %v, done %v", err, j.done)
	}
	h.applier.clock.Local = time.Now
	must(t, h.applier.clock.Compare(t.Context(), 0))
	must(t, h.applier.answerOutside(t.Context(), []*job{j}))
	equal(t, "refused", j.Refusal.Reason, "late")
}

// In a cluster any master tells the time.
func TestClockOfACluster(t *testing.T) {
	cluster, _, _ := clusterOfTwo(t)
	h := quiet(t, func(o *Options) { withClasses(t)(o); o.Redis = cluster })
	h.client = redisClient(t, cluster.Options().Addrs[0])
	equal(t, "applied", h.do1(t, h.inClass("o1", h.zone(), h.at)).Duplicate, false)
	h = h.restarted(t)
	h.off(time.Minute)
	status, answer := h.post(t, h.inClass("o2", h.zone(), h.at))
	checkProblem(t, "a minute", status, answer, httpserve.Problem{Status: 503, Code: "wrong_clock"})
}
