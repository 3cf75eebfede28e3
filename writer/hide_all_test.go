package writer

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/class"
	"rankcache/internal/testkit"
	"rankcache/rooms"
	"rankcache/wire"
)

// hiding is a writer of class day, whose boards have a zone and a period.
func hiding(t *testing.T) (h *fixture, boardOf func(zone string) *fixture) {
	t.Helper()
	prefix := lastPart(testkit.Name(t))
	file, err := rooms.Parse(fmt.Appendf(nil, `
classes:
  - {name: day, board: "%s:{zone}:{period}", period: year, ops: [incr], keep: 96h, durable: false}
  - {name: split, board: "%ss:{zone}:{period}", period: year, ops: [incr], shards: 3}
  - {name: ever, board: "%sx:{zone}", period: none, ops: [incr]}`, prefix, prefix, prefix))
	must(t, err)
	h = quiet(t, func(o *Options) { o.Tiers, o.Names.Rooms = tiers{file: file}, "rooms:"+testkit.Name(t) })
	return h, func(zone string) *fixture {
		b, err := file.Class("day").At(map[string]string{"zone": zone}, time.UnixMilli(h.at))
		must(t, err)
		of := *h
		of.board = b.ID
		return &of
	}
}

// hideAll hides or restores a member on all boards of the class, and returns on how many.
func (h *fixture) hideAll(t *testing.T, op, member string) int {
	t.Helper()
	status, text := h.move(t, op, fmt.Sprintf(`{"class":"day","all":true,"member":%q,"reason":"bot"}`, member))
	var answer movedAll
	must(t, json.Unmarshal([]byte(text), &answer))
	if status != http.StatusOK || len(answer.Refused) > 0 {
		t.Fatal(status, text)
	}
	return answer.Boards
}

// A member is hidden on the boards of a class that are there, and on those that come; also on one that something else has made.
func TestHideOnAllBoardsOfAClass(t *testing.T) {
	t.Parallel()
	h, boardOf := hiding(t)
	incr := func(zone, order, member string) {
		of := boardOf(zone)
		of.do1(t, of.opCommand("incr", order, member, "delta", 2))
	}
	for _, zone := range []string{"1", "2"} {
		incr(zone, "o1", "a")
		incr(zone, "o2", "b")
	}
	equal(t, "boards", h.hideAll(t, "hide", "a"), 2)
	foreign := boardOf("3")
	must(t, h.client.ZAdd(t.Context(), string(foreign.board), redis.Z{Member: "a", Score: 5}, redis.Z{Member: "b", Score: 1}).Err())
	for _, zone := range []string{"1", "2", "3", "4"} {
		incr(zone, "o3", "a")
		incr(zone, "o4", "b")
		of := boardOf(zone)
		equal(t, "board "+zone, of.scores(t), map[string]float64{"b": map[string]float64{"1": 4, "2": 4, "3": 3, "4": 2}[zone]})
		of.checkSum(t)
	}
	equal(t, "boards", h.hideAll(t, "restore", "a"), 4)
	for _, zone := range []string{"1", "2", "3", "4", "5"} {
		incr(zone, "o5", "a")
		of := boardOf(zone)
		equal(t, "a on "+zone, of.scores(t)["a"], map[string]float64{"1": 6, "2": 6, "3": 9, "4": 4, "5": 2}[zone])
		of.checkSum(t)
	}
}

func TestHideOnAllBoardsIsRefused(t *testing.T) {
	h, boardOf := hiding(t)
	for body, code := range map[string]string{
		`{"class":"day","all":true,"member":"a"}`:                                  "bad_argument",
		`{"class":"day","all":true,"reason":"x"}`:                                  "bad_argument",
		`{"class":"day","dims":{"zone":"1"},"all":true,"member":"a","reason":"x"}`: "bad_argument",
		`{"board":"b","all":true,"member":"a","reason":"x"}`:                       "bad_argument",
		`{"class":"nobody","all":true,"member":"a","reason":"x"}`:                  "unknown_class",
		`{"class":"ever","all":true,"member":"a","reason":"x"}`:                    "hide",
	} {
		if status, answer := h.move(t, "hide", body); status < 400 || !strings.Contains(answer, `"code":"`+code+`"`) {
			t.Errorf("%s: %d %s, want %s", body, status, answer, code)
		}
	}
	many := make([]any, 0, 2*wire.MaxHidden)
	for i := range wire.MaxHidden {
		many = append(many, fmt.Sprint("m", i), i+1)
	}
	must(t, h.client.HSet(t.Context(), h.opts.Names.HiddenListKey("day"), many...).Err())
	status, answer := h.move(t, "hide", `{"class":"day","all":true,"member":"more","reason":"x"}`)
	equal(t, "full", []any{status, strings.Contains(answer, "hidden_full")}, []any{422, true})
	of := boardOf("1")
	of.do1(t, of.opCommand("incr", "o1", "m7", "delta", 2))
	of.do1(t, of.opCommand("incr", "o2", "more", "delta", 2))
	equal(t, "board", of.scores(t), map[string]float64{"more": 2})
}

