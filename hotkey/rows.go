package hotkey

import (
	"cmp"
	"slices"
	"time"

	"rankcache"
)

// State is where a board stands.
type State string

// States of a [Row].
const (
	StateHot     State = "hot"     // promoted
	StateCooling State = "cooling" // demoted lately, not promoted again yet
	StateWatched State = "watched" // busy or listed, not promoted
	StateBarred  State = "barred"  // would be hot, but is blocked or super-hot and open
)

// Row is one board as operators see it.
type Row struct {
	Board    rankcache.BoardID `json:"board"`
	State    State             `json:"state"`
	Cause    Cause             `json:"cause,omitempty"`
	Since    time.Time         `json:"since,omitzero"` // of the state; zero for a watched board
	Rate     float64           `json:"rate"`           // own requests/s over 10 seconds
	APICount int64             `json:"api_count"`      // what the verdict counted; its source's unit
	PageAge  int64             `json:"page_age_ms"`    // how long ago the page was current, ms; -1 without a page
	Hits     uint64            `json:"hits"`           // reads answered from the page since the promotion
}

// Hot returns the boards that are hot or may become so, hottest first, as of the
// last second; ages and hits as of now. The slice is the caller's.
func (t *Tracker) Hot() []Row {
	rows := slices.Clone(*t.rows.Load())
	pages, now := *t.pages.Load(), time.Now()
	for i := range rows {
		rows[i].PageAge = -1
		p := pages[rows[i].Board]
		if p == nil {
			continue
		}
		rows[i].Hits = p.hits.Load()
		if h := p.held.Load(); h != nil {
			rows[i].PageAge = now.Sub(h.at).Milliseconds()
		}
	}
	return rows
}

// publishRows keeps the policy's state of this second for Hot.
func (t *Tracker) publishRows() {
	rows := make([]Row, 0, len(t.policy.boards))
	for _, c := range t.policy.boards {
		if c.state() != "" {
			rows = append(rows, Row{Board: c.board, State: c.state(), Cause: c.cause, Since: c.since,
				Rate: c.rates.mean(), APICount: c.count})
		}
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.Rate, a.Rate), cmp.Compare(a.Board, b.Board))
	})
	t.rows.Store(&rows)
}

// state returns where the board stands, "" when it is only remembered.
func (c *candidate) state() State {
	switch {
	case c.hot:
		return StateHot
	case c.barred && (c.burst != 0 || c.inVerdict || c.pinned):
		return StateBarred
	case c.cooling:
		return StateCooling
	case c.burst != 0 || c.inVerdict:
		return StateWatched
	}
	return ""
}
