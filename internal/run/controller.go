package run

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"rankcache"
	"rankcache/controller"
	"rankcache/internal/cli"
	"rankcache/internal/doctor"
	"rankcache/internal/health"
	"rankcache/internal/httpserve"
	"rankcache/internal/kafka"
	"rankcache/internal/roomsync"
	"rankcache/ledger"
	"rankcache/ledger/final"
	"rankcache/origin"
	"rankcache/sidecar/adminapi"
	"rankcache/writer"
)

const defaultControllerHealth = ":8977" // the health port of rankcache controller

const publishedWithin = 5 * time.Second // how long a ledger may take to read the topic of finals

// ControllerOptions are the settings of rankcache controller.
type ControllerOptions struct {
	cli.Options
	health, id, group string
	database          *cli.Secret // of the ledger
	topicKeep         time.Duration
	primeRate         int
	finals, snapshots *cli.Secret
	// For tests; zero: the defaults.
	Every, Posts time.Duration
	Now          func() time.Time
}

func NewControllerCommand() *cobra.Command {
	o := &ControllerOptions{}
	cmd := &cobra.Command{
		Use:   "controller",
		Short: "Close boards at the end of their period, and delete topics",
		Long: `Close the boards of classes once their period and its grace are over and every
command that came in time is applied, and delete the topics of boards that Redis has
expired. A lease in Redis elects one controller however many run; none is needed to read
or to write. GET /status on the health port shows what it does.

With --finals it keeps the result of each closed board of a class with a ledger: once the
ledger has what Redis has, the first 1,000 places go into the ledger's database, all of
them into a Parquet file in a folder or bucket, and the result to the topic rank_final.

Topics that begin as those of boards do are deleted, also if something else has made
them, when Redis has not known their board for --topic-keep; 0 leaves them alone.`,
		Example: `  rankcache controller --redis redis://redis:6379 --kafka kafka:9092 --rooms rooms.yaml
  rankcache controller --redis redis://redis:6379 --kafka kafka:9092 --rooms rooms.yaml --topic-keep 0
  rankcache controller --redis redis://redis:6379 --kafka kafka:9092 --rooms rooms.yaml --database-file /run/secrets/database --finals-file /run/secrets/bucket
  curl 127.0.0.1:8977/status`,
		Args: cli.NoArgs,
	}
	cmd.RunE = o.LongRunning(func(cmd *cobra.Command, log *slog.Logger) error { return Control(cmd.Context(), o, log) })
	o.Register(cmd.Flags())
	return cmd
}

func (o *ControllerOptions) Register(flags *pflag.FlagSet) {
	o.Options.Register(flags)
	flags.StringVar(&o.health, "health", defaultControllerHealth, "`address` of the health port, with /status and /metrics")
	flags.StringVar(&o.id, "controller-id", "", "`name` of this controller; empty: host name and process id")
	flags.StringVar(&o.group, "group", writer.DefaultGroup, "Kafka consumer group that all writers share")
	o.database = cli.SecretVar(flags, "database", "", "`URL` of the ledger's database: boards of classes with a ledger are closed once it has all of them and nothing that Redis has lost is to be applied again; empty: boards are closed without it")
	o.finals = cli.SecretVar(flags, "finals", "", "`URL` of the folder or bucket for finals, which are also kept in --database: file:///folder or s3://key:secret@host:port/bucket/prefix, with ?tls=false and region=… as options; empty: no board has a final")
	o.snapshots = cli.SecretVar(flags, "snapshots", "", "`URL` of the folder or bucket with the fleet's boards, as of rankcache keep: a topic's are deleted with it; empty: there are none")
	flags.IntVar(&o.primeRate, "prime-rate", controller.DefaultPrimeRate, "how many members of rolling boards are given the sums of ended periods in a second at most")
	flags.DurationVar(&o.topicKeep, "topic-keep", controller.DefaultTopicKeep, "how long Redis must not have known a board without class until its topic is deleted; 0 for never")
}

// Control runs a controller until ctx is done.
func Control(ctx context.Context, o *ControllerOptions, log *slog.Logger) error {
	if err := o.NeedKafka("controller", "whose topics it looks after"); err != nil {
		return err
	}
	client, err := o.DialRedis()
	if err != nil {
		return err
	}
	defer client.Close()
	registry := cli.NewRegistry()
	books, err := o.Ledger()
	if err != nil {
		return err
	}
	if books != nil {
		defer books.Close()
	}
	rooms, c, err := o.Build(client, books, log, registry)
	if err != nil {
		return err
	}
	listeners, err := cli.OpenListeners(log, cli.FlagAddr{Flag: "health", Addr: o.health})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return cli.CheckRole(ctx, client, log) })
	group.Go(func() error { return rooms.Run(ctx) })
	group.Go(func() error {
		rooms.AwaitShared(ctx)
		return c.Run(ctx)
	})
	needs := o.needs(client, books, c)
	group.Go(func() error { return needs.Run(ctx) })
	ready := cli.Readiness(needs, rooms)
	ready.Fault = func() error { return cli.WrongClock(c.ClockError()) }
	o.RegisterProcess(registry, ready)
	port := cli.NewHealthPort(&o.Options, ready, registry, log)
	port.Rooms = rooms
	handler := withStatus(port.Handler(), ready, c)
	for _, l := range listeners {
		group.Go(func() error { return l.Serve(ctx, handler, o.Probes(nil), log) })
	}
	log.Info("controlling", "health", listeners.Addr("health"), "topic_keep", o.topicKeep, "version", cli.Version)
	return group.Wait()
}

