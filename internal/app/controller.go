package app

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"rankcache/controller"
	"rankcache/internal/doctor"
	"rankcache/internal/health"
	"rankcache/internal/httpserve"
	"rankcache/internal/roomsync"
	"rankcache/ledger"
	"rankcache/ledger/final"
	"rankcache/origin"
	"rankcache/sidecar/adminapi"
	"rankcache/writer"
)

// defaultControllerHealth is the health port of rankcache controller.
const defaultControllerHealth = ":8977"

// controllerOptions are the settings of rankcache controller.
type controllerOptions struct {
	commonOptions
	health, id, group string
	database          *secret // of the ledger
	topicKeep         time.Duration
	finals            *secret
	// For tests; zero: the defaults.
	every, posts time.Duration
	now          func() time.Time
}

func newControllerCommand() *cobra.Command {
	o := &controllerOptions{}
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
		Args: NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			hup := catchHangups()
			if err := o.load(cmd); err != nil {
				return err
			}
			return control(cmd.Context(), o, hup, cmd.ErrOrStderr())
		},
	}
	o.register(cmd.Flags())
	return cmd
}

func (o *controllerOptions) register(flags *pflag.FlagSet) {
	o.commonOptions.register(flags)
	flags.StringVar(&o.health, "health", defaultControllerHealth, "`address` of the health port, with /status and /metrics")
	flags.StringVar(&o.id, "controller-id", "", "`name` of this controller; empty: host name and process id")
	flags.StringVar(&o.group, "group", writer.DefaultGroup, "Kafka consumer group that all writers share")
	o.database = secretVar(flags, "database", "", "`URL` of the ledger's database: boards of classes with a ledger are closed once it has all of them and nothing that Redis has lost is to be applied again; empty: it is not asked")
	o.finals = secretVar(flags, "finals", "", "`URL` of the folder or bucket for finals, which are also kept in --database: file:///folder or s3://key:secret@host:port/bucket/prefix, with ?tls=false and region=… as options; empty: no board has a final")
	flags.DurationVar(&o.topicKeep, "topic-keep", controller.DefaultTopicKeep, "how long Redis must not have known a board without class until its topic is deleted; 0 for never")
}

// control runs a controller until ctx is done.
func control(ctx context.Context, o *controllerOptions, hup hangups, stderr io.Writer) error {
	log, err := o.logger(stderr)
	if err != nil {
		return err
	}
	log = o.recorded(log)
	origin.LogTo(log)
	client, err := o.dialRedis()
	if err != nil {
		return err
	}
	defer client.Close()
	registry := newRegistry()
	books, err := o.ledger()
	if err != nil {
		return err
	}
	if books != nil {
		defer books.Close()
	}
	rooms, c, err := o.build(client, books, log, registry)
	if err != nil {
		return err
	}
	listeners, err := openListeners(flagAddr{"health", o.health})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return checkRole(ctx, client, log) })
	group.Go(func() error { return rooms.Run(ctx) })
	group.Go(func() error {
		rooms.AwaitShared(ctx)
		return c.Run(ctx)
	})
	needs := o.needs(client, books, c)
	group.Go(func() error { return needs.Run(ctx) })
	ready := readiness(needs, rooms)
	ready.Fault = func() error { return wrongClock(c.ClockError()) }
	registerProcess(registry, ready)
	port := newHealthPort(&o.commonOptions, ready, registry, log)
	port.rooms = rooms
	handler := withStatus(port.handler(), ready, c)
	for _, l := range listeners {
		group.Go(func() error { return httpserve.Serve(ctx, l, handler, o.probes(nil), log) })
	}
	go hup.reload(ctx, log, o.secrets)
	log.Info("controlling", "health", listeners.addr("health"), "topic_keep", o.topicKeep, "version", Version)
	return group.Wait()
}

// needs returns what a controller can't close boards without.
func (o *controllerOptions) needs(client redis.UniversalClient, books *ledger.Store, c *controller.Controller) health.Needs {
	kafka := doctor.KafkaUse{Group: o.group, Writes: o.names.Commands}
	if o.finals.get() != "" {
		kafka.Makes = []string{o.names.Finals}
	}
	needs := health.Needs{serviceKafka: o.kafkaNeed(kafka),
		serviceRedis: health.NewNeed(answerLasts).Require(o.redisNeed(client, "controller", "", c.CompareClock), nil)}
	if books != nil {
		needs[serviceDatabase] = health.NewNeed(answerLasts).Require(books.Ping, nil)
	}
	return needs
}

// ledger returns the ledger's database, which the caller closes, or nil if there is none.
func (o *controllerOptions) ledger() (*ledger.Store, error) {
	if o.database == nil || o.database.get() == "" {
		return nil, nil
	}
	return openDatabase(o.database)
}

// build returns the controller and the rooms file that it follows.
func (o *controllerOptions) build(client redis.UniversalClient, books *ledger.Store, log *slog.Logger, reg *registry) (*roomsync.Follower, *controller.Controller, error) {
	boards := origin.New(client, o.names, origin.WithTimeout(o.redisTimeout))
	rooms := roomsync.New(roomsync.Config{File: o.rooms, Parse: o.parseRooms, CheckBoard: o.names.CheckBoard, Origin: boards, Shared: o.sharedRooms(client), Log: log}, reg)
	if err := rooms.Load(); err != nil {
		return nil, nil, Usagef("--rooms: %w", err)
	}
	if o.id == "" {
		host, _ := os.Hostname()
		o.id = fmt.Sprintf("%s-%d", host, os.Getpid())
	}
	finalizer, err := o.finalizer(boards, books, rooms, log, reg)
	if err != nil {
		return nil, nil, err
	}
	kafka := map[string]string{"bootstrap.servers": o.kafka}
	maps.Copy(kafka, o.kafkaKeys)
	options := controller.Options{Redis: client, Names: o.names, Tiers: rooms, Kafka: kafka, KafkaLogin: o.kafkaLogin(log), Group: o.group,
		PostTimeout: cmp.Or(o.posts, writer.PostTimeout+controller.ClockMargin), TopicKeep: o.topicKeep, Finalizer: finalizer, ID: o.id, Every: o.every, TopicsEvery: o.every, Now: o.now, Log: log, Registerer: reg}
	if books != nil {
		options.Ledger = books
	}
	c, err := controller.New(options)
	if err != nil {
		return nil, nil, Usagef("%w", err)
	}
	return rooms, c, nil
}

// finalizer returns what makes the finals, nil if no board has one.
func (o *controllerOptions) finalizer(boards *origin.Origin, books *ledger.Store, rooms *roomsync.Follower, log *slog.Logger, reg *registry) (controller.Finalizer, error) {
	url := o.finals.get()
	if url == "" {
		return nil, nil
	}
	files, err := final.OpenFiles(url)
	if err != nil {
		return nil, Usagef("--finals: %w", err)
	}
	if books == nil {
		return nil, Usagef("--finals needs --database, of the ledger")
	}
	return final.New(final.Options{Origin: boards, Store: books, Files: files, Rooms: rooms.File, Log: log, Registerer: reg}), nil
}

// withStatus adds /status to the health port.
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
