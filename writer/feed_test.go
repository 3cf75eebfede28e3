package writer

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"rankcache"
	"rankcache/internal/httpserve"
	"rankcache/internal/testkit"
	"rankcache/internal/testkit/apitest"
	"rankcache/rooms"
	"rankcache/sidecar"
)

// feedingClasses are fed by class half, as far down as year.
var feedingClasses = []string{"half", "day", "week", "month", "year", "total"}

// feeding has classes of which half feeds the others, day some of them. What a repeat after a
// change of half hours would be does not matter here, so the grace is long.
func feeding(t testing.TB) func(*Options) {
	t.Helper()
	file, err := rooms.Parse([]byte(`
classes:
  - {name: half, board: "half:{zone}:{host}:{period}", period: 30m, grace: 1h, ops: [incr], feeds: [day, total]}
  - {name: day, board: "day:{zone}:{period}", period: day, grace: 1h, ops: [incr], feeds: [week, month, year]}
  - {name: week, board: "week:{zone}:{period}", period: week, grace: 1h, ops: [incr]}
  - {name: month, board: "month:{zone}:{period}", period: month, grace: 1h, ops: [incr], feeds: [year]}
  - {name: year, board: "year:{zone}:{period}", period: year, grace: 1h, ops: [incr]}
  - {name: total, board: "total:{zone}", period: none, ops: [incr], ledger: true}
`))
	must(t, err)
	return func(o *Options) { o.Tiers = tiers{all: rooms.ModeSuperHot, file: file} }
}

// fedBoards are the boards that an increment of class half changes, in the sequence of
// feedingClasses.
func (h *fixture) fedBoards(t testing.TB, zone string, at int64) (boards []rankcache.BoardID) {
	t.Helper()
	for _, name := range feedingClasses {
		kind := h.opts.Tiers.File().Class(name)
		dims := map[string]string{"zone": zone, "host": "88"}
		if name != "half" {
			delete(dims, "host")
		}
		b, err := kind.At(dims, time.UnixMilli(at))
		must(t, err)
		boards = append(boards, b.ID)
	}
	return boards
}

func inHalf(order, zone, member string, delta int, at int64) string {
	return fmt.Sprintf(`{"order":%q,"class":"half","dims":{"zone":%q,"host":"88"},"member":%q,"op":"incr","delta":%d,"at":%d}`, order, zone, member, delta, at)
}

// checkFed wants every board of the zone to have the scores, by n changes.
func (h *fixture) checkFed(t testing.TB, zone string, n uint64, want map[string]float64) {
	t.Helper()
	for _, board := range h.fedBoards(t, zone, h.at) {
		of := *h
		of.board = board
		equal(t, string(board), []any{of.scores(t), of.meta(t).Seq}, []any{want, n})
	}
}

// One increment changes the half hour's board and those that it feeds, whichever way it
// comes, each exactly once under one order id, and every board's update is published.
func TestFeeds(t *testing.T) {
	t.Parallel()
	h := newFixture(t, testkit.Kfake(t).Addr(), feeding(t))
	h.run(t)
	zone := h.zone()
	status, answer := h.post(t, inHalf("o1", zone, "a", 5, h.at))
	equal(t, answer, status, 200)
	boards := h.fedBoards(t, zone, h.at)
	var got struct {
		Board rankcache.BoardID
		Score float64
		Seq   int
		Fed   []struct {
			Board rankcache.BoardID
			Score float64
			Seq   int
		}
	}
	must(t, json.Unmarshal([]byte(answer), &got))
	equal(t, "first board", []any{got.Board, got.Score, got.Seq}, []any{boards[0], 5.0, 1})
	equal(t, "fed boards", len(got.Fed), 5)
	for i, fed := range got.Fed { // as the lists have them: day with what it feeds, total
		equal(t, "fed", []any{fed.Board, fed.Score, fed.Seq}, []any{boards[i+1], 5.0, 1})
	}

	h.produce(t, inHalf("o2", zone, "b", 7, h.at), inHalf("o1", zone, "a", 5, h.at))
	byID := strings.Replace(inHalf("o3", zone, "a", 1, 1), `"class":"half","dims":{"zone":"`+zone+`","host":"88"}`, fmt.Sprintf(`"board":%q`, boards[0]), 1)
	h.post(t, strings.Replace(byID, `"at":1}`, fmt.Sprintf(`"at":%d}`, h.at), 1))
	h.await(t, "applied", 3)
	h.await(t, "duplicate", 3) // two posts as the topic has them, and the repeat
	h.checkFed(t, zone, 3, map[string]float64{"a": 6, "b": 7})
	for _, board := range boards {
		of := *h
		of.board = board
		testkit.Eventually(t, testTimeout, func() error { return of.checkPublished(t, 3, map[string]float64{"a": 6, "b": 7}) })
	}
	equal(t, "fed changes", testutil.ToFloat64(h.metrics.fed.WithLabelValues("applied")), 15.0)
}

