package app

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/compat"
	"rankcache/hotkey"
	"rankcache/internal/roomsync"
	"rankcache/internal/tracing"
	"rankcache/ledger/reads"
	"rankcache/localboard"
	"rankcache/origin"
	"rankcache/profile"
	"rankcache/replay"
	"rankcache/replay/admission"
	"rankcache/rooms"
	"rankcache/sidecar"
	"rankcache/sidecar/adminapi"
	"rankcache/sidecar/httpapi"
	"rankcache/sidecar/resp"
)

// newSidecar builds every part and opens the listeners, so that a bad setting
// or a port in use is an error at once. It starts nothing.
func newSidecar(o *serveOptions, log *slog.Logger) (*Sidecar, error) {
	s := &Sidecar{options: o, started: time.Now(), registry: newRegistry()}
	s.shown = newShownBoards(int(o.metricsBoards), func() []rankcache.BoardStatus { return s.runner.Status() })
	s.log = o.recorded(log)
	s.history = &metricHistory{from: s.registry}
	s.parts = append(s.parts, s.history)
	callWatch{s}.buildDependencies()
	for _, build := range []func() error{s.buildBoards, s.buildOrigin, s.buildProfiles, s.buildReplay, s.buildAdmission, s.buildRooms, s.buildHot, s.buildReader, s.buildResp, rpcPart{s}.buildRPC, s.listen} {
		if err := build(); err != nil {
			s.close()
			return nil, err
		}
	}
	return s, nil
}

func (s *Sidecar) buildBoards() error {
	s.boards = localboard.NewBoards(localboard.WithChanged(rpcPart{s}.changed))
	s.registry.MustRegister(localboard.Collector(s.boards, s.shown.label))
	return nil
}

func (s *Sidecar) buildOrigin() (err error) {
	if s.redis, err = s.options.dialRedis(); err != nil {
		return err
	}
	s.services[serviceRedis].Require(s.options.redisNeed(s.redis, "serve", s.options.total, nil), pingRedis(s.redis))
	tracer, err := s.options.tracing.newTracer(s.log)
	if err != nil {
		return err
	}
	if tracer != nil {
		s.redis.AddHook(tracer.Hook())
		s.trace = tracing.Continue
		s.parts = append(s.parts, tracer)
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
	if s.kept, err = o.snapshots.newStore(s.registry); err != nil {
		return err
	}
	var files replay.Files // a nil *Store in it would not be nil
	if s.kept != nil {
		files = keptBoards{s.kept}
	}
	s.runner, err = replay.New(replay.Config{
		Brokers: o.kafka, Kafka: o.kafkaKeys, Names: o.names, Log: s.boardLog, TotalSource: replayTotal(o.total),
		PublishEvery: o.publishEvery, TotalsEvery: o.totalsEvery, AuditEvery: orNever(o.auditEvery), AuditRows: orNever(o.auditRows), Deadline: o.deadline,
		Files: files, SaveEvery: o.snapshots.every, MaxStale: o.snapshots.maxAge, BoardLabel: s.shown.label, KafkaAnswered: s.services[serviceKafka].Observe, KafkaLogin: o.kafkaLogin(s.log),
		Memory: func(ctx context.Context, board rankcache.BoardID) (func(), error) {
			return s.admission.Fill(ctx, board)
		},
	}, FilledBoards{s.boards, s.profiles, func() *rooms.File { return s.rooms.File() }}, GateOrigin{s.origin}, s.log, s.registry)
	s.parts = append(s.parts, s.runner)
	return err
}

// boardLog returns where the updates of a board are, as the rooms file in force has it.
func (s *Sidecar) boardLog(id rankcache.BoardID) rooms.Log {
	return s.rooms.File().Log(s.options.names, id)
}

// orNever returns a setting for replay, where a negative one is never and 0 the default.
func orNever[T time.Duration | int](v T) T {
	if v == 0 {
		return -1
	}
	return v
}

// replayTotal returns replay's value of --total.
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
	s.rooms = roomsync.New(roomsync.Config{File: s.options.rooms, Parse: s.options.parseRooms, CheckBoard: s.options.names.CheckBoard, Origin: s.origin, Shared: s.options.sharedRooms(s.redis),
		Changed: changed, Log: s.log}, s.registry)
	if err := s.rooms.Load(); err != nil {
		return Usagef("--rooms: %w", err)
	}
	s.parts = append(s.parts, s.rooms)
	return nil
}

