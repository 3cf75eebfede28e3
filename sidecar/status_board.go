package sidecar

import (
	"net/http"
	"time"

	"rankcache"
)

// boardSample is how many of its best rows a board's status shows.
const boardSample = 10

// boardStatus answers GET /status/{board}.
type boardStatus struct {
	Board  rankcache.BoardID `json:"board"`
	Mode   string            `json:"mode"` // what the operator said
	Tier   string            `json:"tier"` // where reads go now
	Source string            `json:"source,omitempty"`
	Seq    uint64            `json:"seq,omitempty"`
	Total  int               `json:"total"`
	AgeMs  int64             `json:"age_ms"`
	Top    []rankRow         `json:"top"`
	Error  string            `json:"error,omitempty"` // why there is no top
	Replay *boardBody        `json:"replay,omitempty"`
}

type rankRow struct {
	Rank   int     `json:"rank"`
	Member string  `json:"member"`
	Score  float64 `json:"score"`
}

func (st *Status) board(w http.ResponseWriter, r *http.Request) {
	id, err := rankcache.ParseBoardID(r.PathValue("board"))
	if err != nil {
		writeProblem(w, badArgument("board", err.Error()))
		return
	}
	q := Query{Board: id}
	body := boardStatus{Board: id, Mode: st.Reader.tiers().Mode(id, "").String(), Top: []rankRow{}}
	if at, err := st.Reader.find(q); err == nil {
		body.Tier = at.tier.String()
	} else {
		body.Tier = TierBlocked.String()
	}
	if a, err := st.Reader.Top(r.Context(), q, boardSample); err == nil {
		body.fill(&a)
	} else {
		body.Error = string(problemOf(err).code)
	}
	for _, b := range st.Readiness.boards() {
		if b.Board == id {
			replay := boardBodyOf(b)
			body.Replay = &replay
		}
	}
	writeJSON(w, http.StatusOK, body)
}

func (b *boardStatus) fill(a *Answer) {
	b.Source, b.Seq, b.Total = a.Source.String(), a.Seq, a.Members
	b.AgeMs = max(time.Since(a.CurrentAt).Milliseconds(), 0)
	for i, e := range a.Entries {
		b.Top = append(b.Top, rankRow{Rank: a.Start + i + 1, Member: e.Member, Score: e.Score})
	}
}

// roomsBody answers GET /rooms.
type roomsBody struct {
	Rooms  []roomBody                     `json:"rooms"`
	Rules  []ruleBody                     `json:"rules"`
	Boards map[string][]rankcache.BoardID `json:"boards"` // by mode, as resolved now
}

type roomBody struct {
	UID    string              `json:"uid"`
	Mode   string              `json:"mode"`
	Boards []rankcache.BoardID `json:"boards"` // null: Redis says which
}

type ruleBody struct {
	Match string `json:"match"`
	Mode  string `json:"mode"`
}

func (st *Status) rooms(w http.ResponseWriter, _ *http.Request) {
	body := roomsBody{Rooms: []roomBody{}, Rules: []ruleBody{}, Boards: map[string][]rankcache.BoardID{}}
	var file *rankcache.Rooms
	if st.Rooms != nil {
		file = st.Rooms()
	}
	if file != nil {
		for _, room := range file.Rooms {
			body.Rooms = append(body.Rooms, roomBody{room.UID, room.Mode.String(), room.Boards})
		}
		for _, rule := range file.Rules {
			body.Rules = append(body.Rules, ruleBody{rule.Match, rule.Mode.String()})
		}
	}
	tiers := st.Reader.tiers()
	for _, m := range []rankcache.Mode{rankcache.ModeHot, rankcache.ModeSuperHot, rankcache.ModeBlocked} {
		if boards := tiers.Boards(m); len(boards) > 0 {
			body.Boards[m.String()] = boards
		}
	}
	writeJSON(w, http.StatusOK, body)
}
