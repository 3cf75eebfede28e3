package app

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"rankcache/internal/httpserve"
	"rankcache/internal/roomsync"
	"rankcache/sidecar/adminapi"
)

// healthPort is what a process without an admin port answers on its health port: probes and
// metrics to all callers, and to those on this machine what explains the process.
type healthPort struct {
	*commonOptions
	log      *slog.Logger
	ready    *adminapi.Readiness
	registry *registry
	started  time.Time
	rooms    *roomsync.Follower // nil: it follows none
	// parts are the process's own in /status.
	parts map[string]func(context.Context) any
}

// probes returns how a health port behaves.
func (o *commonOptions) probes(hosts []string) httpserve.Config {
	cfg := httpserve.ForProbes(hosts)
	cfg.ReadTimeout = o.readTimeout
	return cfg
}

func newHealthPort(o *commonOptions, ready *adminapi.Readiness, reg *registry, log *slog.Logger) *healthPort {
	return &healthPort{commonOptions: o, log: log, ready: ready, registry: reg, started: time.Now()}
}

func (p *healthPort) handler() http.Handler {
	local := http.NewServeMux()
	local.HandleFunc("GET /status", p.serveStatus)
	if p.rooms != nil {
		local.HandleFunc("GET /rooms", roomsync.NewHandler(p.rooms, writeProblem).Get)
	}
	p.addDiagnostics(local)
	adminapi.AddProfiles(local)
	guarded := httpserve.CheckLocal(httpserve.CheckOrigin(local))
	health := adminapi.Health(p.ready, promhttp.HandlerFor(p.registry, promhttp.HandlerOpts{}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := local.Handler(r); pattern != "" {
			guarded.ServeHTTP(w, r)
			return
		}
		health.ServeHTTP(w, r)
	})
}

// serveStatus answers GET /status.
func (p *healthPort) serveStatus(w http.ResponseWriter, r *http.Request) {
	now := p.ready.Now()
	body := map[string]any{"state": now.State, "reason": now.Reason, "since": now.Since, "version": Version, "name": hostName(),
		"uptime_s": int(time.Since(p.started).Seconds())}
	for name, part := range p.parts {
		body[name] = part(r.Context())
	}
	httpserve.WriteJSON(w, http.StatusOK, body)
}

// recorded returns a log that is also kept for GET /events.
func (o *commonOptions) recorded(log *slog.Logger) *slog.Logger {
	return slog.New(slog.NewMultiHandler(log.Handler(), o.events.handler()))
}

// addDiagnostics adds events and settings to a listener that only this machine may read.
func (o *commonOptions) addDiagnostics(mux *http.ServeMux) {
	mux.HandleFunc("GET /events", o.events.serve)
	mux.HandleFunc("GET /config", func(w http.ResponseWriter, _ *http.Request) { httpserve.WriteJSON(w, http.StatusOK, o.shown) })
}
