package serve

import (
	"net/http"

	"rankcache"
	"rankcache/class"
	"rankcache/internal/cli"
	"rankcache/internal/httpserve"
)

// memberSide is what one side has of a member, and of which state of the board that is.
type memberSide struct {
	Source string   `json:"source"`
	Rank   *int     `json:"rank"` // null, as Score: it is not on the board
	Score  *float64 `json:"score"`
	State  string   `json:"state"`
	Error  string   `json:"error,omitempty"`
}

// serveMember answers GET /boards/{board}/members/{member}: what the copy here has, null where none can tell, and what
// Redis has. Of a split board it is asked for the member's shard, and ranks are those there.
func (s adminPort) serveMember(w http.ResponseWriter, r *http.Request) {
	id, err := rankcache.ParseBoardID(r.PathValue("board"))
	if err != nil {
		cli.WriteProblem(w, "bad_argument", "board", err.Error())
		return
	}
	member := r.PathValue("member")
	if err := rankcache.CheckMember(member); err != nil {
		cli.WriteProblem(w, "bad_argument", "member", err.Error())
		return
	}
	if n := s.Rooms.Tiers().Shards(id); n > 0 { // a copy and Redis are compared by their states, which are those of a shard
		id = class.ShardID(id, class.ShardOf(member, n))
	}
	q := rankcache.Query{Board: id, Members: []string{member}, CopiesOnly: true, Uncounted: true}
	_, form, _, _ := s.Rooms.Tiers().Of(id, "")
	here := rankcache.One(r.Context(), s.reader, q)
	redis := rankcache.One(r.Context(), s.origin, rankcache.Query{Board: id, Members: q.Members, Form: form})
	var copied *memberSide
	if here.Err == nil && here.Own[0].Err == nil {
		copied = sideOf(&here, here.Source, form)
	}
	httpserve.WriteJSON(w, http.StatusOK, map[string]any{"board": id, "member": member, "here": copied, "redis": sideOf(&redis, rankcache.SourceRedis, form)})
}

func sideOf(a *rankcache.Answer, source rankcache.Source, form rankcache.ScoreForm) *memberSide {
	if a.Err != nil {
		return &memberSide{Source: source.String(), Error: a.Err.Error()}
	}
	side := &memberSide{Source: source.String(), State: a.State.String()}
	if own := &a.Own[0]; own.Rank > 0 {
		side.Rank, side.Score = &own.Rank, new(form.Shown(own.Score))
	}
	return side
}
