package run

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"rankcache"
	"rankcache/compat"
	"rankcache/internal/cli"
	"rankcache/internal/doctor"
	"rankcache/internal/health"
	"rankcache/internal/httpserve"
	"rankcache/internal/roomsync"
	"rankcache/origin"
	"rankcache/rooms"
	"rankcache/sidecar/adminapi"
	"rankcache/writer"
	writerrpc "rankcache/writer/rpc"
)

// Defaults of rankcache write.
const (
	defaultWriteHealth = ":8974"
	// PostConns is for the instances of an app, which keep theirs: at the cap a post in hand could be cut off.
	PostConns = 1024
)

// WriteOptions are the settings of rankcache write.
type WriteOptions struct {
	cli.Options
	scores, health string
	writeToken     *cli.Secret
	classTokens    *cli.Secret
	hosts          []string
	compatBoard    string
	drain          time.Duration
	group          string
	groupInstance  string
	publishAll     bool
	boardLife      time.Duration
	orderLife      time.Duration
	orderBuckets   int
	memberChanges  int
	topics         writer.Topics
	logBytes       int64 // of the log in Redis; 0: there is none
}

// NewWriteCommand returns rankcache write.
func NewWriteCommand() *cobra.Command {
	o := &WriteOptions{}
	cmd := &cobra.Command{
		Use:   "write",
		Short: "Run the write side: commands to Redis, updates to Kafka",
		Long: `Run the write side. Commands come from the Kafka topic update_rank and from
POST /v1/scores; each changes a score in Redis once per order id, and for
boards of super-hot rooms the update is produced for the sidecars. Run as many as
you like: they share one consumer group.

With --log redis there is no Kafka: commands are posted, and updates are in a stream of Redis. Ledgers, feeds, durable
classes and periods are refused then.`,
		Example: `  rankcache write --redis redis://redis:6379 --kafka kafka:9092 --rooms rooms.yaml
  curl -H 'Content-Type: application/json' \
    -d '{"order":"gift-1","board":"1_2_3","member":"1000123","op":"incr","delta":1}' 127.0.0.1:8973/v1/scores
  rankcache write --redis redis://redis:6379 --log redis --rooms rooms.yaml`,
		Args: cli.NoArgs,
	}
	cmd.RunE = o.LongRunning(func(cmd *cobra.Command, log *slog.Logger) error { return Write(cmd.Context(), o, log) })
	o.Register(cmd.Flags())
	return cmd
}

// Register registers the flags.
func (o *WriteOptions) Register(flags *pflag.FlagSet) {
	o.Options.Register(flags)
	flags.StringVar(&o.scores, "scores", cli.DefaultScores, "`address` of POST /v1/scores, empty for none")
	o.writeToken = cli.SecretVar(flags, "write-token", "", "bearer token required for POST /v1/scores; empty: none")
	o.classTokens = cli.SecretVar(flags, "class-tokens", "", "bearer tokens for posts that change boards of some classes only, one a line: the token, a space, and the classes separated by commas")
	flags.StringVar(&o.health, "health", defaultWriteHealth, "`address` of the health port")
	flags.StringSliceVar(&o.hosts, "allow-host", nil, "further `names` that callers may put into Host on loopback ports")
	flags.StringVar(&o.compatBoard, "compat-board", "", "`board` on which POST /v1/scores with points adds them unless it names another; empty: it must name one")
	cli.RegisterDrain(flags, &o.drain)
	cli.Group(flags, "Ports, callers, stopping")
	flags.StringVar(&o.group, "group", writer.DefaultGroup, "Kafka consumer group that all writers share")
	flags.StringVar(&o.groupInstance, "group-instance", "", "`name` of this writer in the group, unique and the same after a restart, such as the pod's: one that is killed then goes on without waiting for its session to time out; empty: none")
	cli.ChoiceVar(flags, &o.Log, "log", "", cli.LogKafka, "where the updates are for the sidecars: kafka, redis (a stream; no Kafka at all), or both, while a fleet moves from one to the other", cli.LogKafka, cli.LogRedis, cli.LogBoth)
	o.RegisterLogSize(flags)
	flags.BoolVar(&o.publishAll, "publish-all", false, "produce the updates of all boards, not of super-hot rooms only")
	flags.IntVar(&o.topics.LedgerPartitions, "ledger-partitions", writer.DefaultLedgerPartitions, "partitions of the ledger's topic, if it is missing and made")
	flags.IntVar(&o.memberChanges, "member-changes", 0, "how many changes of one member posts may make in a minute of the clock, on all boards together: more are answered 429; 0: any")
	cli.Group(flags, "Commands and updates")
	flags.DurationVar(&o.boardLife, "board-life", 0, "how long after its last change a board without a period expires, with its companions; 0 for never. The keep of its class wins")
	flags.DurationVar(&o.orderLife, "order-life", writer.DefaultOrderLife, "how long an order id of a new board is known at least: commands whose time is older are refused, as they may be repeats")
	flags.IntVar(&o.orderBuckets, "order-buckets", writer.DefaultOrderBuckets, "hashes over which the order ids of a new board are spread; so many that none has more than 100,000 in an order life")
	cli.Group(flags, "Boards in Redis")
	flags.IntVar(&o.topics.Partitions, "topic-partitions", 1, "partitions of a topic that boards of a class share; a board's own topic has one")
	flags.IntVar(&o.topics.Replication, "topic-replication", 0, "replication factor of topics; 0 for the broker's default")
	flags.StringToStringVar(&o.topics.Settings, "topic-setting", nil, "settings of a board's topic, as `key=value`; they win over retention for ever")
	flags.IntVar(&o.topics.CommandPartitions, "command-partitions", 0, "make the command topic with so many partitions if it is missing; 0 leaves it to you")
	cli.Group(flags, "Topics")
}