// needs returns what a controller can't close boards without.
func (o *ControllerOptions) needs(client redis.UniversalClient, books *ledger.Store, c *controller.Controller) health.Needs {
	kafka := doctor.KafkaUse{Group: o.group, Writes: o.Names.Commands}
	if o.finals.Get() != "" {
		kafka.Makes = []string{o.Names.Finals}
	}
	needs := health.Needs{cli.ServiceKafka: o.KafkaNeed(kafka),
		cli.ServiceRedis: health.NewNeed(cli.AnswerLasts).Require(o.RedisNeed(client, "controller", "", c.CompareClock), nil)}
	if books != nil {
		needs[cli.ServiceDatabase] = health.NewNeed(cli.AnswerLasts).Require(books.Ping, nil)
	}
	return needs
}

// Ledger returns the ledger's database, which the caller closes, or nil if there is none.
func (o *ControllerOptions) Ledger() (*ledger.Store, error) {
	if o.database == nil || o.database.Get() == "" {
		return nil, nil
	}
	return cli.OpenDatabase(&o.Options, o.database)
}

// Build returns the controller and the rooms file that it follows.
func (o *ControllerOptions) Build(client redis.UniversalClient, books *ledger.Store, log *slog.Logger, reg *cli.Registry) (*roomsync.Follower, *controller.Controller, error) {
	var rooms *roomsync.Follower
	boards := origin.New(client, o.Names, origin.WithTimeout(o.RedisTimeout), origin.WithData(func(b rankcache.BoardID) bool { return rooms.Tiers().HasData(b) }))
	rooms = roomsync.New(roomsync.Config{File: o.Rooms, Parse: o.ParseRooms, CheckBoard: o.Names.CheckBoard, Origin: boards, Shared: o.SharedRooms(client), Log: log}, reg)
	if err := rooms.Load(); err != nil {
		return nil, nil, cli.Usagef("--rooms: %w", err)
	}
	finalizer, err := o.finalizer(boards, books, rooms, log, reg)
	if err != nil {
		return nil, nil, err
	}
	options := controller.Options{Redis: client, Names: o.Names, Tiers: rooms, Kafka: o.KafkaSettings(), KafkaLogin: o.KafkaLogin(log), Group: o.group,
		PostTimeout: cmp.Or(o.Posts, writer.PostTimeout+controller.ClockMargin), TopicKeep: o.topicKeep, PrimeRate: o.primeRate, Finalizer: finalizer, ID: cmp.Or(o.id, cli.ProcessName()), Every: o.Every, TopicsEvery: o.Every, Now: o.Now, Log: log, Registerer: reg}
	if books != nil {
		options.Ledger = books
	}
	snapshots, err := cli.OpenObjects(o.snapshots, log)
	if err != nil {
		return nil, nil, err
	}
	if snapshots != nil { // a nil *Store in the interface would not be nil
		options.Snapshots = snapshots
	}
	c, err := controller.New(options)
	if err != nil {
		return nil, nil, cli.Usagef("%w", err)
	}
	return rooms, c, nil
}

// finalizer returns what makes the finals, nil if no board has one.
func (o *ControllerOptions) finalizer(boards *origin.Origin, books *ledger.Store, rooms *roomsync.Follower, log *slog.Logger, reg *cli.Registry) (controller.Finalizer, error) {
	files, err := cli.OpenObjects(o.finals, log)
	if files == nil || err != nil {
		return nil, err
	}
	if books == nil {
		return nil, cli.Usagef("--finals needs --database, of the ledger")
	}
	return final.New(final.Options{Origin: boards, Store: books, Files: files, Rooms: rooms.File, Log: log, Registerer: reg,
		Published: func(ctx context.Context) error { return o.published(ctx, books) }}), nil
}

// published returns once the database has all finals that were published.
func (o *ControllerOptions) published(ctx context.Context, books *ledger.Store) error {
	client, err := kafka.NewGroup(nil, o.group, o.KafkaSettings())
	if err != nil {
		return err
	}
	defer client.Close()
	return ledger.Published(ctx, client.Admin, books, o.Names.Finals, publishedWithin)
}

func withStatus(port http.Handler, ready *adminapi.Readiness, c *controller.Controller) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", port)
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		now := ready.Now()
		httpserve.WriteJSON(w, http.StatusOK, struct {
			State  adminapi.State `json:"state"`
			Reason string         `json:"reason"`
			controller.Status
		}{now.State, now.Reason, c.Status()})
	})
	return mux
}