// A hide that is repeated after a later restore changes nothing, neither on boards that are there nor on those that come.
func TestRepeatedHideOfAClass(t *testing.T) {
	t.Parallel()
	h, boardOf := hiding(t)
	first := boardOf("1")
	first.do1(t, first.opCommand("incr", "o1", "a", "delta", 2))
	for _, step := range []struct {
		op            string
		serial, later int
	}{{"hide", 20, 0}, {"restore", 30, 0}, {"hide", 20, 1}} {
		status, text := h.move(t, step.op, fmt.Sprintf(`{"class":"day","all":true,"member":"a","reason":"bot","serial":%d}`, step.serial))
		equal(t, fmt.Sprint(step), []any{status, strings.Count(text, `"code":"later"`)}, []any{200, step.later})
	}
	next := boardOf("2")
	next.do1(t, next.opCommand("incr", "o1", "a", "delta", 3))
	equal(t, "boards", []any{first.scores(t)["a"], next.scores(t)["a"]}, []any{2.0, 3.0})
}

// Boards are born while a member is hidden and restored: each has it as the last command has left it.
func TestNoBornBoardEscapesAHide(t *testing.T) {
	t.Parallel()
	h, boardOf := hiding(t)
	for round := range testkit.Sized(4, 20) {
		var births sync.WaitGroup
		var boards []*fixture
		for i := range 40 {
			of := boardOf(fmt.Sprint(round, "z", i))
			boards = append(boards, of)
			births.Go(func() {
				w, err := New(h.opts)
				if err == nil {
					_, err = (&fixture{w, h.client, h.kafka, of.board, h.at}).do(t.Context(), []byte(of.opCommand("incr", "o", "a", "delta", 1)))
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		op := []string{"hide", "restore"}[round%2]
		h.hideAll(t, op, "a")
		births.Wait()
		for _, of := range boards {
			equal(t, string(of.board)+" after "+op, len(of.scores(t)), round%2)
			of.checkSum(t)
		}
	}
}

// Of a split board the shard that has the member hides it, and no other refuses.
func TestHideOnSplitBoards(t *testing.T) {
	h, _ := hiding(t)
	incr := func(order, member string) Outcome {
		return h.do1(t, fmt.Sprintf(`{"order":%q,"class":"split","dims":{"zone":"7"},"member":%q,"op":"incr","delta":1,"at":%d}`, order, member, h.at))
	}
	for i := range 9 {
		incr(fmt.Sprint("o", i), fmt.Sprint("m", i))
	}
	status, text := h.move(t, "hide", `{"class":"split","all":true,"member":"m4","reason":"bot"}`)
	equal(t, "answer", []any{status, strings.Contains(text, `"boards":1}`)}, []any{200, true})
	for i := range 9 {
		equal(t, fmt.Sprint("m", i), incr(fmt.Sprint("p", i), fmt.Sprint("m", i)).Update.Hiding.Hidden, i == 4)
	}
	for i := range 9 { // a board that is born now
		done := h.do1(t, fmt.Sprintf(`{"order":"q%d","class":"split","dims":{"zone":"8"},"member":"m%d","op":"incr","delta":1,"at":%d}`, i, i, h.at))
		equal(t, fmt.Sprint("m", i, " on the next board"), done.Update.Hiding.Hidden, i == 4)
		listed, err := h.client.HExists(t.Context(), h.opts.Names.CompanionKey(done.Update.Board, wire.Hidden), "m4").Result()
		must(t, err)
		equal(t, "m4 is on the list of "+string(done.Update.Board), listed, class.ShardOf(fmt.Sprint("m", i), 3) == class.ShardOf("m4", 3))
	}
}
