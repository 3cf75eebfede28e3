package serve

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"rankcache"
	"rankcache/internal/cli"
	"rankcache/internal/lease"
	"rankcache/internal/metric"
	"rankcache/keeper"
	"rankcache/replay"
	"rankcache/rooms"
	"rankcache/sidecar/adminapi"
)

const (
	// defaultKeepHealth is the health port of rankcache keep.
	defaultKeepHealth = ":8979"
	// keeperLease bounds for how long the fleet has no keeper after one died: 1.2 times this.
	keeperLease = 1500 * time.Millisecond
)

// KeepOptions are the settings of rankcache keep: those of a sidecar that a keeper has, too.
type KeepOptions struct {
	Options
	id          string
	statesEvery time.Duration
}

// NewKeepCommand returns rankcache keep.
func NewKeepCommand() *cobra.Command {
	o := &KeepOptions{}
	cmd := &cobra.Command{
		Use:   "keep",
		Short: "Watch Redis once for the whole fleet of sidecars",
		Long: `Read the states of all super-hot boards from Redis and publish them there as one value, which
sidecars read instead. Compare the rows of these boards with Redis: for that a keeper holds copies
as a sidecar does, without a port for apps. Add up the reads of all sidecars, so that a board which
all read much, and each little, becomes hot. A lease elects one keeper however many run: two are
enough. Without one each sidecar looks after itself.`,
		Example: `  rankcache keep --redis redis://redis:6379 --kafka kafka:9092 --rooms rooms.yaml
  curl 127.0.0.1:8979/status`,
		Args: cli.NoArgs,
	}
	cmd.RunE = o.LongRunning(func(cmd *cobra.Command, log *slog.Logger) error { return Keep(cmd.Context(), o, log) })
	o.Register(cmd.Flags())
	return cmd
}

// Register registers the flags.
func (o *KeepOptions) Register(flags *pflag.FlagSet) {
	o.Options.Options.Register(flags)
	o.RegisterLog(flags)
	cli.Group(flags, "Redis, Kafka, rooms")
	flags.StringVar(&o.health, "health", defaultKeepHealth, "`address` of the health port, with /status and /metrics")
	flags.StringVar(&o.id, "keeper-id", "", "`name` of this keeper; empty: host name and process id")
	o.poll.RegisterKeeper(flags)
	o.total = "seq" // nothing is kept of boards without seqs
	o.snapshots.shared = cli.SecretVar(flags, "snapshots", "", "`URL` of the folder or bucket in which boards are saved, for sidecars to begin with: file:///folder or s3://key:secret@host:port/bucket/prefix, with ?tls=false and region=… as options; empty: none are")
	flags.DurationVar(&o.snapshots.every, "snapshot-every", replay.DefaultSaveEvery, "how often each board that has changed is saved there, give or take a tenth; others every five minutes")
	flags.DurationVar(&o.deadline, "give-up-after", replay.DefaultDeadline, "be ready without a board that does not open after this, plus 50 µs for each update")
	flags.StringVar(&o.memoryBudget, "memory-budget", defaultMemoryBudget, "most memory for super-hot boards: `bytes` (300MiB), a share of the memory limit (60%), or 0 for no limit; less where the rest of the process needs it")
	flags.UintVar(&o.metricsBoards, "metrics-boards", 50, "how many super-hot boards have metrics of their own: those in trouble, then the largest; the rest are combined, board=\"(others)\"; 0: all are")
	flags.DurationVar(&o.statesEvery, "states-every", keeper.DefaultEvery, "how often the states of all super-hot boards are read and published; an answer's age reaches three times this")
	flags.IntVar(&o.auditRows, "audit-rows", replay.DefaultAuditRows, "`rows` a second, of all super-hot boards together, that are compared with Redis to find scores changed by hand; 0: none")
	cli.Group(flags, "Keeper")
}

// Keep runs a keeper until ctx is done.
func Keep(ctx context.Context, o *KeepOptions, log *slog.Logger) error {
	k, err := newKeeper(o, log)
	if err != nil {
		return err
	}
	defer k.close()
	return k.Run(ctx)
}

// Keeper is one keeper: the boards of a sidecar, and what the elected one does for the fleet.
type Keeper struct {
	*Sidecar
	lease   lease.Lease
	elected prometheus.Gauge
	errLog  rate.Sometimes
	// tasks run while this keeper is elected. For a moment two may be: what a task does must do no harm then.
	tasks []runnable
}

// NewKeeper builds the keeper that "rankcache keep" with these arguments is, as [NewSidecar] does a sidecar.
func NewKeeper(args []string, log *slog.Logger) (*Keeper, error) {
	o := &KeepOptions{}
	if err := cli.ParseArgs("keep", o, args); err != nil {
		return nil, err
	}
	o.LogTo(log)
	return newKeeper(o, o.Recorded(log))
}

