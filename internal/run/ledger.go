package run

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"rankcache/internal/cli"
	"rankcache/internal/doctor"
	"rankcache/internal/health"
	"rankcache/internal/httpserve"
	"rankcache/ledger"
	ledgerhistory "rankcache/ledger/history"
	"rankcache/ledger/reads"
	"rankcache/origin"
	"rankcache/sidecar/adminapi"
)

const defaultLedgerHTTP = "127.0.0.1:8976" // the address of rankcache ledger

// LedgerOptions are the settings of rankcache ledger.
type LedgerOptions struct {
	cli.Options
	database *cli.Secret
	http     string
	hosts    []string
	group    string
	check    bool
	putAside bool
	reads    bool
	rebuild  bool
	keep     time.Duration
	classes  map[string]string
}

func NewLedgerCommand() *cobra.Command {
	o := &LedgerOptions{}
	cmd := &cobra.Command{
		Use:   "ledger",
		Short: "Keep every applied change in PostgreSQL, MariaDB or MySQL",
		Long: `Consume the topic rank_updates and write every change into a SQL database, with the
place in the topic in the same transaction, so that each is there exactly once. While
the database is away it waits; Kafka keeps the changes. Run as many as you like: they
share one consumer group. It makes its tables itself, unless --database-check is set.

A Redis that has lost boards (emptied, restarted from an old file) gets them back from
the database: for that it needs --redis and --rooms, those of the writers, and the rights
of a writer there. --rebuild-lost=false leaves that out: then commands of such boards wait.
Redis is also asked, in any case, before a change is said to be lost.`,
		Example: `  rankcache ledger --kafka kafka:9092 --database-file /run/secrets/database
  rankcache ledger check --database-file /run/secrets/database --board money:7`,
		Args: cli.NoArgs,
	}
	cmd.RunE = o.LongRunning(func(cmd *cobra.Command, log *slog.Logger) error { return Ledger(cmd.Context(), o, log) })
	o.Register(cmd.Flags())
	cmd.AddCommand(newLedgerCheckCommand(), newLedgerMigrateCommand(), newLedgerRetakeCommand())
	return cmd
}

func (o *LedgerOptions) Register(flags *pflag.FlagSet) {
	o.Options.Register(flags)
	o.database = cli.RegisterDatabase(flags)
	flags.BoolVar(&o.check, "database-check", false, "make no tables, and end if they are not this version's: rankcache ledger migrate makes them, as another user")
	flags.BoolVar(&o.putAside, "put-aside", false, "keep changes of newer writers in rank_bad and read on; else the ledger leaves the group at the first, and is not ready until it is upgraded")
	flags.BoolVar(&o.rebuild, "rebuild-lost", true, "rebuild the boards that Redis has lost: those that are written first, then all others with at most a fifth of Redis's core")
	registerServeReads(flags, &o.reads, "answer sidecars (--ledger-url) while Redis is away, on --http; it has an index made, which each change pays for")
	flags.StringVar(&o.http, "http", defaultLedgerHTTP, "`address` of reads, probes, metrics and status")
	flags.StringSliceVar(&o.hosts, "allow-host", nil, "further `names` that callers may put into Host on loopback ports")
	flags.StringVar(&o.group, "ledger-group", ledger.DefaultGroup, "Kafka consumer group that all ledgers of one database share")
	flags.DurationVar(&o.keep, "ledger-keep", 0, "how long changes are kept, by their time; 0 for ever")
	flags.StringToStringVar(&o.classes, "ledger-keep-class", nil, "how long changes of boards of a class are kept, as `class=time`; they win over --ledger-keep")
}

func registerServeReads(flags *pflag.FlagSet, on *bool, usage string) {
	flags.BoolVar(on, "serve-reads", false, usage)
}

func (o *LedgerOptions) keeps() (ledger.Keep, error) {
	keep := ledger.Keep{Default: o.keep, Classes: make(map[string]time.Duration)}
	for class, text := range o.classes {
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return keep, cli.Usagef("--ledger-keep-class %s=%s: want a time such as 720h, or 0 for ever", class, text)
		}
		keep.Classes[class] = d
	}
	if o.keep < 0 {
		return keep, cli.Usagef("--ledger-keep %v: want 0 or more", o.keep)
	}
	return keep, nil
}

type ledgerProcess struct {
	options   *LedgerOptions
	log       *slog.Logger
	registry  *cli.Registry
	store     *ledger.Store
	forReads  *ledger.Store // with connections of its own
	reads     *reads.Server // nil: none are served
	redis     redis.UniversalClient
	lost      *rebuildsLost // nil: lost boards are not rebuilt
	ledger    *ledger.Ledger
	database  *health.Need
	needs     health.Needs
	ready     *adminapi.Readiness
	listeners cli.Listeners
}

// newLedger builds every part and opens the listener. It starts nothing.
func newLedger(o *LedgerOptions, log *slog.Logger) (*ledgerProcess, error) {
	keep, err := o.keeps()
	if err == nil {
		err = o.NeedKafka("ledger", "where the changes are")
	}
	if err != nil {
		return nil, err
	}
	l := &ledgerProcess{options: o, log: log, registry: cli.NewRegistry(), database: health.NewNeed(cli.AnswerLasts)}
	l.registry.MustRegister(health.Needs{cli.ServiceDatabase: l.database})
	if l.store, err = cli.OpenDatabase(&o.Options, o.database); err != nil {
		return nil, err
	}
	if o.reads {
		l.forReads, err = cli.OpenDatabase(&o.Options, o.database)
	}
	if err == nil {
		err = l.build(keep)
	}
	if err != nil {
		_ = l.close()
		return nil, err
	}
	return l, nil
}

