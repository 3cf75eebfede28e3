package cli

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

// HealthPort is what a process without admin port answers: probes and metrics to all, the rest to this machine.
type HealthPort struct {
	*Options
	log      *slog.Logger
	ready    *adminapi.Readiness
	registry *Registry
	started  time.Time
	Rooms    *roomsync.Follower                   // nil: it follows none
	Parts    map[string]func(context.Context) any // the process's own in /status
}

// Probes returns how a health port behaves.
func (o *Options) Probes(hosts []string) httpserve.Config {
	cfg := httpserve.ForProbes(hosts)
	cfg.ReadTimeout = o.ReadTimeout
	return cfg
}

// NewHealthPort returns the health port of a process, which the caller may give rooms and parts.
func NewHealthPort(o *Options, ready *adminapi.Readiness, reg *Registry, log *slog.Logger) *HealthPort {
	return &HealthPort{Options: o, log: log, ready: ready, registry: reg, started: time.Now()}
}

// Handler answers probes and metrics to all callers, and to those on this machine what explains the process.
func (p *HealthPort) Handler() http.Handler {
	local := http.NewServeMux()
	local.HandleFunc("GET /status", p.serveStatus)
	if p.Rooms != nil {
		local.HandleFunc("GET /rooms", roomsync.NewHandler(p.Rooms, WriteProblem).Get)
	}
	p.AddDiagnostics(local)
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

func (p *HealthPort) serveStatus(w http.ResponseWriter, r *http.Request) {
	now := p.ready.Now()
	body := map[string]any{"state": now.State, "reason": now.Reason, "since": now.Since, "version": Version, "name": HostName(),
		"uptime_s": int(time.Since(p.started).Seconds()), "files": p.FileStatuses()}
	for name, part := range p.Parts {
		body[name] = part(r.Context())
	}
	httpserve.WriteJSON(w, http.StatusOK, body)
}

// Recorded returns a log that is also kept for GET /events.
func (o *Options) Recorded(log *slog.Logger) *slog.Logger {
	return slog.New(slog.NewMultiHandler(o.events.handler(), log.Handler()))
}

// AddDiagnostics adds events and settings to a listener that only this machine may read.
func (o *Options) AddDiagnostics(mux *http.ServeMux) {
	mux.HandleFunc("GET /events", o.events.serve)
	mux.HandleFunc("GET /config", func(w http.ResponseWriter, _ *http.Request) { httpserve.WriteJSON(w, http.StatusOK, o.shown) })
}

const DefaultHealth = ":8972" // the address of the sidecar's health port
