package app

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"rankcache/admission"
	"rankcache/hotkey"
	"rankcache/internal/httpserve"
	"rankcache/internal/roomsync"
	"rankcache/internal/yield"
	"rankcache/lastgood"
	"rankcache/localboard"
	"rankcache/origin"
	"rankcache/profile"
	"rankcache/replay"
	"rankcache/rooms"
	"rankcache/sidecar"
	"rankcache/sidecar/adminapi"
	"rankcache/sidecar/httpapi"
)

// Sidecar is one sidecar: the folders of the star joined, and its listeners.
type Sidecar struct {
	options   *serveOptions
	log       *slog.Logger
	started   time.Time
	registry  *registry
	redis     redis.UniversalClient
	origin    *origin.Origin
	rooms     *roomsync.Follower
	memory    memoryLimits
	way       *yield.Poller // that publications give
	boards    *localboard.Boards
	kept      *lastgood.Store // nil: boards are not kept over a restart
	runner    *replay.Runner
	admission *admission.Admission
	tracker   *hotkey.Tracker // nil: no hot tier
	profiles  *profile.Cache  // nil: no profiles
	parts     []runnable      // in the order in which they were built
	reader    *sidecar.Reader
	ready     *adminapi.Readiness
	services  adminapi.Dependencies // that are called

	dataServer *httpapi.Server
	listeners  listeners
}

// runnable is a long-lived part.
type runnable interface{ Run(context.Context) error }

// newSidecar builds every part and opens the listeners, so that a bad setting
// or a port that is taken is said at once. It starts nothing.
func newSidecar(o *serveOptions, log *slog.Logger) (*Sidecar, error) {
	s := &Sidecar{options: o, log: log, started: time.Now(), registry: newRegistry()}
	s.buildDependencies()
	for _, build := range []func() error{s.buildBoards, s.buildOrigin, s.buildProfiles, s.buildReplay, s.buildAdmission, s.buildRooms, s.buildHot, s.buildReader, s.listen} {
		if err := build(); err != nil {
			s.close()
			return nil, err
		}
	}
	return s, nil
}

func (s *Sidecar) buildBoards() (err error) {
	if s.way, err = yield.New(); err != nil {
		return err
	}
	s.boards = localboard.NewBoards(localboard.WithYield(s.way.Yield))
	s.registry.MustRegister(localboard.Collector(s.boards))
	return nil
}

func (s *Sidecar) buildOrigin() (err error) {
	if s.redis, err = s.options.dialRedis(); err != nil {
		return err
	}
	s.watchRedis()
	if err := s.buildTracing(); err != nil {
		return err
	}
	total, err := origin.ParseTotalSource(s.options.total)
	if err != nil {
		return Usagef("--total: %w", err)
	}
	s.origin = origin.New(s.redis, s.options.names, origin.WithTotalSource(total),
		origin.WithTimeout(s.options.redisTimeout), origin.WithRegisterer(s.registry))
	return nil
}

func (s *Sidecar) buildReplay() (err error) {
	o := s.options
	files, err := s.files()
	if err != nil {
		return err
	}
	s.runner, err = replay.New(replay.Config{
		Brokers: o.kafka, Kafka: o.kafkaKeys, Names: o.names, TotalSource: replayTotal(o.total),
		PublishEvery: o.publishEvery, TotalsEvery: o.totalsEvery, AuditEvery: auditEvery(o.auditEvery), Deadline: o.deadline, DeadlinePerUpdate: o.perUpdate,
		Files: files, SaveEvery: o.snapshots.every, MaxStale: o.snapshots.maxAge, KafkaAnswered: s.services[serviceKafka].Observe,
	}, FilledBoards{s.boards, s.profiles}, GateOrigin{s.origin}, s.log, s.registry)
	s.parts = append(s.parts, s.runner)
	return err
}

