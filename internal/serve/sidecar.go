package serve

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"rankcache"
	"rankcache/hotkey"
	"rankcache/internal/cli"
	"rankcache/internal/health"
	"rankcache/internal/httpserve"
	"rankcache/internal/roomsync"
	"rankcache/keeper"
	"rankcache/localboard"
	"rankcache/origin"
	"rankcache/profile"
	"rankcache/replay"
	"rankcache/replay/admission"
	"rankcache/replay/files"
	"rankcache/sidecar"
	"rankcache/sidecar/adminapi"
	"rankcache/sidecar/httpapi"
	"rankcache/sidecar/resp"
	"rankcache/sidecar/rpc"
	"rankcache/writer"
)

// Sidecar is one sidecar: the peers joined, and its listeners.
type Sidecar struct {
	options   *Options
	log       *slog.Logger
	started   time.Time
	Registry  *cli.Registry
	history   *metricHistory
	shown     *shownBoards
	redis     redis.UniversalClient
	origin    *origin.Origin
	reached   *keeper.Reached // nil: Redis is the writing region's
	readRedis redis.UniversalClient
	replicas  *origin.Replicas // nil: none is read
	damage    *damageLook
	Rooms     *roomsync.Follower
	memory    *memoryShare
	Local     *localboard.Boards
	kept      *files.Store  // nil: boards are not kept over a restart
	snapshots *files.Shared // nil: the fleet has none
	keptTops  *keptTops     // nil: no pages are
	runner    *replay.Runner
	admission *admission.Admission
	tracker   *hotkey.Tracker // nil: no hot tier
	profiles  *profile.Cache  // nil: no profiles
	parts     []runnable      // in the order in which they were built
	reader    *sidecar.Reader
	ready     *adminapi.Readiness
	trace     func(ctx context.Context, traceparent, tracestate string) context.Context // nil: no traces
	services  health.Needs                                                              // that are called

	dataServer *httpapi.Server
	respServer *resp.Server   // nil: no listener for clients of Redis
	rpcServer  *rpc.Server    // nil: no listener for live pages, Connect and gRPC
	writer     *writer.Writer // nil: no changes are taken
	listeners  cli.Listeners
	quit       context.CancelFunc // ends it as SIGTERM does; set while it runs
}

type runnable interface{ Run(context.Context) error }

// Run serves until ctx is done and the drain is over.
func (s *Sidecar) Run(ctx context.Context) error { return s.run(ctx) }

// Addr returns where the listener of a flag ("data", "admin", "health") listens.
func (s *Sidecar) Addr(flag string) string { return s.listeners.Addr(flag) }

// Boards returns how far the super-hot boards are.
func (s *Sidecar) Boards() *replay.Runner { return s.runner }

// Ready reports whether the sidecar is ready, and why not.
func (s *Sidecar) Ready() (bool, string) {
	now := s.ready.Now()
	return now.State == adminapi.StateReady, now.Reason
}

// Hot returns the boards of the hot tier, as GET /hotkeys does.
func (s *Sidecar) Hot() []hotkey.Row { return s.tracker.Hot() }

// startup reports whether all super-hot boards are open or given up, and if not, why. Redis has to answer first, or
// files while it is away, and to list the boards that run in the rooms, and their sizes; it is waited for as long as
// for a board. A Kafka that is away is not waited for any longer, one that refuses this user is.
func (s *Sidecar) startup() (bool, string) {
	waited := time.Since(s.started) >= s.options.deadline
	met, why := s.services.Met()
	kafka := s.services[cli.ServiceKafka]
	switch {
	case !met && !s.answersFromFiles():
		return false, why
	case met && !s.Rooms.SharedRead():
		return false, cli.NotReadYet(s.Rooms)
	case kafka.Refused():
		return false, cli.ServiceKafka + ": " + kafka.Status().LastError
	case !s.Rooms.Resolved() && !waited:
		return false, "waiting for Redis: which rooms are set at run time, and which boards run in them"
	case !s.options.HasLog():
		return true, ""
	case !s.admission.Decided() && !waited:
		return false, "waiting for Redis: how large the boards are"
	case !s.admission.Decided():
		return true, "the sizes of the boards are unknown: Redis answers them until it gives the sizes"
	}
	return s.runner.Ready()
}

// answersFromFiles reports whether files answer while Redis is away. One that refuses this process is not away.
func (s *Sidecar) answersFromFiles() bool {
	if s.kept == nil && s.snapshots == nil || s.services[cli.ServiceRedis].Refused() {
		return false
	}
	return s.keptTops != nil && s.keptTops.answers() ||
		slices.ContainsFunc(s.runner.Status(), func(b rankcache.BoardStatus) bool { return b.State == rankcache.StateStale })
}