// newKeeper builds every part and opens the listener. It starts nothing.
func newKeeper(o *KeepOptions, log *slog.Logger) (*Keeper, error) {
	k := &Keeper{Sidecar: newParts(&o.Options, log), errLog: rate.Sometimes{First: 1, Interval: 10 * time.Second}}
	for _, build := range []func() error{k.buildBoards, k.buildOrigin, k.buildReplay, k.buildAdmission, k.buildRooms, func() error { return k.buildTasks(o) }, k.listen} {
		if err := build(); err != nil {
			k.close()
			return nil, err
		}
	}
	k.ready = adminapi.NewReadiness(k.startup, k.runner.Status)
	k.options.RegisterProcess(k.Registry, k.ready)
	k.Registry.MustRegister(boardAges{k.Local, k.runner.Status, k.shown.label})
	k.lease = lease.Lease{Redis: k.redis, Key: o.Names.KeeperKey(o.poll.VerdictInstance()), ID: cmp.Or(o.id, cli.ProcessName()), TTL: keeperLease}
	return k, nil
}

// buildTasks builds what the elected keeper does. Further tasks are added here.
func (k *Keeper) buildTasks(o *KeepOptions) error {
	publisher, err := keeper.New(k.states(), k.origin, k.superHot, o.statesEvery, k.log, k.Registry)
	if err != nil {
		return cli.Usagef("--states-every: %w", err)
	}
	k.elected = metric.New(k.Registry, "keeper_").Gauge("elected", "1 while this keeper works for the fleet.")
	k.tasks = []runnable{publisher, background(k.runner.Walk)}
	if several, ok := k.redis.(*redis.ClusterClient); ok {
		k.tasks = append(k.tasks, keeper.NewTimes(several, o.RedisTimeout, k.log))
	}
	if to := k.snapshots; to != nil {
		k.tasks = append(k.tasks, runFunc(func(ctx context.Context) error { return k.runner.Save(ctx, to, k.options.snapshots.every) }))
	}
	poller, err := o.poll.NewKeeperPoller(k.redis, o.Names, k.log, k.Registry)
	if err != nil {
		return err
	}
	if poller != nil {
		k.tasks = append(k.tasks, runFunc(poller.RunElected))
	}
	return nil
}

// superHot returns all super-hot boards, also those that this keeper has no memory for.
func (k *Keeper) superHot() []rankcache.BoardID { return k.Rooms.Tiers().Boards(rooms.ModeSuperHot) }

// Run keeps until ctx is done. The first part that fails ends the others.
func (k *Keeper) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return cli.CheckRole(ctx, k.redis, k.log) })
	for _, part := range k.parts {
		group.Go(func() error { return part.Run(ctx) })
	}
	group.Go(func() error {
		k.Rooms.AwaitShared(ctx)
		k.lease.Run(ctx, k.work, func(err error) {
			k.errLog.Do(func() { k.log.Warn("this keeper does not work for the fleet", "err", err) })
		})
		return nil
	})
	port := cli.NewHealthPort(&k.options.Options, k.ready, k.Registry, k.log)
	port.Rooms, port.Parts = k.Rooms, map[string]func(context.Context) any{"keeper": k.status, "boards": func(context.Context) any { return k.runner.Status() }}
	for _, l := range k.listeners {
		group.Go(func() error { return l.Serve(ctx, port.Handler(), k.options.Probes(nil), k.log) })
	}
	k.log.Info("keeping", "health", k.listeners.Addr("health"), "keeper", k.lease.ID, "key", k.lease.Key, "version", cli.Version)
	return group.Wait()
}

// work does the tasks of the elected keeper until ctx is done or one of them fails.
func (k *Keeper) work(ctx context.Context) {
	k.elected.Set(1)
	defer k.elected.Set(0)
	k.log.Info("this keeper works for the fleet")
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { <-ctx.Done(); return nil })
	for _, task := range k.tasks {
		group.Go(func() error { return task.Run(ctx) })
	}
	if err := group.Wait(); err != nil {
		k.log.Error("a task of the keeper failed", "err", err)
	}
}

// KeeperStatus is the part of /status about the keeper.
type KeeperStatus struct {
	ID     string `json:"id"`
	Boards int    `json:"boards"` // that are super-hot
	Open   int    `json:"open"`   // of which this keeper has a copy that equals Redis
}

func (k *Keeper) status(context.Context) any {
	s := KeeperStatus{ID: k.lease.ID}
	for _, b := range k.runner.Status() {
		if s.Boards++; b.State == rankcache.StateOpen {
			s.Open++
		}
	}
	return s
}