// What the first board refuses feeds nothing; what a fed board refuses, the others take, and it is kept.
func TestFeedRefusals(t *testing.T) {
	t.Parallel()
	h := newFixture(t, testkit.Kfake(t).Addr(), feeding(t))
	zone := h.zone()
	boards := h.fedBoards(t, zone, h.at)
	file := h.opts.Tiers.File()
	h.opts.Tiers = tiers{all: rooms.ModeHot, file: file, boards: map[rankcache.BoardID]rooms.Mode{boards[2]: rooms.ModeBlocked}}
	h = h.restarted(t)
	h.run(t)
	status, answer := h.post(t, inHalf("o1", zone, "a", 5, h.at))
	if status != 200 || !strings.Contains(answer, fmt.Sprintf(`{"board":%q,"refused":"blocked"}`, boards[2])) {
		t.Error(status, answer)
	}
	doc, err := apitest.Load(sidecar.OpenAPI())
	must(t, err)
	must(t, doc.Check(apitest.Exchange{Method: http.MethodPost, Target: "/v1/scores", RequestHeader: http.Header{"Content-Type": {"application/json"}},
		RequestBody: inHalf("o1", zone, "a", 5, h.at), Status: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: answer}))
	status, answer = h.post(t, inHalf("o1", zone, "a", 6, h.at))
	checkProblem(t, "conflict", status, answer, httpserve.Problem{Status: 409, Code: "order_conflict"})
	status, answer = h.post(t, inHalf("o2", zone, "a", 6, h.at-int64(24*time.Hour/time.Millisecond)))
	checkProblem(t, "late", status, answer, httpserve.Problem{Status: 422, Code: "late"})
	for i, board := range boards {
		of := *h
		of.board = board
		want := map[string]float64{"a": 5}
		if i == 2 {
			want = map[string]float64{}
		}
		equal(t, string(board), of.scores(t), want)
	}
	var kept []string
	for _, r := range testkit.Records(t, h.kafka, h.opts.Names.Refused, 3) {
		var record refusedRecord
		must(t, json.Unmarshal(r.Value, &record))
		kept = append(kept, fmt.Sprint(record.Reason, " ", record.Board == boards[2]))
	}
	count := map[string]int{}
	for _, k := range kept {
		count[k]++
	}
	equal(t, "kept", count, map[string]int{"blocked true": 1, "order_conflict false": 1, "late false": 1})
}

// A repeat that comes after its period completes what a crash has left out, though it is
// answered from the record of its order.
func TestLateRepeatCompletesFeeds(t *testing.T) {
	h := newFixture(t, testkit.Kfake(t).Addr(), feeding(t))
	zone := h.zone()
	c, err := DecodeCommand([]byte(inHalf("o1", zone, "a", 5, h.at)), h.at)
	must(t, err)
	j := &job{Command: c}
	j.rules, j.outside, err = resolve(c, h.opts.Tiers.File(), time.UnixMilli(h.at))
	must(t, err)
	judge(t, h.Writer)
	must(t, h.applier.apply(t.Context(), []*job{j})) // and the crash
	late := time.UnixMilli(h.at).Add(100 * time.Minute)
	repeat, err := h.accept([]byte(inHalf("o1", zone, "a", 5, h.at)), h.at, late)
	must(t, err)
	if repeat.outside == nil {
		t.Fatal("the repeat is in time")
	}
	_, err = h.applyJobs(t.Context(), h.rewinds.round.Load(), []*job{repeat})
	must(t, err)
	h.checkFed(t, zone, 1, map[string]float64{"a": 5})
}

// Without Kafka a post of a class with feeds, or with a ledger, changes nothing.
func TestFeedsNeedTheTopicFirst(t *testing.T) {
	h := newFixture(t, testkit.Kfake(t).Addr(), feeding(t))
	zone := h.zone()
	total := strings.Replace(strings.Replace(inHalf("o1", zone, "a", 5, h.at), `"half"`, `"total"`, 1), `,"host":"88"`, "", 1)
	for _, body := range []string{inHalf("o1", zone, "a", 5, h.at), total} {
		status, answer := h.post(t, body)
		checkProblem(t, "post", status, answer, httpserve.Problem{Status: 503, Code: "kafka_unavailable"})
	}
	equal(t, "keys", h.client.Keys(t.Context(), "*"+zone+"*").Val(), []string{})
}

// What a command becomes in the command topic is the same command.
func TestEncodeCommand(t *testing.T) {
	for _, data := range []string{
		inHalf("o\"1<&>\u2028", "7", "mé", 5, 7),
		`{"order":"o","board":"1_2_3","room":"88","member":"m","op":"set","score":-0.1,"at":9}`,
		`{"order":"o","board":"1_2_3","member":"m","op":"delete"}`,
		`{"rank_id":"1_2_3","inviter_uid":"5","invitee_uid":"6"}`,
	} {
		want, err := DecodeCommand([]byte(data), 1_700_000_000_000)
		must(t, err)
		got, err := DecodeCommand(encodeCommand(want), 1)
		must(t, err)
		equal(t, data, got, want)
	}
}