// auditEvery says in replay's words that 0 is never.
func auditEvery(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

// replayTotal says in replay's words what --total says.
func replayTotal(total string) replay.TotalSource {
	switch total {
	case "seq":
		return replay.TotalSeq
	case "none":
		return replay.TotalNone
	}
	return replay.TotalOrders // key:<pattern>
}

func (s *Sidecar) buildRooms() error {
	changed := func(t *rooms.Tiers) { s.admission.Want(t.ByPriority(rooms.ModeSuperHot)) }
	s.rooms = roomsync.New(roomsync.Config{File: s.options.rooms, Origin: s.origin, Shared: s.options.sharedRooms(s.redis),
		Changed: changed, Log: s.log}, s.registry)
	if err := s.rooms.Load(); err != nil {
		return Usagef("--rooms: %w", err)
	}
	s.parts = append(s.parts, s.rooms)
	return nil
}

func (s *Sidecar) buildReader() (err error) {
	cfg := sidecar.Config{Tiers: s.rooms.Tiers, Boards: OpenBoards{s.boards}, Origin: s.origin, Log: s.log}
	if s.tracker != nil { // a nil *Tracker in the interface would not be nil
		cfg.Hot = s.tracker
	}
	if s.profiles != nil {
		cfg.Profiles = s.profiles
	}
	if s.reader, err = sidecar.NewReader(cfg, s.registry); err != nil {
		return err
	}
	s.ready = adminapi.NewReadiness(s.settled, s.runner.Status)
	registerProcess(s.registry, s.ready)
	s.registry.MustRegister(boardAges{s.boards, s.runner.Status})
	s.dataServer, err = httpapi.New(s.reader, httpapi.Config{Hosts: s.options.hosts, NoRequestCache: !s.options.requestCache}, s.log, s.registry)
	return err
}

// settled says whether the super-hot boards are open or given up. Until Redis
// has said which boards run in the rooms and how large they are, nobody knows
// them; a Redis that does not say so is waited for as long as for a board.
func (s *Sidecar) settled() (bool, string) {
	waited := time.Since(s.started) >= s.options.deadline
	switch {
	case !s.rooms.Resolved() && !waited:
		return false, "waiting for Redis to say which rooms are set at run time and which boards run in them"
	case !s.admission.Decided() && !waited:
		return false, "waiting for Redis to say how large the boards are"
	case !s.admission.Decided():
		return true, "Redis has not said how large the boards are: they are answered by Redis until it does"
	}
	return s.runner.Ready()
}

func (s *Sidecar) listen() (err error) {
	o := s.options
	s.listeners, err = openListeners(flagAddr{"data", o.data}, flagAddr{"socket", unixAddr(o.socket)},
		flagAddr{"admin", o.admin}, flagAddr{"health", o.health})
	for _, flag := range []string{"data", "admin"} {
		if addr := s.listeners.addr(flag); addr != "" && !httpserve.OnlyLocal(addr) {
			s.log.Warn("port can be reached from outside the pod and asks nobody who he is", "port", flag, "addr", addr)
		}
	}
	return err
}

// close frees what run has not. It is harmless after it.
func (s *Sidecar) close() {
	s.listeners.close()
	if s.way != nil {
		_ = s.way.Close() // a pipe of our own
	}
	if s.redis != nil {
		s.redis.Close()
	}
}

// run works until ctx is done; then it is not ready, answers for the drain time
// and ends. The first part that fails ends the others.
func (s *Sidecar) run(ctx context.Context) error {
	live, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(errStopped)
	group, live := errgroup.WithContext(live)
	for _, part := range s.parts {
		group.Go(func() error { return part.Run(live) })
	}
	s.startListeners(group, live)
	s.log.Info("serving", "data", s.listeners.addr("data"), "admin", s.listeners.addr("admin"), "health", s.listeners.addr("health"), "version", Version)
	defer context.AfterFunc(ctx, s.dataServer.Drain)()
	group.Go(func() error {
		drained(ctx, live, s.ready, s.options.drain, s.log)
		stop(errStopped)
		return nil
	})
	return group.Wait()
}

func (s *Sidecar) startListeners(group *errgroup.Group, ctx context.Context) {
	metrics := promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{})
	handlers := map[string]http.Handler{"admin": s.adminHandler(metrics), "health": adminapi.Health(s.ready, metrics)}
	configs := map[string]httpserve.Config{"admin": {Hosts: s.options.hosts}, "health": httpserve.ForProbes(s.options.hosts)}
	for _, l := range s.listeners {
		if handler := handlers[l.flag]; handler != nil {
			group.Go(func() error { return httpserve.Serve(ctx, l, handler, configs[l.flag], s.log) })
			continue
		}
		group.Go(func() error { return s.dataServer.Serve(ctx, l) })
	}
}

func (s *Sidecar) adminHandler(metrics http.Handler) http.Handler {
	status := &adminapi.Status{Readiness: s.ready, Reader: s.reader, Version: Version, Started: s.started, Dependencies: s.services,
		Sections: map[string]func() any{
			"rooms_file":    func() any { return s.rooms.Status().File },
			"rooms_dynamic": func() any { return s.rooms.Status().Dynamic },
			"memory":        func() any { return memoryStatus{s.memory, s.admission.Status()} },
		}}
	mux := adminapi.New(status, s.ready, metrics)
	s.addOperator(status, mux)
	mux.HandleFunc("GET /hotkeys", s.serveHot)
	h := roomsync.NewHandler(s.rooms, writeProblem)
	mux.HandleFunc("GET /rooms", h.Get)
	mux.Handle("POST /rooms", httpserve.RequireToken("the admin token", s.options.adminToken, http.HandlerFunc(h.Post)))
	mux.Handle("DELETE /rooms", httpserve.RequireToken("the admin token", s.options.adminToken, http.HandlerFunc(h.Delete)))
	mux.Handle("DELETE /profiles/{member}", httpserve.RequireToken("the admin token", s.options.adminToken, http.HandlerFunc(s.dropProfile)))
	return httpserve.CheckOrigin(adminapi.Routed(mux))
}

func (s *Sidecar) isReady() bool { return s.ready.Now().State == adminapi.StateReady }
