package serve

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
	"rankcache/internal/cli"
	"rankcache/internal/roomsync"
	"rankcache/internal/tracing"
	"rankcache/keeper"
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
	"rankcache/wire"
	"rankcache/writer"
)

// newSidecar builds every part and opens the listeners, so that a bad setting is an error at once. It starts nothing.
func newSidecar(o *Options, log *slog.Logger) (*Sidecar, error) {
	s := newParts(o, log)
	s.history = &metricHistory{from: s.Registry}
	s.parts = append(s.parts, s.history)
	for _, build := range []func() error{s.listen, writePart{s}.check, s.buildBoards, s.buildOrigin, s.buildProfiles, s.buildReplay, s.buildAdmission, s.buildRooms, s.buildHot, writePart{s}.buildWriter, s.buildReader, s.buildResp, rpcPart{s}.buildRPC} {
		if err := build(); err != nil {
			s.close()
			return nil, err
		}
	}
	return s, nil
}

// newParts returns a sidecar that only has what its parts register with.
func newParts(o *Options, log *slog.Logger) *Sidecar {
	s := &Sidecar{options: o, started: time.Now(), log: log, Registry: cli.NewRegistry()}
	s.shown = newShownBoards(int(o.metricsBoards), func() []rankcache.BoardStatus { return s.runner.Status() })
	callWatch{s}.buildDependencies()
	return s
}

func (s *Sidecar) buildBoards() error {
	s.Local = localboard.NewBoards(localboard.WithChanged(rpcPart{s}.changed))
	s.Registry.MustRegister(localboard.Collector(s.Local, s.shown.label))
	return nil
}

func (s *Sidecar) buildOrigin() (err error) {
	if s.redis, err = s.options.DialRedis(); err != nil {
		return err
	}
	s.services[cli.ServiceRedis].Require(s.options.RedisNeed(s.redis, "serve", s.options.total, writePart{s}.answers), cli.PingRedis(s.redis))
	tracer, err := s.options.tracing.NewTracer(&s.options.Options, s.log)
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
		return cli.Usagef("--total: %w", err)
	}
	s.origin = origin.New(s.redis, s.options.Names, origin.WithTotalSource(total),
		origin.WithTimeout(s.options.RedisTimeout), origin.WithRegisterer(s.Registry),
		origin.WithData(func(id rankcache.BoardID) bool { return s.Rooms.Tiers().HasData(id) }))
	if s.options.isReplica() {
		s.reached = keeper.NewReached(s.states(), s.log)
		s.parts = append(s.parts, s.reached)
	}
	if err := s.buildReplicas(tracer); err != nil {
		return err
	}
	s.damage = newDamageLook(s.redis, s.options.Names)
	s.parts = append(s.parts, s.damage)
	return nil
}

func (s *Sidecar) buildReplay() (err error) {
	o := s.options
	if s.kept, err = o.snapshots.newStore(s.Registry); err != nil {
		return err
	}
	if s.snapshots, err = o.snapshots.newShared(func(id rankcache.BoardID) string { return s.boardLog(id).Topic }, s.log, s.Registry); err != nil {
		return err
	}
	var files replay.Files // nil pointers in the interfaces would not be nil
	if s.kept != nil {
		files = s.kept
	}
	var shared replay.Snapshots
	if s.snapshots != nil {
		shared = s.snapshots
	}
	states := callWatch{s}.watchStates(s.states())
	var reached func() time.Time
	if s.reached != nil { // states are read from the replica itself
		states, reached = nil, s.reached.At
	}
	inRedis, err := s.redisLog()
	if err != nil {
		return err
	}
	s.runner, err = replay.New(replay.Config{
		RedisLog: inRedis, Brokers: o.Kafka, Kafka: o.KafkaKeys, Names: o.Names, Log: s.boardLog, TotalSource: replayTotal(o.total),
		PublishEvery: o.publishEvery, TotalsEvery: o.totalsEvery, AuditEvery: orNever(o.auditEvery), AuditRows: orNever(o.auditRows), Deadline: o.deadline,
		States: states, Reached: reached, Files: files, Snapshots: shared, SaveEvery: o.snapshots.every, MaxStale: o.snapshots.maxAge, BoardLabel: s.shown.label, KafkaAnswered: s.services[cli.ServiceKafka].Observe, KafkaLogin: o.KafkaLogin(s.log),
		Memory: func(ctx context.Context, board rankcache.BoardID) (func(), error) {
			return s.admission.Fill(ctx, board)
		},
	}, FilledBoards{s.Local, s.profiles, func() *rooms.File { return s.Rooms.File() }}, GateOrigin{s.origin}, s.log, s.Registry)
	if o.HasLog() { // else no board is whole here
		s.parts = append(s.parts, background(s.runner.Run))
	}
	return err
}

// states returns where keepers publish the states of boards.
func (s *Sidecar) states() *keeper.Value {
	instance := s.options.poll.VerdictInstance()
	return &keeper.Value{Redis: s.redis, Key: s.options.Names.StatesKey(instance), Written: s.options.Names.WrittenKey(instance), Instance: instance, Timeout: s.options.RedisTimeout}
}

