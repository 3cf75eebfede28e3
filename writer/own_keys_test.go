package writer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/httpserve"
	"rankcache/internal/testkit"
	"rankcache/rooms"
	"rankcache/wire"
)

// ownKeys are ids whose keys are, or begin like, keys of rankcache itself.
func ownKeys(n wire.Names) []rankcache.BoardID {
	return []rankcache.BoardID{"rankcache:rooms", "rankcache:ends", "rankcache:room:88:boards", "rankcache:hot:redis", "rankcache:rooms:1",
		rankcache.BoardID("rankcache:" + n.Ends), rankcache.BoardID(n.Rooms), rankcache.BoardID(n.Ends), rankcache.BoardID(n.Readopt), rankcache.BoardID(n.RoomKey("88")), rankcache.BoardID(n.MetaKey("7"))}
}

func withOwnKeys(file *rooms.File) func(*Options) {
	return func(o *Options) {
		o.Tiers = tiers{file: file}
		unique := strings.TrimPrefix(o.Names.Ends, "ends:")
		o.Names.Rooms, o.Names.Room, o.Names.Meta = "lb:"+unique+":rooms", "lb:"+unique+":<uid>", "meta:"+unique+":<board>"
	}
}

// A command of a board that would be a key of rankcache itself is refused, whatever the keys are
// called and however it comes, and writes nothing.
func TestOwnKeysAreNoBoards(t *testing.T) {
	file, err := rooms.Parse([]byte(`
classes:
- {name: any, board: "x:{a}:{b}:{c}", period: none, ops: [incr], feeds: [pair]}
- {name: pair, board: "{b}:{c}", period: none}
`))
	must(t, err)
	h := newFixture(t, testkit.Kfake(t).Addr(), withOwnKeys(file))
	var records []string
	for i, id := range ownKeys(h.opts.Names) {
		command := strings.Replace(h.command(fmt.Sprint("o", i), "m"), string(h.board), string(id), 1)
		status, answer := h.post(t, command)
		checkProblem(t, string(id), status, answer, httpserve.Problem{Status: 400, Code: "bad_argument", Argument: "board"})
		records = append(records, command, fmt.Sprintf(`{"rank_id":%q,"inviter_uid":"1","invitee_uid":"2"}`, id))
	}
	pair := `{"order":"o","class":"pair","dims":{"b":"rankcache","c":"rooms"},"member":"m","op":"incr","delta":1}`
	status, answer := h.post(t, pair)
	checkProblem(t, "by class", status, answer, httpserve.Problem{Status: 422, Code: "bad_dims"})
	equal(t, "keys", h.client.Keys(t.Context(), "*"+string(h.board)+"*").Val(), []string{})

	posted := h.count("refused")
	h.run(t)
	h.produce(t, append(records, pair, h.command("good", "m"))...)
	h.await(t, "refused", posted+len(records)+1)
	h.await(t, "applied", 1)
	equal(t, "score", h.scores(t), map[string]float64{"m": 1})

	zone := h.zone()
	status, answer = h.post(t, fmt.Sprintf(`{"order":"f","class":"any","dims":{"a":%q,"b":"rankcache","c":"rooms"},"member":"m","op":"incr","delta":1}`, zone))
	if status != 200 || !strings.Contains(answer, `"fed":[{"board":"","refused":"bad_dims"}]`) {
		t.Errorf("fed: %d %s", status, answer)
	}
}

// A room's set of another type leaves out that room alone.
func TestARoomOfAnotherTypeIsAlone(t *testing.T) {
	h := quiet(t, withClasses(t))
	h.opts.Names.RoomEnds = "ends:" + string(h.board)
	h = h.restarted(t)
	names, bad, good := h.opts.Names, "bad-"+h.zone(), "good-"+h.zone()
	must(t, h.client.ZAdd(t.Context(), names.RoomKey(bad), redis.Z{Member: "m"}).Err())
	h.do1(t, inRoom(h.inClass("o1", h.zone(), h.at), bad))
	h.do1(t, inRoom(h.inClass("o2", h.zone(), h.at), good))
	equal(t, "in the room", len(h.roomBoards(t, good)), 1)
	h.rooms.now = func() time.Time { return time.UnixMilli(h.at).Add(10 * time.Minute) }
	must(t, h.rooms.sweep(t.Context()))
	equal(t, "after the end", h.roomBoards(t, good), []string{})
	equal(t, "ends", h.client.ZCard(t.Context(), names.RoomEnds).Val(), int64(0))
}