// Write runs the write side until ctx is done and everything has ended.
func Write(ctx context.Context, o *WriteOptions, log *slog.Logger) error {
	w, err := newWriter(o, log)
	if err != nil {
		return err
	}
	return w.run(ctx)
}

// Writer is one write side and its listeners.
type Writer struct {
	options   *WriteOptions
	log       *slog.Logger
	Registry  *cli.Registry
	redis     redis.UniversalClient
	boards    rankcache.Reader
	Rooms     *roomsync.Follower
	writer    *writer.Writer
	tokens    *writeTokens
	needs     health.Needs
	ready     *adminapi.Readiness
	Listeners cli.Listeners
}

// newWriter builds every part and opens the listeners. It starts nothing.
func newWriter(o *WriteOptions, log *slog.Logger) (*Writer, error) {
	if err := o.checkLog(); err != nil {
		return nil, err
	}
	w := &Writer{options: o, log: log, Registry: cli.NewRegistry()}
	var err error
	o.NotePlace = true
	if w.redis, err = o.DialRedis(); err != nil {
		return nil, err
	}
	if err := w.build(); err != nil {
		w.redis.Close()
		return nil, err
	}
	return w, nil
}

// checkLog checks where the log of changes is to be, and what that needs.
func (o *WriteOptions) checkLog() error {
	if o.Log == cli.LogRedis && o.HasKafka() {
		return cli.Usagef("--log redis is for a writer without Kafka: leave out --kafka, or set --log both")
	}
	if o.Log != cli.LogRedis {
		if err := o.NeedKafka("write", "where its commands and updates are"); err != nil {
			return fmt.Errorf("%w; or --log redis, to have the updates in Redis", err)
		}
	}
	if o.Log == cli.LogKafka {
		return nil
	}
	if o.RedisMode == origin.ModeCluster || o.RedisMode == origin.ModeInstances {
		return cli.Usagef("--log %s: several masters (--redis-mode %s) can't have the log, they need Kafka: --log kafka", o.Log, o.RedisMode)
	}
	var err error
	o.logBytes, err = o.LogBytes()
	return err
}

// kafka returns the settings of Kafka, nil if there is none.
func (o *WriteOptions) kafka() map[string]string {
	if o.Log == cli.LogRedis {
		return nil
	}
	return o.KafkaSettings()
}

// writerProcess is what GET /v1/status of a writer shows of the process; its JSON is stable.
type writerProcess struct {
	State   adminapi.State  `json:"state"`
	Version string          `json:"version"`
	Uptime  int             `json:"uptime_s"`
	Rooms   roomsync.Status `json:"rooms"` // where the classes are from
}

func (w *Writer) build() (err error) {
	o, log := w.options, w.log
	boards := origin.New(w.redis, o.Names, origin.WithTimeout(o.RedisTimeout))
	w.boards = boards
	w.Rooms = roomsync.New(roomsync.Config{File: o.Rooms, Parse: o.ParseRooms, CheckBoard: o.Names.CheckBoard, NoKafka: o.Log == cli.LogRedis, Origin: boards, Histories: boards.Histories,
		Shared: o.SharedRooms(w.redis), Log: log}, w.Registry)
	if err := w.Rooms.Load(); err != nil {
		return cli.Usagef("--rooms: %w", err)
	}
	w.tokens = &writeTokens{all: o.writeToken, byClass: o.classTokens, log: log}
	if err := w.tokens.check(); err != nil {
		return err
	}
	if board := rankcache.BoardID(o.compatBoard); board != "" && board.Check() != nil {
		return cli.Usagef("--compat-board: %w", board.Check())
	}
	started := time.Now()
	process := func() any {
		return writerProcess{w.ready.Now().State, cli.Version, int(time.Since(started).Seconds()), w.Rooms.Status()}
	}
	w.writer, err = writer.New(writer.Options{Redis: w.redis, Process: process, Names: o.Names, Tiers: w.Rooms, Kafka: o.kafka(), LogSize: o.logBytes, KafkaLogin: o.KafkaLogin(log), Group: o.group, GroupInstance: o.groupInstance,
		PublishAll: o.publishAll, BoardLife: o.boardLife, OrderLife: o.orderLife, OrderBuckets: o.orderBuckets, MemberChanges: o.memberChanges, Topics: o.topics, Log: log, Registerer: w.Registry})
	if err != nil {
		return cli.Usagef("%w", err)
	}
	w.waitForAll()
	o.RegisterProcess(w.Registry, w.ready)
	w.Listeners, err = cli.OpenListeners(w.log, cli.FlagAddr{Flag: "scores", Addr: o.scores, Conns: PostConns}, cli.FlagAddr{Flag: "health", Addr: o.health})
	return err
}

