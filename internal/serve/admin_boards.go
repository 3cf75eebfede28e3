package serve

import (
	"net/http"
	"slices"
	"time"

	"rankcache"
	"rankcache/class"
	"rankcache/internal/cli"
	"rankcache/internal/httpserve"
	"rankcache/sidecar/adminapi"
)

// LocalBoard is one board in local memory as /status shows it, open or not.
type LocalBoard struct {
	Board   rankcache.BoardID `json:"board"`
	Open    bool              `json:"open"`
	Members int               `json:"members"`
	Bytes   int               `json:"bytes"`  // heap that it takes
	Age     int64             `json:"age_ms"` // since it was last known to be current; -1: never was
}

type localTotals struct {
	Boards  int   `json:"boards"`
	Members int   `json:"members"`
	Bytes   int   `json:"bytes"`
	Age     int64 `json:"oldest_ms"` // of the open ones; -1: none is known to have been current
}

// addLocalBoards adds the memory's boards to /status: those of the page, and all in sum.
func (s adminPort) addLocalBoards(status *adminapi.Status) {
	status.BoardSections = map[string]func(map[rankcache.BoardID]bool) any{
		"local_boards": func(shown map[rankcache.BoardID]bool) any {
			return slices.DeleteFunc(s.localBoards(), func(b LocalBoard) bool { return !shown[b.Board] })
		}}
	status.Sections["local"] = func() any { return sumLocal(s.localBoards()) }
}

func (s adminPort) localBoards() []LocalBoard {
	all := []LocalBoard{}
	for _, b := range s.Local.All() {
		row := LocalBoard{Board: b.ID(), Open: OpenBoards{s.Local}.IsOpen(b.ID()),
			Members: b.Progress().Members, Bytes: b.Bytes(), Age: -1}
		if at := b.CurrentAt(); !at.IsZero() {
			row.Age = max(time.Since(at).Milliseconds(), 0)
		}
		all = append(all, row)
	}
	return all
}

func sumLocal(all []LocalBoard) localTotals {
	sum := localTotals{Boards: len(all), Age: -1}
	for _, b := range all {
		sum.Members += b.Members
		sum.Bytes += b.Bytes
		if b.Open {
			sum.Age = max(sum.Age, b.Age)
		}
	}
	return sum
}

const maxRefused = 20 // how many refused boards /status lists

func (s adminPort) memoryStatus() MemoryStatus {
	m := MemoryStatus{memoryLimits: s.memory.now(), Status: s.admission.Status()}
	m.RefusedBoards = len(m.Refused)
	m.Refused = m.Refused[:min(len(m.Refused), maxRefused)]
	return m
}

// memberSide is what one side has of a member, and of which state of the board that is.
type memberSide struct {
	Source string   `json:"source"`
	Rank   *int     `json:"rank"` // null, as Score: it is not on the board
	Score  *float64 `json:"score"`
	State  string   `json:"state"`
	Error  string   `json:"error,omitempty"`
}

// serveMember answers GET /boards/{board}/members/{member}: what copy and Redis have, of a split board its shard.
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
