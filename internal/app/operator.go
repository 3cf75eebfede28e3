package app

import (
	"net/http"
	"time"

	"rankcache"
	"rankcache/operator"
	"rankcache/sidecar/adminapi"
)

// addOperator adds the operator's page to the admin port, and to /status what it
// shows beside what the probes know.
func (s *Sidecar) addOperator(status *adminapi.Status, mux *http.ServeMux) {
	status.Sections["local_boards"] = func() any { return s.localBoards() }
	status.Sections["profiles"] = func() any { return s.profileStats() }
	status.Sections["changes"] = func() any { return map[string]bool{"token_set": s.options.adminToken != ""} }
	page := adminapi.Routed(operator.Handler())
	mux.Handle("GET /{$}", page)
	mux.Handle("GET /assets/{name}", page)
}

// localBoard is one board in local memory as /status shows it, open or not.
type localBoard struct {
	Board   rankcache.BoardID `json:"board"`
	Open    bool              `json:"open"`
	Members int               `json:"members"`
	Bytes   int               `json:"bytes"`  // heap that it takes
	Age     int64             `json:"age_ms"` // since it was last known to be current; -1: never was
}

func (s *Sidecar) localBoards() []localBoard {
	all := []localBoard{}
	for _, b := range s.boards.All() {
		row := localBoard{Board: b.ID(), Open: OpenBoards{s.boards}.IsOpen(b.ID()),
			Members: b.Progress().Members, Bytes: b.Bytes(), Age: -1}
		if at := b.CurrentAt(); !at.IsZero() {
			row.Age = max(time.Since(at).Milliseconds(), 0)
		}
		all = append(all, row)
	}
	return all
}

// profileStats returns nil where no profiles are joined.
func (s *Sidecar) profileStats() any {
	if s.profiles == nil {
		return nil
	}
	return s.profiles.Stats()
}