// waitForAll has the process be ready once it could apply and publish, and while its clock is right.
func (w *Writer) waitForAll() {
	o := w.options
	kafka := doctor.KafkaUse{Group: o.group, Reads: o.Names.Commands, Writes: o.Names.Refused, Makes: []string{o.Names.Refused, o.ProbeTopic()}, Replication: o.topics.Replication}
	if o.topics.CommandPartitions > 0 {
		kafka.Makes = append(kafka.Makes, o.Names.Commands)
	}
	w.needs = health.Needs{cli.ServiceRedis: health.NewNeed(cli.AnswerLasts).Require(o.RedisNeed(w.redis, "write", "", w.writer.CompareClock), nil)}
	if o.Log != cli.LogRedis {
		w.needs[cli.ServiceKafka] = o.KafkaNeed(kafka)
	}
	w.ready = cli.Readiness(w.needs, w.Rooms)
	w.ready.Fault = func() error { return cli.WrongClock(w.writer.ClockError()) }
	w.ready.Partly = w.writer.Fault
}

// Run writes until ctx is done and the drain is over.
func (w *Writer) Run(ctx context.Context) error { return w.run(ctx) }

// run works until ctx is done; then it is not ready, goes on for the drain time, answers the posts in hand, finishes
// the batch in hand and ends. The first part that fails ends the others.
func (w *Writer) run(ctx context.Context) error {
	defer w.redis.Close()
	live, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(cli.ErrStopped)
	group, live := errgroup.WithContext(live)
	posts, endPosts := context.WithCancel(live)
	group.Go(func() error { return cli.CheckRole(live, w.redis, w.log) })
	group.Go(func() error { return w.needs.Run(live) })
	group.Go(func() error { return w.Rooms.Run(live) })
	group.Go(func() error {
		w.Rooms.AwaitShared(live)
		return w.writer.Run(live)
	})
	group.Go(func() error { return w.serveHealth(live) })
	group.Go(func() error {
		defer stop(cli.ErrStopped) // not before: the last post needs Redis and Kafka too
		return w.servePosts(posts)
	})
	group.Go(func() error {
		defer endPosts()
		cli.Drained(ctx, live, w.ready, w.drain(), nil, w.log)
		return nil
	})
	w.log.Info("writing", "scores", w.Listeners.Addr("scores"), "health", w.Listeners.Addr("health"),
		"log", w.options.Log, "group", w.options.group, "version", cli.Version)
	return group.Wait()
}

// drain is how long callers are given to go elsewhere: none if there can't be any.
func (w *Writer) drain() time.Duration {
	if w.options.scores == "" {
		return 0
	}
	return w.options.drain
}

func (w *Writer) servePosts(ctx context.Context) error {
	cfg := httpserve.Config{Hosts: w.options.hosts, HTTP2: true, ReadTimeout: w.options.ReadTimeout, DrainTimeout: writer.PostTimeout + time.Second} // none is cut off
	// Older forms have their token in the body.
	handler := compat.NewChanges(w.tokens.require(writerrpc.Handler(w.writer, w.writer.Handler())), w.Rooms.File, w.boards, rankcache.BoardID(w.options.compatBoard))
	return w.serve(ctx, "scores", cli.Leaving(w.ready, cli.Knowing(w.Rooms, handler)), cfg)
}

func (w *Writer) serveHealth(ctx context.Context) error {
	port := cli.NewHealthPort(&w.options.Options, w.ready, w.Registry, w.log)
	port.Rooms = w.Rooms
	port.Parts = map[string]func(context.Context) any{"writer": w.writer.Status}
	return w.serve(ctx, "health", port.Handler(), w.options.Probes(w.options.hosts))
}

// serve answers on the listener of a flag, if there is one, until ctx is done and the requests in hand are answered.
func (w *Writer) serve(ctx context.Context, flag string, h http.Handler, cfg httpserve.Config) error {
	for _, l := range w.Listeners {
		if l.Flag == flag {
			return l.Serve(ctx, h, cfg, w.log)
		}
	}
	<-ctx.Done()
	return nil
}

// NewWriter builds the writer that "rankcache write" with these arguments is, as [serve.NewSidecar] does the sidecar.
func NewWriter(args []string, parseRooms func([]byte) (*rooms.File, error), log *slog.Logger) (*Writer, error) {
	o := &WriteOptions{}
	if err := cli.ParseArgs("write", o, args); err != nil {
		return nil, err
	}
	o.LogTo(log)
	o.ParseRooms = parseRooms
	return newWriter(o, o.Recorded(log))
}
