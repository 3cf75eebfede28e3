package sidecar

import (
	"net/http"
	"time"

	"rankcache"
	"rankcache/internal/httpserve"
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
	q, reader := Query{Board: id}, st.Reader.quiet()
	body := boardStatus{Board: id, Mode: st.Reader.tiers().Mode(id, "").String(), Top: []rankRow{}}
	if at, err := reader.find(&q, true); err == nil {
		body.Tier = at.tier.String()
	} else {
		body.Tier = TierBlocked.String()
	}
	if a, err := reader.Top(r.Context(), q, boardSample); err == nil {
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
	httpserve.WriteJSON(w, http.StatusOK, body)
}

func (b *boardStatus) fill(a *Answer) {
	b.Source, b.Seq, b.Total = a.Source.String(), a.Seq, a.Members
	b.AgeMs = max(time.Since(a.CurrentAt).Milliseconds(), 0)
	for i, e := range a.Entries {
		b.Top = append(b.Top, rankRow{Rank: a.Start + i + 1, Member: e.Member, Score: e.Score})
	}
}
