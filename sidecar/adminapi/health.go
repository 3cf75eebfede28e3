package adminapi

import (
	"net/http"
	"time"

	"rankcache"
	"rankcache/internal/httpserve"
)

// maxProbeBoards is how many boards a probe's body lists: it is read by people through kubectl describe, which cuts it.
const maxProbeBoards = 20

// Health returns the handler of the health listener: /livez, /readyz, /startupz and, unless metrics is nil, /metrics.
//
// Liveness only shows that this process answers. Readiness and startup answer 503 with the
// reason and the boards that are not open yet; startup stays 200 once the process was ready.
func Health(r *Readiness, metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	addProbes(mux, r)
	if metrics != nil {
		mux.Handle("GET /metrics", metrics)
	}
	return Routed(mux)
}

func addProbes(mux *http.ServeMux, r *Readiness) {
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		httpserve.WriteJSON(w, http.StatusOK, map[string]string{"state": "alive"})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		now := r.Now()
		writeProbe(w, r, now, now.State == StateReady)
	})
	mux.HandleFunc("GET /startupz", func(w http.ResponseWriter, _ *http.Request) {
		now := r.Now()
		writeProbe(w, r, now, now.Started)
	})
}

// probeBody is the answer of readiness and startup probes.
type probeBody struct {
	State  State       `json:"state"`
	Reason string      `json:"reason"`
	Since  time.Time   `json:"since"`
	Open   int         `json:"boards_open"`
	Boards int         `json:"boards_total"`
	Behind []boardBody `json:"boards,omitempty"` // those that are not open
}

func writeProbe(w http.ResponseWriter, r *Readiness, now Current, ok bool) {
	body := probeBody{State: now.State, Reason: now.Reason, Since: now.Since}
	for _, b := range r.boards() {
		body.Boards++
		if b.State == rankcache.StateOpen {
			body.Open++
		} else if len(body.Behind) < maxProbeBoards {
			body.Behind = append(body.Behind, boardBodyOf(b))
		}
	}
	status := http.StatusOK
	if !ok {
		status = http.StatusServiceUnavailable
	}
	httpserve.WriteJSON(w, status, body)
}

type boardBody struct {
	Board   rankcache.BoardID    `json:"board"`
	State   rankcache.BoardState `json:"state"`
	Reason  string               `json:"reason,omitempty"`
	Since   time.Time            `json:"since"`
	Have    uint64               `json:"have"`
	Want    *uint64              `json:"want"` // null: not known
	Rate    float64              `json:"updates_per_s"`
	ETA     *float64             `json:"eta_s"` // null: not known
	Members int                  `json:"members"`
	Lost    int                  `json:"lost_members,omitempty"` // of a life that Redis has lost; the board has fewer than half
	Audit   *auditBody           `json:"audit,omitempty"`
}

// auditBody has the results of comparing a board with Redis.
type auditBody struct {
	At          *time.Time `json:"at"` // of the last one; null: none yet
	Checks      uint64     `json:"checks"`
	Unknown     uint64     `json:"unknown"` // that could not be made
	Members     uint64     `json:"members"` // compared
	Differences uint64     `json:"differences"`
	Rebuilds    uint64     `json:"rebuilds"`
	Last        string     `json:"last,omitempty"` // the last difference
	LastAt      *time.Time `json:"last_at,omitempty"`
}

func auditBodyOf(a rankcache.AuditStatus) *auditBody {
	if a == (rankcache.AuditStatus{}) {
		return nil
	}
	body := &auditBody{Checks: a.Checks, Unknown: a.Unknown, Members: a.Members,
		Differences: a.Differences, Rebuilds: a.Rebuilds, Last: a.Last}
	if !a.At.IsZero() {
		body.At = &a.At
	}
	if !a.LastAt.IsZero() {
		body.LastAt = &a.LastAt
	}
	return body
}

func boardBodyOf(b rankcache.BoardStatus) boardBody {
	body := boardBody{Board: b.Board, State: b.State, Reason: b.Reason, Since: b.Since,
		Have: b.Have, Rate: b.Rate, Members: b.Members, Lost: b.LostMembers, Audit: auditBodyOf(b.Audit)}
	if b.Want > 0 {
		body.Want = &b.Want
	}
	if b.ETA > 0 {
		eta := b.ETA.Seconds()
		body.ETA = &eta
	}
	return body
}