func (l *ledgerProcess) build(keep ledger.Keep) (err error) {
	o := l.options
	var beside func(context.Context, ledger.Now)
	if l.lost, err = newRebuildsLost(o, l.store, l.log, l.registry); err != nil {
		return err
	}
	if l.lost != nil {
		beside = l.lost.run
	}
	if l.redis, err = o.DialRedis(); err != nil {
		return err
	}
	l.ledger, err = ledger.New(ledger.Options{Store: l.store, Redis: origin.New(l.redis, o.Names, origin.WithTimeout(o.RedisTimeout)), Kafka: o.KafkaSettings(), KafkaLogin: o.KafkaLogin(l.log), Group: o.group, Topic: o.Names.Ledger, Finals: o.Names.Finals,
		Check: o.check, PutAside: o.putAside, ServeReads: o.reads, Keep: keep, Beside: beside, Observe: l.database.Observe, Log: l.log, Registerer: l.registry})
	if err != nil {
		return cli.Usagef("%w", err)
	}
	if o.reads {
		current := func() time.Time { return l.ledger.Status().CurrentAt }
		l.reads = reads.New(reads.Config{Store: l.forReads, Current: current, Log: l.log, Registerer: l.registry})
	}
	l.needs = health.Needs{cli.ServiceDatabase: l.database.Require(l.settled, l.writes),
		cli.ServiceKafka: o.KafkaNeed(doctor.KafkaUse{Group: o.group, Reads: o.Names.Ledger})}
	l.ready = cli.Readiness(l.needs, nil)
	o.RegisterProcess(l.registry, l.ready)
	l.listeners, err = cli.OpenListeners(l.log, cli.FlagAddr{Flag: "http", Addr: o.http})
	return err
}

func (l *ledgerProcess) close() error {
	if l.forReads != nil {
		l.forReads.Close()
	}
	if l.lost != nil {
		l.lost.close()
	}
	if l.redis != nil {
		_ = l.redis.Close()
	}
	return l.store.Close()
}

// writes returns nil if the database answers and has taken the last writes.
func (l *ledgerProcess) writes(ctx context.Context) error {
	if err := l.ledger.WriteError(); err != nil {
		return err
	}
	return l.store.Ping(ctx)
}

// settled returns nil once the database answers, takes writes and has the tables; until then why not.
func (l *ledgerProcess) settled(ctx context.Context) error {
	if l.ledger.Status().Schema > 0 {
		return l.writes(ctx)
	}
	if err := l.store.Ping(ctx); err != nil {
		return err
	}
	return errors.New(cmp.Or(l.database.Status().LastError, "its tables are not there yet"))
}

// Ledger runs the ledger until ctx is done.
func Ledger(ctx context.Context, o *LedgerOptions, log *slog.Logger) error {
	l, err := newLedger(o, log)
	if err != nil {
		return err
	}
	defer l.close()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return l.ledger.Run(ctx) })
	group.Go(func() error { return l.needs.Run(ctx) })
	if l.lost != nil {
		group.Go(func() error { return l.lost.rooms.Run(ctx) })
	}
	for _, ln := range l.listeners {
		group.Go(func() error {
			return ln.Serve(ctx, l.handler(), httpserve.Config{Hosts: o.hosts, ReadTimeout: o.ReadTimeout}, log)
		})
	}
	log.Info("keeping the ledger", "http", l.listeners.Addr("http"), "database", l.store.Kind(), "topic", o.Names.Ledger, "group", o.group, "version", cli.Version)
	return group.Wait()
}

// handler answers probes, metrics, status and reads of finals.
func (l *ledgerProcess) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		now := l.ready.Now()
		page := map[string]any{"state": now.State, "reason": now.Reason, "version": cli.Version, "ledger": l.ledger.Status(), "files": l.options.FileStatuses(),
			"dependencies": map[string]any{cli.ServiceDatabase: l.database.Status()}}
		if l.lost != nil {
			page["rebuild_lost"] = l.lost.mender.Status()
		}
		httpserve.WriteJSON(w, http.StatusOK, page)
	})
	ledgerhistory.Register(mux, l.store, l.log)
	if l.reads != nil {
		l.reads.Register(mux)
	}
	mux.Handle("/", cli.NewHealthPort(&l.options.Options, l.ready, l.registry, l.log).Handler())
	return mux
}

// LedgerRegistry returns the metrics of rankcache ledger, which does not run.
func LedgerRegistry() (*cli.Registry, error) {
	o := &LedgerOptions{}
	o.Register(pflag.NewFlagSet("ledger", pflag.ContinueOnError))
	o.Kafka, o.http, o.reads = "kafka:9092", "127.0.0.1:0", true // a broker that is never called
	l, err := newLedger(o, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	l.listeners.Close()
	return l.registry, l.close()
}
