package writer

import (
	"slices"
	"strings"
	"testing"
	"time"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
)

// inRoom is a command that names a room, too.
func inRoom(command, room string) string {
	return strings.Replace(command, "{", `{"room":"`+room+`",`, 1)
}

func (h *fixture) roomBoards(t *testing.T, room string) []string {
	t.Helper()
	boards, err := h.client.SMembers(t.Context(), h.opts.Names.RoomKey(room)).Result()
	must(t, err)
	slices.Sort(boards)
	return boards
}

// A command that names room and board puts the board into the room's set; one with a period
// goes at its end, whichever writer has added it. What is refused adds nothing.
func TestRoomSets(t *testing.T) {
	h := newFixture(t, testkit.Kfake(t).Addr(), withClasses(t))
	h.opts.Names.RoomEnds = "ends:" + string(h.board)
	h = h.restarted(t)
	room, zone := "r-"+h.zone(), h.zone()
	h.do1(t, inRoom(h.command("o1", "a"), room))
	first := h.do1(t, inRoom(h.inClass("o1", zone, h.at), room)).Update.Board
	_, err := h.do(t.Context(), []byte(inRoom(h.inClass("o2", zone+"x", h.at-int64(time.Hour/time.Millisecond)), room)))
	equal(t, "late", asRefusal(err).Reason, "late")
	both := []string{string(h.board), string(first)}
	slices.Sort(both)
	equal(t, "in the room", h.roomBoards(t, room), both)

	must(t, h.rooms.sweep(t.Context()))
	equal(t, "before the end", h.roomBoards(t, room), both)
	other := h.restarted(t)
	other.rooms.now = func() time.Time { return time.UnixMilli(h.at).Add(10 * time.Minute) }
	must(t, other.rooms.sweep(t.Context()))
	equal(t, "after the end", h.roomBoards(t, room), []string{string(h.board)})
	equal(t, "ends", h.client.ZCard(t.Context(), h.opts.Names.RoomEnds).Val(), int64(0))

	other.rooms.add(t.Context(), []*job{h.doneJob(t, inRoom(h.inClass("o1", zone, h.at), room))}) // a late repeat
	equal(t, "after a late repeat", h.roomBoards(t, room), []string{string(h.board)})
}

// doneJob is the job of a command as after it was applied.
func (h *fixture) doneJob(t *testing.T, command string) *job {
	t.Helper()
	j, err := h.accept([]byte(command), h.at, time.UnixMilli(h.at))
	must(t, err)
	j.done = true
	return j
}

// A failure of Redis fails no command, and the next one adds the board.
func TestRoomSetsWhileRedisIsAway(t *testing.T) {
	server := testkit.StartRedis(t, servers.RedisOptions{})
	h := quiet(t, nil)
	j := h.doneJob(t, inRoom(h.command("o1", "a"), "r-"+h.zone()))
	working := h.rooms.client
	h.rooms.client = redisClient(t, server.Addr())
	must(t, server.Stop())
	h.rooms.add(t.Context(), []*job{j})
	h.rooms.client = working
	h.rooms.add(t.Context(), []*job{j})
	equal(t, "in the room", h.roomBoards(t, j.Room), []string{string(h.board)})
	must(t, working.SRem(t.Context(), h.opts.Names.RoomKey(j.Room), string(h.board)).Err())
	h.rooms.add(t.Context(), []*job{j})
	equal(t, "again, as it is known", h.roomBoards(t, j.Room), []string{})
}
