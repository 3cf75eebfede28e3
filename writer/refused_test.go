package writer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kmsg"

	"rankcache"
	"rankcache/internal/httpserve"
	"rankcache/internal/testkit"
	"rankcache/rooms"
)

// Each refused command, from Kafka and posted, is written to the topic of refused
// commands, which is made when it is first needed.
func TestRefusedCommandsArePublished(t *testing.T) {
	t.Parallel()
	h := newFixture(t, testkit.Kfake(t).Addr(), func(o *Options) {
		o.Tiers = tiers{all: rooms.ModeSuperHot, rooms: map[string]rooms.Mode{"88": rooms.ModeBlocked}}
	})
	h.run(t)
	with := func(order, old, replacement string) string {
		return strings.Replace(h.command(order, "a"), old, replacement, 1)
	}
	at := func(ago time.Duration) string { return fmt.Sprint(h.at - ago.Milliseconds()) }
	good := h.command("o1", "a")
	old, early := with("o2", fmt.Sprint(h.at), at(3*time.Hour)), with("o3", fmt.Sprint(h.at), at(-time.Hour))
	conflict, blocked := with("o1", `"delta":1`, `"delta":2`), with("o4", "{", `{"room":"88",`)
	long := `{"x":"` + strings.Repeat("x", MaxCommandLen) + `"}`
	h.produce(t, good, old, early, conflict, blocked, "no command", long)
	h.await(t, "refused", 6)
	status, answer := h.post(t, with("o5", fmt.Sprint(h.at), at(-2*time.Minute)))
	checkProblem(t, "early", status, answer, httpserve.Problem{Status: 422, Code: "early"})
	status, answer = h.post(t, with("o5", fmt.Sprint(h.at), "5"))
	checkProblem(t, "too old", status, answer, httpserve.Problem{Status: 422, Code: "too_old"})
	status, answer = h.post(t, conflict)
	checkProblem(t, "conflict", status, answer, httpserve.Problem{Status: 409, Code: "order_conflict"})

	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	kafka := func(reason, command string) refusedRecord {
		return refusedRecord{V: 1, Reason: reason, Board: h.board, Source: commandSource{Topic: h.opts.Names.Commands}, Command: raw(command)}
	}
	post := func(reason, command string) refusedRecord {
		return refusedRecord{V: 1, Reason: reason, Board: h.board, Source: commandSource{HTTP: true}, Command: raw(command)}
	}
	bad, tooLong := kafka("invalid", ""), kafka("invalid", "")
	bad.Board, tooLong.Board, bad.Command, tooLong.Command = "", "", nil, nil
	bad.Base64, tooLong.Base64, tooLong.Truncated = []byte("no command"), []byte(long[:MaxCommandLen]), true
	blockedRecord := kafka("blocked", blocked)
	want := map[string]refusedRecord{}
	for _, r := range []refusedRecord{kafka("too_old", old), kafka("early", early), kafka("order_conflict", conflict), blockedRecord, bad, tooLong,
		post("early", with("o5", fmt.Sprint(h.at), at(-2*time.Minute))), post("too_old", with("o5", fmt.Sprint(h.at), "5")), post("order_conflict", conflict)} {
		want[fmt.Sprint(r.Reason, r.Source.HTTP, len(r.Base64))] = r
	}
	got := map[string]refusedRecord{}
	for _, record := range testkit.Records(t, h.kafka, h.opts.Names.Refused, 9) {
		var r refusedRecord
		must(t, json.Unmarshal(record.Value, &r))
		if r.Detail == "" || r.DecidedAt < h.at || !r.Source.HTTP && (r.Source.Offset == nil || r.Source.Partition == nil) || string(record.Key) != string(r.Board) {
			t.Errorf("key %s: %s", record.Key, record.Value)
		}
		r.Source.Offset, r.Source.Partition = nil, nil
		got[fmt.Sprint(r.Reason, r.Source.HTTP, len(r.Base64))] = r
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(refusedRecord{}, "Detail", "DecidedAt")); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
	equal(t, "board", h.scores(t), map[string]float64{"a": 1})
	for reason, n := range map[string]float64{"too_old": 2, "early": 2, "order_conflict": 2, "blocked": 1, "json": 1, "size": 1} {
		equal(t, reason, testutil.ToFloat64(h.metrics.refused.WithLabelValues(reason)), n)
	}
	equal(t, "partitions", partitions(t, h.kafka, h.opts.Names.Refused), 2)
	if got := topicConfig(t, h.kafka, h.opts.Names.Refused); got["retention.ms"] == "-1" {
		t.Error("refused commands are kept for ever")
	}
}

// Without Kafka a refused post is answered anyway.
func TestRefusedPostWithoutKafka(t *testing.T) {
	h := quiet(t, func(o *Options) {
		o.Tiers = tiers{boards: map[rankcache.BoardID]rooms.Mode{"blocked": rooms.ModeBlocked}}
	})
	status, answer := h.post(t, strings.Replace(h.command("o", "a"), string(h.board), "blocked", 1))
	checkProblem(t, "post", status, answer, httpserve.Problem{Status: 403, Code: "blocked"})
	h.posts.awaitRefused()
	equal(t, "lost", testutil.ToFloat64(h.metrics.refusedLost), 1.0)
}

// A refused post is answered while Kafka has not taken the record of it, which it does later.
func TestRefusedPostDoesNotWaitForKafka(t *testing.T) {
	t.Parallel()
	broker := testkit.Kfake(t)
	h := newFixture(t, broker.Addr(), func(o *Options) {
		o.Tiers = tiers{boards: map[rankcache.BoardID]rooms.Mode{"blocked": rooms.ModeBlocked}}
	})
	stop := h.run(t)
	testkit.Eventually(t, testTimeout, func() error {
		if h.producer.Load() == nil {
			return errors.New("no producer yet")
		}
		return nil
	})
	hold := make(chan struct{})
	broker.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		<-hold
		return nil, nil, false
	})
	status, answer := h.post(t, strings.Replace(h.command("o", "a"), string(h.board), "blocked", 1))
	checkProblem(t, "post", status, answer, httpserve.Problem{Status: 403, Code: "blocked"})
	equal(t, "lost", testutil.ToFloat64(h.metrics.refusedLost), 0.0)
	close(hold)
	stop()
}