// boardLog returns where the updates of a board are, as the rooms file in force has it. In the log in Redis those of all
// are, and a board that begins with it needs nothing from before.
func (s *Sidecar) boardLog(id rankcache.BoardID) rooms.Log {
	log := s.Rooms.File().Log(s.options.Names, id)
	if s.options.LogInRedis() {
		log.Topic, log.Shared, log.First = wire.LogKey, true, time.Now()
	}
	return log
}

// redisLog returns the log of changes in Redis, nil if it is in Kafka.
func (s *Sidecar) redisLog() (replay.RedisLog, error) {
	switch o := s.options; {
	case !o.LogInRedis():
		return nil, nil
	case o.isReplica():
		return nil, cli.Usagef("--log redis can't be used with --redis-role replica: regions follow a log in Kafka")
	case o.total != "seq":
		return nil, cli.Usagef("--log redis can't be used with --total %s: its changes have seqs", o.total)
	}
	log, err := s.origin.Log()
	if err != nil {
		return nil, cli.Usagef("--log redis: %w", err)
	}
	return log, nil
}

// orNever returns a setting for replay, where a negative one is never and 0 the default.
func orNever[T time.Duration | int](v T) T {
	if v == 0 {
		return -1
	}
	return v
}

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
	cfg := roomsync.Config{File: s.options.Rooms, Parse: s.options.ParseRooms, CheckBoard: s.options.Names.CheckBoard, NoLog: !s.options.HasLog(), NoKafka: s.options.HasLog() && !s.options.HasKafka(), Origin: s.origin, Histories: s.origin.Histories, Shared: s.options.SharedRooms(s.redis), Changed: changed, Log: s.log}
	if s.kept != nil { // a nil *Store in the interface would not be nil
		cfg.Kept = s.kept
	}
	s.Rooms = roomsync.New(cfg, s.Registry)
	if err := s.Rooms.Load(); err != nil {
		return cli.Usagef("--rooms: %w", err)
	}
	s.parts = append(s.parts, s.Rooms)
	return nil
}

func (s *Sidecar) buildReader() (err error) {
	cfg := sidecar.Config{Tiers: s.Rooms.Tiers, CheckBoard: s.options.Names.CheckBoard, Used: s.Rooms.Use, OwnWrites: s.writer != nil, Boards: OpenBoards{s.Local}, Origin: s.boardOrigin(), Ladders: s.origin, SmallStale: s.options.smallStale, Log: s.log}
	if s.reached != nil { // the ladder's reads have no age
		cfg.Boards, cfg.OriginLags, cfg.Ladders = youngBoards{s.Local, s.options.snapshots.maxAge}, true, nil
	}
	if s.tracker != nil { // a nil *Tracker in the interface would not be nil
		cfg.Hot, cfg.Written = s.tracker, s.written
		if s.kept != nil {
			s.keptTops = newKeptTops(s)
			cfg.Hot, s.parts = s.keptTops, append(s.parts, s.keptTops)
		}
	}
	if s.profiles != nil {
		cfg.Profiles = s.profiles
	}
	if o := s.options; o.ledgerURL != "" {
		ledger, err := reads.NewClient(o.ledgerURL, s.services[cli.ServiceLedger].Observe)
		if err != nil {
			return cli.Usagef("--ledger-url: %w", err)
		}
		cfg.Ledger = ledger
		s.services[cli.ServiceLedger].Require(nil, ledger.Ready)
	}
	if s.reader, err = sidecar.NewReader(cfg, s.Registry); err != nil {
		return err
	}
	s.ready = adminapi.NewReadiness(s.startup, s.runner.Status)
	s.ready.Partly = writePart{s}.fault
	s.options.RegisterProcess(s.Registry, s.ready)
	s.Registry.MustRegister(boardAges{s.Local, s.runner.Status, s.shown.label})
	older, err := compat.NewReads(compat.Config{Reader: s.reader, Profiles: s.reader.Profiles(), Classes: s.Rooms.File, Problem: httpapi.ProblemOf,
		Board: rankcache.BoardID(s.options.compatBoard)})
	if err != nil {
		return cli.Usagef("--compat-board: %w", err)
	}
	data := httpapi.Config{MaxConns: s.listeners.Most("data", "socket"), Hosts: s.options.hosts, ReadTimeout: s.options.ReadTimeout, Trace: s.trace, Classes: s.Rooms.File, Compat: older, Writer: writePart{s}.handler()}
	if s.writer != nil {
		data.DrainTimeout = writer.PostTimeout + time.Second // no post is cut off
	}
	s.dataServer, err = httpapi.New(s.reader, data, s.log, s.Registry)
	return err
}

