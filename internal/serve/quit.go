package serve

import (
	"net/http"

	"rankcache/internal/httpserve"
	"rankcache/sidecar/adminapi"
)

// serveQuit answers POST /quit, by which the app of a Job ends a sidecar that Kubernetes takes for one more app.
func (s adminPort) serveQuit(w http.ResponseWriter, r *http.Request) {
	s.log.Info("asked to end by POST /quit", "from", r.RemoteAddr)
	s.quit()
	httpserve.WriteJSON(w, http.StatusAccepted, map[string]adminapi.State{"state": adminapi.StateStopping})
}