func (s *Sidecar) listen() (err error) {
	o := s.options
	s.listeners, err = cli.OpenListeners(s.log, o.addresses()...)
	for _, flag := range []string{"data", "admin", "resp", "rpc"} {
		if addr := s.listeners.Addr(flag); addr != "" && !httpserve.OnlyLocal(addr) {
			s.log.Warn("listener is reachable from outside the pod and unauthenticated", "port", flag, "addr", addr)
		}
	}
	return err
}

func (o *Options) addresses() []cli.FlagAddr {
	return []cli.FlagAddr{{Flag: "data", Addr: o.data, Conns: httpapi.DefaultMaxConns}, {Flag: "socket", Addr: cli.UnixAddr(o.socket), Shares: true},
		{Flag: "admin", Addr: o.admin}, {Flag: "health", Addr: o.health},
		{Flag: "resp", Addr: o.resp.addr, Conns: resp.DefaultMaxConns, Files: 2}, // each client may have a connection to Redis of its own
		{Flag: "resp-socket", Addr: cli.UnixAddr(o.resp.socket), Shares: true},
		{Flag: "rpc", Addr: o.rpc.addr, Conns: int(o.rpc.streams) + rpc.DefaultMaxConns}}
}

// close frees the resources that run has not freed. It may be called after run.
func (s *Sidecar) close() {
	s.listeners.Close()
	if s.redis != nil {
		s.redis.Close()
	}
	if s.readRedis != nil {
		s.readRedis.Close()
	}
}

// run works until ctx is done, reports not ready, answers for the drain time and returns. One failure ends all.
func (s *Sidecar) run(ctx context.Context) error {
	procs := processors()
	ctx, s.quit = context.WithCancel(ctx)
	defer s.quit()
	live, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(cli.ErrStopped)
	group, live := errgroup.WithContext(live)
	checkRole := cli.CheckRole
	if s.options.isReplica() {
		checkRole = cli.CheckReplica
	}
	group.Go(func() error { return checkRole(live, s.redis, s.log) })
	for _, part := range s.parts {
		group.Go(func() error { return part.Run(live) })
	}
	s.startListeners(group, live)
	s.log.Info("serving", "gomaxprocs", procs, "data", s.listeners.Addr("data"), "resp", s.listeners.Addr("resp"), "rpc", s.listeners.Addr("rpc"), "admin", s.listeners.Addr("admin"), "health", s.listeners.Addr("health"), "version", cli.Version)
	defer context.AfterFunc(ctx, s.dataServer.Drain)()
	if s.rpcServer != nil {
		defer context.AfterFunc(ctx, s.rpcServer.Drain)()
	}
	group.Go(func() error {
		cli.Drained(ctx, live, s.ready, s.options.drain, s.callers(), s.log)
		stop(cli.ErrStopped)
		return nil
	})
	return group.Wait()
}

// callers counts the connections of all listeners for the app; nil if the drain does not depend on them.
func (s *Sidecar) callers() cli.Connections {
	if !s.options.drainEarly {
		return nil
	}
	return func() (open int, ever uint64) {
		open, ever = s.dataServer.Conns()
		if s.respServer != nil {
			respOpen, respEver := s.respServer.Conns()
			open, ever = open+respOpen, ever+respEver
		}
		if s.rpcServer != nil {
			rpcOpen, rpcEver := s.rpcServer.Conns()
			open, ever = open+rpcOpen, ever+rpcEver
		}
		return open, ever
	}
}

func (s *Sidecar) startListeners(group *errgroup.Group, ctx context.Context) {
	metrics := promhttp.HandlerFor(s.shown.gatherer(s.Registry), promhttp.HandlerOpts{})
	handlers := map[string]http.Handler{"admin": adminPort{s}.handler(metrics), "health": adminapi.Health(s.ready, metrics)}
	configs := map[string]httpserve.Config{"admin": {Hosts: s.options.hosts, ReadTimeout: s.options.ReadTimeout}, "health": s.options.Probes(s.options.hosts)}
	var data sync.WaitGroup
	for _, l := range s.listeners {
		if handler := handlers[l.Flag]; handler != nil {
			group.Go(func() error { return l.Serve(ctx, handler, configs[l.Flag], s.log) })
			continue
		}
		if strings.HasPrefix(l.Flag, "resp") {
			group.Go(func() error { return s.respServer.Serve(ctx, l) })
			continue
		}
		if l.Flag == "rpc" {
			group.Go(func() error { return s.rpcServer.Serve(ctx, l) })
			continue
		}
		data.Add(1)
		group.Go(func() error {
			defer data.Done()
			return s.dataServer.Serve(ctx, l)
		})
	}
	writePart{s}.start(group, ctx, &data)
}
