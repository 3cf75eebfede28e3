package serve

import (
	"io"
	"net/http"
	"time"

	"rankcache"
	"rankcache/docs"
	"rankcache/hotkey"
	"rankcache/internal/cli"
	"rankcache/internal/httpserve"
	"rankcache/internal/roomsync"
	"rankcache/operator"
	"rankcache/rooms"
	"rankcache/sidecar/adminapi"
)

type adminPort struct{ *Sidecar }

func (s adminPort) handler(metrics http.Handler) http.Handler {
	status := &adminapi.Status{Readiness: s.ready, Reader: s.reader, Version: cli.Version, Name: cli.HostName(), Started: s.started, Dependencies: s.services,
		Sections: map[string]func() any{
			"rooms_file":    func() any { return s.Rooms.Status().File },
			"rooms_dynamic": func() any { return s.Rooms.Status().Dynamic },
			"bypasses":      func() any { return append([]rooms.Bypass{}, s.Rooms.Bypasses()...) },
			"memory":        func() any { return s.memoryStatus() },
			"resp":          s.respStatus,
			"redis_read":    s.replicaStatus,
		}}
	mux := adminapi.New(status, s.ready, metrics)
	s.addOperator(status, mux)
	compare := &boardComparer{boards: s.Local, origin: s.origin, shards: func(id rankcache.BoardID) int { return s.Rooms.Tiers().Shards(id) }}
	mux.HandleFunc("POST /boards/{board}/compare", compare.serve)
	mux.HandleFunc("GET /boards/{board}/members/{member}", s.serveMember)
	mux.HandleFunc("GET /history", s.history.serve)
	mux.HandleFunc("GET /hotkeys", s.serveHot)
	s.options.AddDiagnostics(mux)
	h := roomsync.NewHandler(s.Rooms, cli.WriteProblem)
	guarded := func(pattern string, change http.HandlerFunc) {
		mux.Handle(pattern, cli.RequireToken("the admin token", s.options.adminToken, change))
	}
	mux.HandleFunc("GET /rooms", h.Get)
	guarded("POST /rooms", h.Post)
	guarded("DELETE /rooms", h.Delete)
	guarded("POST /rooms/bypass", h.PostBypass)
	guarded("DELETE /rooms/bypass", h.DeleteBypass)
	mux.HandleFunc("GET /classes", h.GetClasses)
	guarded("PUT /classes", h.PutClasses)
	guarded("DELETE /classes", h.DeleteClasses)
	guarded("DELETE /profiles/{member}", s.dropProfile)
	guarded("POST /quit", s.serveQuit)
	return httpserve.CheckOrigin(adminapi.Routed(mux))
}

// addOperator adds the operator's page, and the sections of /status that only the page shows.
func (s adminPort) addOperator(status *adminapi.Status, mux *http.ServeMux) {
	s.addLocalBoards(status)
	status.Sections["files"] = func() any { return s.options.FileStatuses() }
	status.Sections["damage"] = s.damage.status
	status.Sections["profiles"] = func() any { return s.profileStats() }
	status.Sections["changes"] = func() any { return map[string]bool{"token_set": s.options.adminToken.Get() != ""} }
	status.Sections["live"] = func() any { return map[string]bool{"streams": s.rpcServer != nil} }
	if s.rpcServer != nil {
		mux.HandleFunc("GET /v1/boards/{board}/live", s.rpcServer.ServeLiveBoard)
	}
	page := adminapi.Routed(operator.Handler())
	mux.Handle("GET /{$}", page)
	mux.Handle("GET /assets/{name}", page)
	mux.HandleFunc("GET /runbooks.md", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, docs.Runbooks) // the caller may have left
	})
}

func (s adminPort) profileStats() any {
	if s.profiles == nil {
		return nil
	}
	return s.profiles.Stats()
}

// respStatus is the section of /status; nil without the listener.
func (s adminPort) respStatus() any {
	if s.respServer == nil {
		return nil
	}
	return s.respServer.Status()
}

func (s adminPort) serveHot(w http.ResponseWriter, _ *http.Request) {
	answer := cli.HotAnswer{Enabled: s.tracker != nil, Boards: []hotkey.Row{}}
	if answer.Enabled {
		answer.Boards = append(answer.Boards, s.tracker.Hot()...)
		answer.Verdict = s.fleetVerdict()
	}
	w.Header().Set("Content-Type", "application/json")
	cli.PrintJSON(w, answer) // fails only if the client has gone
}

// fleetVerdict returns the newest verdict, nil before the first.
func (s adminPort) fleetVerdict() *cli.HotVerdict {
	v, seen := s.tracker.Verdict()
	if seen.IsZero() {
		return nil
	}
	ago := time.Since(seen)
	return &cli.HotVerdict{Source: v.Source, Poller: v.Poller, At: time.UnixMilli(v.At), SeenAgo: ago.Milliseconds(),
		Counts: ago <= hotkey.VerdictAge,
		Boards: append([]hotkey.BoardCount{}, v.Boards...), Ignored: v.Ignored}
}

func (s adminPort) dropProfile(w http.ResponseWriter, r *http.Request) {
	if s.profiles == nil || !s.profiles.Drop(r.PathValue("member")) {
		cli.WriteProblem(w, string(adminapi.CodeUnknownProfile), "", "no profile of this member is cached here")
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