func (s *Sidecar) buildReader() (err error) {
	cfg := sidecar.Config{Tiers: s.rooms.Tiers, CheckBoard: s.options.names.CheckBoard, Boards: OpenBoards{s.boards}, Origin: s.origin, Log: s.log}
	if s.tracker != nil { // a nil *Tracker in the interface would not be nil
		cfg.Hot = s.tracker
		if s.kept != nil {
			s.keptTops = newKeptTops(s)
			cfg.Hot, s.parts = s.keptTops, append(s.parts, s.keptTops)
		}
	}
	if s.profiles != nil {
		cfg.Profiles = s.profiles
	}
	if o := s.options; o.ledgerURL != "" {
		ledger, err := reads.NewClient(o.ledgerURL, s.services[serviceLedger].Observe)
		if err != nil {
			return Usagef("--ledger-url: %w", err)
		}
		cfg.Ledger = ledger
		s.services[serviceLedger].Require(nil, ledger.Ready)
	}
	if s.reader, err = sidecar.NewReader(cfg, s.registry); err != nil {
		return err
	}
	s.ready = adminapi.NewReadiness(s.startup, s.runner.Status)
	registerProcess(s.registry, s.ready)
	s.registry.MustRegister(boardAges{s.boards, s.runner.Status, s.shown.label})
	older, err := compat.NewReads(compat.Config{Reader: s.reader, Profiles: s.reader.Profiles(), Classes: s.rooms.File, Problem: httpapi.ProblemOf,
		Board: rankcache.BoardID(s.options.compatBoard)})
	if err != nil {
		return Usagef("--compat-board: %w", err)
	}
	data := httpapi.Config{Hosts: s.options.hosts, ReadTimeout: s.options.readTimeout, Trace: s.trace, Classes: s.rooms.File, Compat: older}
	s.dataServer, err = httpapi.New(s.reader, data, s.log, s.registry)
	return err
}

// buildResp builds the listener for clients of Redis, if there is to be one.
func (s *Sidecar) buildResp() (err error) {
	o := s.options
	if !o.resp.enabled() {
		return nil
	}
	client, ok := s.redis.(*redis.Client)
	if !ok || o.redisMode == origin.ModeCluster {
		return Usagef("--resp can't be used with --redis-mode cluster: clients of a cluster connect to its nodes by themselves")
	}
	s.respServer, err = resp.New(s.reader, resp.Config{Dial: rawDial(client.Options()), OneMaster: o.redisMode == origin.ModeSentinel, Credentials: o.credentials, DB: client.Options().DB,
		Names: o.names, MaxAge: o.resp.maxAge, UpstreamTimeout: o.redisTimeout}, s.log, s.registry)
	s.parts = append(s.parts, s.respServer)
	return err
}

// buildProfiles builds the profile cache if a source is configured.
func (s *Sidecar) buildProfiles() error {
	o := s.options.profiles
	source, err := o.source(s.redis)
	if err != nil || source == nil {
		return err
	}
	o.cache.Budget = o.budgetMB << 20
	if s.profiles, err = profile.New(o.cache, callWatch{s}.watchProfiles(source), s.log, s.registry); err != nil {
		return Usagef("profiles: %w", err)
	}
	s.parts = append(s.parts, s.profiles, runFunc(func(ctx context.Context) error { return warmNamed(ctx, s.rooms, s.origin, s.profiles) }))
	return nil
}

// buildAdmission builds the admission of boards by memory.
func (s *Sidecar) buildAdmission() error {
	limits, err := findMemoryLimits()
	if err != nil && strings.HasSuffix(s.options.memoryBudget, "%") {
		return fmt.Errorf("--memory-budget %s: %w: give it in bytes", s.options.memoryBudget, err)
	}
	budget, err := limits.budget(s.options.memoryBudget)
	if err != nil {
		return err
	}
	profiles := int64(0)
	if s.profiles != nil {
		profiles = s.options.profiles.budgetMB << 20
	}
	s.memory = newMemoryShare(limits, budget, profiles, s.options.kafkaKeys, s.log)
	s.memory.budget() // limits Go from the start
	s.admission = admission.New(admission.Config{Budget: s.memory.budget, Origin: boardSizes{s.origin, s.kept}, Usage: heldBoards{s.boards}.held,
		Follow: s.runner.Follow, Log: s.log}, s.registry)
	s.parts = append(s.parts, s.admission)
	return nil
}

// buildHot builds the hot tier: the tracker, the follower of the fleet's verdict
// and, unless another process polls, the poller.
func (s *Sidecar) buildHot() (err error) {
	o := s.options
	if !o.hotKeys {
		return nil
	}
	s.tracker, err = hotkey.New(o.hot, hotkey.Deps{Origin: warmingOrigin{s.origin, s.profiles}, Tiers: s.rooms.Tiers,
		Open: OpenBoards{s.boards}.IsOpen, Changed: rpcPart{s}.changed, Log: s.log, Registry: s.registry})
	if err != nil {
		return Usagef("hot boards: %w", err)
	}
	key := o.names.HotKey(o.poll.verdictInstance())
	s.parts = append(s.parts, s.tracker, hotkey.NewVerdictReader(s.redis, key, callWatch{s}.watchVerdicts(s.tracker), s.log, s.registry))
	o.poll.poller.Answered = callWatch{s}.hotKeysAnswered
	poller, err := o.poll.newPoller(s.redis, o.names, s.log, s.registry)
	if err != nil {
		return Usagef("hot-key source: %w", err)
	}
	if poller != nil {
		s.parts = append(s.parts, poller)
	}
	return nil
}
