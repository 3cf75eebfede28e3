package serve

import (
	"context"
	"log/slog"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rankcache/hotkey"
	"rankcache/internal/cli"
	"rankcache/origin"
	"rankcache/replay"
)

// DefaultData is the address of the data port.
const DefaultData = "127.0.0.1:8970"

// Options are the settings of rankcache serve.
type Options struct {
	cli.Options
	data, socket  string
	admin, health string
	redisRead     *cli.Secret // nil: there is no such flag
	hosts         []string
	adminToken    *cli.Secret
	compatBoard   string
	ledgerURL     string
	smallStale    time.Duration
	drain         time.Duration
	drainEarly    bool
	total         string
	deadline      time.Duration
	publishEvery  time.Duration
	totalsEvery   time.Duration
	auditEvery    time.Duration
	auditRows     int
	memoryBudget  string
	metricsBoards uint
	hotKeys       bool
	hot           hotkey.Config
	poll          cli.HotKeyOptions
	profiles      profileOptions
	tracing       cli.TracingOptions
	resp          respOptions
	rpc           rpcOptions
	write         writeOptions
	snapshots     snapshotOptions
}

// NewCommand returns rankcache serve.
func NewCommand() *cobra.Command {
	o := &Options{}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the sidecar",
		Long: `Run the sidecar: answer the app's reads from local memory where a board is hot or
super-hot and from Redis where it is not.

The health port reports ready once Redis has answered, and every super-hot board equals
Redis, or has been given up to Redis because its deadline passed. With --snapshot-dir boards are kept
in files, so that a restart reads only what came since; where Redis is away at the
start, the files answer, with their age. With --snapshots a new pod begins with
the boards that rankcache keep has saved for the whole fleet.`,
		Example: `  rankcache serve --redis redis://redis:6379 --kafka kafka:9092 --rooms rooms.yaml
  rankcache serve --redis redis://redis:6379 --log redis --rooms rooms.yaml
  rankcache serve --redis redis://redis:6379 --log redis --rooms rooms.yaml --write
  rankcache serve --config rankcache.yaml --socket /run/rankcache/data.sock --snapshot-dir /var/lib/rankcache
  rankcache serve --redis 'rediss://app:secret@node1:6379?addr=node2:6379' --redis-mode cluster \
      --kafka.security.protocol=sasl_ssl --kafka.sasl.username=app`,
		Args: cli.NoArgs,
	}
	cmd.RunE = o.LongRunning(func(cmd *cobra.Command, log *slog.Logger) error { return Run(cmd.Context(), o, log) })
	o.Register(cmd.Flags())
	return cmd
}

// Register registers the flags.
func (o *Options) Register(flags *pflag.FlagSet) {
	o.Options.Register(flags)
	o.RegisterLog(flags)
	o.RegisterLogSize(flags)
	cli.Group(flags, "Redis, Kafka, rooms")
	flags.StringVar(&o.data, "data", DefaultData, "`address` of the data port, for the app; keep it on loopback")
	flags.StringVar(&o.socket, "socket", "", "Unix socket `file` for the app, in addition to the data port")
	cli.RegisterAdmin(flags, &o.admin)
	flags.StringVar(&o.health, "health", cli.DefaultHealth, "`address` of the health port, which a kubelet must reach")
	flags.StringSliceVar(&o.hosts, "allow-host", nil, "further `names` that callers may put into Host on loopback ports")
	flags.StringVar(&o.compatBoard, "compat-board", "", "`board` that GET /v1/scores reads unless it names another; empty: it must name one")
	flags.StringVar(&o.ledgerURL, "ledger-url", "", "`URL` of a rankcache ledger --serve-reads, which answers what Redis leaves unanswered; empty: nothing does")
	flags.DurationVar(&o.smallStale, "small-stale", 0, "for how long a page of a small board that was read is answered again, with its age, while Redis does not answer; 0: not at all")
	o.adminToken = cli.SecretVar(flags, "admin-token", "", "bearer token required for admin changes; empty: changes are refused")
	cli.Group(flags, "Ports and callers")
	cli.RegisterDrain(flags, &o.drain)
	flags.BoolVar(&o.drainEarly, "drain-early", false, "end --drain once the app has had no connection for 250 ms; only for a native sidecar, which is stopped after the app")
	cli.Group(flags, "Stopping")
	cli.ChoiceVar(flags, &o.RedisRole, "redis-role", "", origin.RoleMaster, "what Redis is: master, or replica in a region that only reads, where its lag is no fault and nothing is written to it",
		origin.RoleMaster, origin.RoleReplica)
	o.redisRead = cli.SecretVar(flags, "redis-read", "", "`URL` of a replica of --redis, or of the Sentinels with master_name=…, or of the replicas of all instances in their order (addr=…), or the word replicas with --redis-mode cluster: they answer small boards and refresh hot pages in its place, with their age; it needs rankcache keep; empty: none does")
	cli.Group(flags, "Regions and replicas")
	flags.StringVar(&o.total, "total", "seq", "what Redis keeps as a board's total: seq, key:<pattern> or none")
	flags.DurationVar(&o.deadline, "give-up-after", replay.DefaultDeadline, "give a board that does not open up to Redis after this, plus 50 µs for each update")
	flags.DurationVar(&o.publishEvery, "publish-every", replay.DefaultPublishEvery, "shortest time between two publications of a board")
	flags.DurationVar(&o.totalsEvery, "totals-every", replay.DefaultTotalsEvery, "how often the totals of all super-hot boards are read from Redis, in one round trip; an answer's age reaches this")
	flags.DurationVar(&o.auditEvery, "audit-every", replay.DefaultAuditEvery, "how often each open super-hot board without seqs is compared with Redis; 0: never")
	flags.IntVar(&o.auditRows, "audit-rows", replay.DefaultAuditRows, "`rows` a second, of all open super-hot boards together, that are compared with Redis to find scores changed by hand; 0: none")
	cli.Group(flags, "Super-hot boards")
	o.snapshots.register(flags)
	cli.Group(flags, "Boards in files")
	flags.StringVar(&o.memoryBudget, "memory-budget", defaultMemoryBudget, "most memory for super-hot boards: `bytes` (300MiB), a share of the memory limit (60%), or 0 for no limit; less where the rest of the process needs it")
	flags.UintVar(&o.metricsBoards, "metrics-boards", 50, "how many super-hot boards have metrics of their own: those in trouble, then the largest; the rest are combined, board=\"(others)\"; 0: all are")
	cli.Group(flags, "Memory and metrics")
	registerHot(flags, &o.hotKeys, &o.hot)
	cli.Group(flags, "Hot boards")
	o.poll.Register(flags)
	cli.Group(flags, "The fleet's hot keys")
	o.profiles.register(flags)
	cli.Group(flags, "Profiles")
	o.tracing.Register(flags)
	cli.Group(flags, "Traces")
	o.resp.register(flags)
	cli.Group(flags, "Clients of Redis")
	o.rpc.register(flags)
	cli.Group(flags, "Live pages, Connect and gRPC")
	o.write.register(flags)
	cli.Group(flags, "Changes")
}

// Run runs the sidecar until ctx is done and everything has ended.
func Run(ctx context.Context, o *Options, log *slog.Logger) error {
	if err := o.snapshots.check(); err != nil {
		return err
	}
	s, err := newSidecar(o, log)
	if err != nil {
		return err
	}
	defer s.close()
	return s.run(ctx)
}
