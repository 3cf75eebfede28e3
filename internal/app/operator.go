package app

import (
	"net/http"

	"rankcache/operator"
	"rankcache/sidecar/adminapi"
)

// addOperator adds the operator's page to the admin port, and to /status what it
// shows beside what the probes know.
func (s *Sidecar) addOperator(status *adminapi.Status, mux *http.ServeMux) {
	s.addLocalBoards(status)
	status.Sections["profiles"] = func() any { return s.profileStats() }
	status.Sections["changes"] = func() any { return map[string]bool{"token_set": s.options.adminToken != ""} }
	page := operator.Handler()
	mux.Handle("GET /{$}", page)
	mux.Handle("GET /assets/", page)
}

// profileStats returns nil where no profiles are joined.
func (s *Sidecar) profileStats() any {
	if s.profiles == nil {
		return nil
	}
	return s.profiles.Stats()
}
