package writer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/localboard"
	"rankcache/rooms"
	"rankcache/wire"
)

// move posts a hide or restore, and returns the answer.
func (h *fixture) move(t *testing.T, op, body string) (status int, answer string) {
	t.Helper()
	req := httptest.NewRequest(http.MethodPost, "/v1/members:"+op, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	h.Handler().ServeHTTP(rec, req)
	return rec.Code, strings.TrimSpace(rec.Body.String())
}

// moved posts one for a member of the board, which is taken.
func (h *fixture) moved(t *testing.T, op, member string) (answer struct {
	Order  string
	Score  *float64
	Hidden bool
	Seq    uint64
}) {
	t.Helper()
	status, text := h.move(t, op, fmt.Sprintf(`{"board":%q,"member":%q,"reason":"bot"}`, h.board, member))
	if status != http.StatusOK {
		t.Fatal(status, text)
	}
	must(t, json.Unmarshal([]byte(text), &answer))
	return answer
}

// A hidden member is not on the board, its points go on counting, and it returns with them; a member that is hidden ahead
// is never seen.
func TestHideAndRestore(t *testing.T) {
	h := quiet(t, nil)
	h.do1(t, h.opCommand("incr", "o1", "a", "delta", 5))
	h.do1(t, h.opCommand("incr", "o2", "b", "delta", 3))
	hidden := h.moved(t, "hide", "a")
	equal(t, "hidden", []any{*hidden.Score, hidden.Hidden, hidden.Seq}, []any{5.0, true, uint64(3)})
	status, answer := h.post(t, h.opCommand("incr", "o3", "a", "delta", 2))
	if status != 200 || !strings.Contains(answer, `"score":7,`) || !strings.Contains(answer, `"hidden":true,`) {
		t.Error(status, answer)
	}
	equal(t, "ahead", h.moved(t, "hide", "c").Score, (*float64)(nil))
	h.do1(t, h.opCommand("incr", "o4", "c", "delta", 9))
	equal(t, "board", h.scores(t), map[string]float64{"b": 3})
	h.checkSum(t)
	equal(t, "a is back with", *h.moved(t, "restore", "a").Score, 7.0)
	h.do1(t, h.opCommand("incr", "o5", "a", "delta", 1))
	h.do1(t, h.opCommand("delete", "o6", "c", "score", 0))
	equal(t, "c is back", h.moved(t, "restore", "c").Score, (*float64)(nil))
	equal(t, "board", h.scores(t), map[string]float64{"a": 8, "b": 3})
	h.checkSum(t)
	equal(t, "meta", h.meta(t).HasHidden, true)
}

// The hash of hidden members is deleted by hand: who was hidden on the board alone is not known any more, which is told at the next
// change; whom all boards of the class hide is hidden again.
func TestHiddenMembersAreDeleted(t *testing.T) {
	t.Parallel()
	day, boardOf := hiding(t)
	h := boardOf("1")
	var log bytes.Buffer
	h.applier.log = slog.New(slog.NewTextHandler(&log, nil))
	for _, m := range []string{"a", "b", "c"} {
		h.do1(t, h.opCommand("incr", "o-"+m, m, "delta", 5))
	}
	h.moved(t, "hide", "a")
	day.hideAll(t, "hide", "b")
	equal(t, "board", h.scores(t), map[string]float64{"c": 5})
	h.client.Del(t.Context(), h.opts.Names.CompanionKey(h.board, wire.Hidden))
	h.do1(t, h.opCommand("incr", "o1", "a", "delta", 1))
	h.do1(t, h.opCommand("incr", "o2", "b", "delta", 1))
	equal(t, "board", h.scores(t), map[string]float64{"a": 1, "c": 5})
	h.checkSum(t)
	if n := strings.Count(log.String(), "hidden members were deleted"); n != 1 || !strings.Contains(log.String(), "board="+string(h.board)) {
		t.Errorf("told %d times, want once: %s", n, log.String())
	}
	equal(t, "metric", testutil.ToFloat64(h.applier.metrics.hiddenLost), 1.0)
}

// The hash of a closed board is deleted: its result stands, also where all boards of the class have hidden another member since.
func TestHiddenMembersOfAClosedBoardAreDeleted(t *testing.T) {
	t.Parallel()
	day, boardOf := hiding(t)
	h := boardOf("1")
	h.do1(t, h.opCommand("incr", "o1", "a", "delta", 5))
	h.do1(t, h.opCommand("incr", "o2", "b", "delta", 3))
	h.moved(t, "hide", "a")
	m := h.meta(t)
	m.Life = wire.LifeClosed
	must(t, h.client.Set(t.Context(), h.opts.Names.MetaKey(h.board), wire.AppendMeta(nil, &m), redis.KeepTTL).Err())
	day.hideAll(t, "hide", "b")
	h.client.Del(t.Context(), h.opts.Names.CompanionKey(h.board, wire.Hidden))
	_, _ = h.post(t, h.opCommand("incr", "o2", "b", "delta", 3))
	equal(t, "board", h.scores(t), map[string]float64{"b": 3})
	equal(t, "state", h.meta(t).State, m.State)
}

// A board hides members, and its class gets what such boards can't have: changes are refused, and the members stay hidden.
func TestClassThatCantHide(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{"trim: 5", "data: true"} {
		prefix := lastPart(testkit.Name(t))
		of := func(more string) *fixture {
			file, err := rooms.Parse(fmt.Appendf(nil, "classes:\n  - {name: a, board: \"%s:{zone}\", period: none, ops: [incr]%s}\n", prefix, more))
			must(t, err)
			h := quiet(t, func(o *Options) { o.Tiers = tiers{file: file} })
			h.board = rankcache.BoardID(prefix + ":7")
			return h
		}
		h, other := of(""), of(", "+setting)
		h.do1(t, h.opCommand("incr", "o1", "x", "delta", 30))
		h.moved(t, "hide", "x")
		other.checkRefused(t, other.opCommand("incr", "o2", "x", "delta", 1), "hide")
		equal(t, "board", h.scores(t), map[string]float64{})
		h.do1(t, h.opCommand("incr", "o3", "x", "delta", 1))
		equal(t, "restored", *h.moved(t, "restore", "x").Score, 31.0)
	}
}

// What is refused changes nothing.
func TestHideIsRefused(t *testing.T) {
	t.Parallel()
	file, err := rooms.Parse([]byte(`
classes:
  - {name: best, board: "best:{zone}", period: none, ops: [incr], trim: 5}`))
	must(t, err)
	h := quiet(t, func(o *Options) { o.Tiers = tiers{file: file} })
	for body, code := range map[string]string{
		`{"board":"b","member":"a"}`:                                                    "bad_argument",
		`{"board":"b","member":"a","reason":"a\nb"}`:                                    "bad_argument",
		fmt.Sprintf(`{"board":"b","member":"a","reason":%q}`, strings.Repeat("x", 201)): "bad_argument",
		`{"board":"b","reason":"x"}`:                                                    "bad_argument",
		`{"member":"a","reason":"x"}`:                                                   "bad_argument",
		`{"board":"b","member":"a","reason":"x","why":1}`:                               "bad_argument",
		`{"board":"b","member":"a","reason":"x","serial":9007199254740992}`:             "bad_argument",
		`{"board":"b","member":"a","reason":"x","serial":9007199254740991}`:             "bad_argument",
		`{"board":"best:7","member":"a","reason":"x"}`:                                  "hide",
		`{"class":"nobody","member":"a","reason":"x"}`:                                  "unknown_class",
	} {
		for _, op := range []string{"hide", "restore"} {
			if status, answer := h.move(t, op, body); status < 400 || !strings.Contains(answer, `"code":"`+code+`"`) {
				t.Errorf("%s %s: %d %s, want %s", op, body, status, answer, code)
			}
		}
	}
	for command, reason := range map[string]string{
		fmt.Sprintf(`{"order":"hide/1/b","board":%q,"member":"a","op":"hide","reason":"x"}`, h.board):              "order",
		fmt.Sprintf(`{"order":"o1","board":%q,"member":"a","op":"hide","reason":"x"}`, h.board):                    "order",
		fmt.Sprintf(`{"order":"o1","board":%q,"member":"a","op":"incr","delta":1,"reason":"x"}`, h.board):          "field",
		fmt.Sprintf(`{"order":"hide/1/a","board":%q,"member":"a","op":"hide","reason":"x","prime":true}`, h.board): "op",
		fmt.Sprintf(`{"order":"hide/01/a","board":%q,"member":"a","op":"restore","reason":"x"}`, h.board):          "order",
		fmt.Sprintf(`{"order":"hide/0/a","board":%q,"member":"a","op":"restore","reason":"x"}`, h.board):           "order",
	} {
		h.checkRefused(t, command, reason)
	}
	equal(t, "seq", h.meta(t).Seq, uint64(0))
}

// A closed board hides nobody, and a repeat is answered.
func TestHideOnAClosedBoard(t *testing.T) {
	h := quiet(t, nil)
	c := Command{Member: "m", Op: wire.OpHide, Number: 7, OrderID: wire.HideOrder(7, "m")}
	first := h.applyOne(t, h.periodRules(), c)
	m := h.meta(t)
	m.Life = wire.LifeClosed
	must(t, h.client.Set(t.Context(), h.opts.Names.MetaKey(h.board), wire.AppendMeta(nil, &m), redis.KeepTTL).Err())
	again := h.applyOne(t, h.periodRules(), c)
	equal(t, "repeat", []any{again.Duplicate, again.Update}, []any{true, first.Update})
	c.Op, c.Number, c.OrderID = wire.OpRestore, 8, wire.HideOrder(8, "m")
	equal(t, "closed", h.applyOne(t, h.periodRules(), c).Refusal.Reason, "ended")
	for _, key := range append(h.applier.allKeys(h.board, &rules{}), h.opts.Names.CompanionKey(h.board, wire.Hidden)) {
		if key != string(h.board) {
			equal(t, key, h.client.PExpireTime(t.Context(), key).Val().Milliseconds(), h.periodRules().expires)
		}
	}
}

// The 1,001st hidden member is refused; one that is restored makes room.
func TestMostHiddenMembers(t *testing.T) {
	h := quiet(t, nil)
	serial := 0
	move := func(op wire.Op, member string) *job {
		serial++
		return &job{Command: &Command{Board: h.board, Member: member, Op: op, Number: float64(serial), OrderID: wire.HideOrder(uint64(serial), member), At: h.at}}
	}
	var jobs []*job
	for i := range wire.MaxHidden + 1 {
		jobs = append(jobs, move(wire.OpHide, fmt.Sprint("m", i)))
	}
	must(t, h.applier.apply(t.Context(), jobs))
	for i, j := range jobs {
		if (j.Refusal != nil) != (i == wire.MaxHidden) || j.Refusal != nil && j.Refusal.Reason != "hidden_full" {
			t.Fatal(i, j.Refusal)
		}
	}
	jobs = []*job{move(wire.OpHide, "m0"), move(wire.OpRestore, "m5"), move(wire.OpHide, "more"), move(wire.OpHide, "most")}
	must(t, h.applier.apply(t.Context(), jobs))
	equal(t, "refused", []bool{jobs[0].Refusal != nil, jobs[1].Refusal != nil, jobs[2].Refusal != nil, jobs[3].Refusal != nil}, []bool{false, false, false, true})
}

// Copies in sidecars follow: what was published gives, change by change, the members, scores and sum of the sorted set, while
// members are hidden, changed unseen and restored, in whatever sequence of serials.
func TestCopiesFollowHides(t *testing.T) {
	t.Parallel()
	for _, r := range []rules{{}, {ties: rooms.TiesFirst}, {guard: rooms.Guard{Changes: 1000, Per: time.Minute, Members: 15, Refuse: true}}} {
		h := quiet(t, nil)
		local := localboard.New(h.board)
		for batch := range testkit.Sized(20, 100) {
			jobs := make([]*job, 1+rand.IntN(20))
			for i := range jobs {
				jobs[i] = h.randomIncr(r, batch*100+i, 20)
				if c := jobs[i].Command; rand.IntN(3) == 0 {
					serial := uint64(1 + rand.IntN(1<<40))
					c.Op, c.Number, c.OrderID = wire.OpHide+wire.Op(rand.IntN(2)), float64(serial), wire.HideOrder(serial, c.Member)
				}
			}
			must(t, h.applier.apply(t.Context(), jobs))
			for _, j := range jobs {
				if j.Refusal == nil {
					applyLocally(t, local, j)
				}
			}
			local.Publish()
			same(t, "local board", rankcache.One(t.Context(), local, rankcache.Query{Limit: 20}).Entries, h.ranking(t))
			h.checkSum(t)
		}
	}
}

// A new writer, and one that has hidden nobody, finds hidden members where they are; so does one that adopts a board.
func TestOtherWritersKnowWhoIsHidden(t *testing.T) {
	h := quiet(t, nil)
	h.do1(t, h.opCommand("incr", "o1", "a", "delta", 5))
	other := h.restarted(t)
	other.do1(t, h.opCommand("incr", "o2", "b", "delta", 1))
	h.moved(t, "hide", "a")
	equal(t, "hidden", other.do1(t, h.opCommand("incr", "o3", "a", "delta", 1)).Update.Hiding.Hidden, true)
	must(t, h.client.ZAdd(t.Context(), string(h.board), redis.Z{Member: "past", Score: 1}).Err())
	must(t, h.client.Del(t.Context(), h.opts.Names.MetaKey(h.board)).Err())
	equal(t, "adopted", h.restarted(t).do1(t, h.opCommand("incr", "o4", "a", "delta", 1)).Update.Score, 7.0)
	equal(t, "board", h.scores(t), map[string]float64{"b": 1, "past": 1})
	equal(t, "back", *other.moved(t, "restore", "a").Score, 7.0)
	h.checkSum(t)
}

// Of a durable class, what a failover loses of hides, restores and unseen changes is read again from the log.
func TestFailoverLosesNoHide(t *testing.T) {
	for _, class := range []string{"gift", "laps"} {
		t.Run(class, func(t *testing.T) {
			t.Parallel()
			master := testkit.StartRedis(t, servers.RedisOptions{})
			replica := replicaOf(t, master)
			d := newDurable(t, master, testkit.Kafka(t))
			d.choose(class)
			d.run(t)
			d.post(t, 10)
			d.moved(t, "hide", "m2")
			d.posts++ // positions count it
			d.awaitPositions(t)
			d.posts--
			d.cut(t, replica)
			d.moved(t, "hide", "m1")
			d.moved(t, "restore", "m2")
			d.moved(t, "hide", "m3")
			d.post(t, 10)
			must(t, master.Kill())
			d.at.moveTo(replica)
			kept := map[string]float64{"m1": d.want["m1"], "m3": d.want["m3"]}
			delete(d.want, "m1")
			delete(d.want, "m3")
			d.awaitWhole(t)
			d.checkSum(t)
			for member, want := range kept {
				veil, raw, ok := wire.ParseHidden(d.client.HGet(t.Context(), d.opts.Names.CompanionKey(d.board, wire.Hidden), member).Val())
				equal(t, member, []any{ok, veil.Hidden, raw}, []any{true, true, want})
				d.moved(t, "restore", member)
				d.want[member] = want
			}
			d.awaitWhole(t)
			d.checkSum(t)
		})
	}
}