// buildResp builds the listener for clients of Redis, if there is to be one.
func (s *Sidecar) buildResp() (err error) {
	o := s.options
	if !o.resp.enabled() {
		return nil
	}
	client, ok := s.redis.(*redis.Client)
	if !ok {
		return cli.Usagef("--resp can't be used with --redis-mode %s: it relays to one server", o.RedisMode)
	}
	cfg := resp.Config{MaxConns: s.listeners.Most("resp", "resp-socket"), Dial: rawDial(client.Options()), OneMaster: o.RedisMode == origin.ModeSentinel, Credentials: o.Credentials, DB: client.Options().DB,
		Names: o.Names, MaxAge: o.resp.maxAge, UpstreamTimeout: o.RedisTimeout}
	if o.LogInRedis() {
		size, err := o.LogBytes()
		if err != nil {
			return err
		}
		cfg.Logged, cfg.LogEntries = s.logsWrites, size/wire.LogEntryBytes
	}
	s.respServer, err = resp.New(s.reader, cfg, s.log, s.Registry)
	s.parts = append(s.parts, s.respServer)
	return err
}

// written has the copy of a board that was written through this process made as new, or known to be: a hot page, or what
// the log in Redis brings. The channel is the page's.
func (s *Sidecar) written(b rankcache.BoardID) <-chan struct{} {
	if s.options.LogInRedis() {
		s.runner.Written(b)
	}
	return s.tracker.Written(b)
}

// logsWrites reports whether what clients of Redis write to a board goes into the log there: it is whole in sidecars, and
// of no class, whose rules are the writer's.
func (s *Sidecar) logsWrites(b rankcache.BoardID) bool {
	if s.Rooms.Tiers().Mode(b, "") != rooms.ModeSuperHot {
		return false
	}
	_, _, ofClass := s.Rooms.File().Board(b)
	return !ofClass
}

func (s *Sidecar) buildProfiles() error {
	o := s.options.profiles
	source, err := o.source(s.redis)
	if err != nil || source == nil {
		return err
	}
	o.cache.Budget = o.budgetMB << 20
	if s.profiles, err = profile.New(o.cache, callWatch{s}.watchProfiles(source), s.log, s.Registry); err != nil {
		return cli.Usagef("profiles: %w", err)
	}
	s.parts = append(s.parts, s.profiles, background(func(ctx context.Context) error { return warmNamed(ctx, s.Rooms, s.origin, s.profiles) }))
	return nil
}

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
	s.memory = newMemoryShare(limits, budget, profiles, s.options.KafkaKeys, s.log)
	s.memory.budget() // limits Go from the start
	s.admission = admission.New(admission.Config{Budget: s.memory.budget, Origin: boardSizes{s.origin, s.headers()}, Usage: heldBoards{s.Local}.held,
		Follow: s.runner.Follow, Log: s.log}, s.Registry)
	if s.options.HasLog() {
		s.parts = append(s.parts, s.admission)
	}
	return nil
}

// buildHot builds the hot tier: tracker, verdict reader and, unless another process polls, the poller.
func (s *Sidecar) buildHot() (err error) {
	o := s.options
	if !o.hotKeys {
		return nil
	}
	var verdicts *hotkey.VerdictReader
	s.tracker, err = hotkey.New(o.hot, hotkey.Deps{Origin: warmingOrigin{s.boardOrigin(), s.profiles}, Tiers: s.Rooms.Tiers,
		Exchange: func(ctx context.Context, report []byte) {
			if s.reached != nil {
				report = nil // nothing is written to a replica
			}
			verdicts.Exchange(ctx, report)
		},
		Open: OpenBoards{s.Local}.IsOpen, Changed: rpcPart{s}.changed, Histories: s.origin.Histories, Log: s.log, Registry: s.Registry})
	if err != nil {
		return cli.Usagef("hot boards: %w", err)
	}
	verdicts = hotkey.NewVerdictReader(s.redis, o.Names, o.poll.VerdictInstance(), cli.ProcessName(), callWatch{s}.watchVerdicts(s.tracker), s.log, s.Registry)
	s.parts = append(s.parts, s.tracker)
	if s.reached != nil {
		s.services[cli.ServiceHotKeys].Off("this region only reads: the verdict is the writing region's")
		return nil
	}
	o.poll.Poller.Answered = callWatch{s}.hotKeysAnswered
	if o.poll.Source != hotkey.SourceFleet { // else the verdict may be this process's own
		o.poll.Poller.Idle = s.tracker.OfFleet
	}
	poller, err := o.poll.NewPoller(s.redis, o.Names, s.log, s.Registry)
	if err != nil {
		return cli.Usagef("hot-key source: %w", err)
	}
	if poller == nil {
		s.services[cli.ServiceHotKeys].Off("this process asks no source; a verdict of the fleet's poller takes this back")
		return nil
	}
	s.parts = append(s.parts, poller)
	return nil
}

// NewSidecar builds the sidecar that "rankcache serve" with these arguments is, for a program that runs it in its own
// process. It opens the listeners and starts nothing; neither environment nor file of settings is read. The rooms file
// is parsed by parseRooms, or by [rooms.Parse] if that is nil.
func NewSidecar(args []string, parseRooms func([]byte) (*rooms.File, error), log *slog.Logger) (*Sidecar, error) {
	o := &Options{}
	if err := cli.ParseArgs("serve", o, args); err != nil {
		return nil, err
	}
	o.LogTo(log)
	o.ParseRooms = parseRooms
	return newSidecar(o, o.Recorded(log))
}
