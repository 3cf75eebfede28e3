package sidecar

import (
	"net/http"
	"net/http/pprof"
)

// NewAdmin returns the handler of the admin listener: /status, /status/{board},
// /boards/{board}/top, /metrics, /debug/pprof and the probes. The caller may add more
// to it, such as /hotkeys and /rooms; what changes anything goes through
// httpserve.RequireToken.
// The whole is to be served as [Routed].
func NewAdmin(st *Status, r *Readiness, metrics http.Handler) *http.ServeMux {
	mux := http.NewServeMux()
	addProbes(mux, r)
	mux.HandleFunc("GET /openapi.yaml", serveReference)
	mux.HandleFunc("GET /status", st.all)
	mux.HandleFunc("GET /status/{board}", st.board)
	mux.HandleFunc("GET /boards/{board}/top", st.top)
	if metrics != nil {
		mux.Handle("GET /metrics", metrics)
	}
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", writeUnknownPath) // flags may hold secrets
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}
