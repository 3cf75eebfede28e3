package app

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rankcache/hotkey"
	"rankcache/origin"
	"rankcache/replay"
)

// DefaultData is the address of the data port.
const DefaultData = "127.0.0.1:8970"

// DefaultAdmin is the address of the sidecar's admin port.
const DefaultAdmin = "127.0.0.1:8971"

// defaultHealth is the address of the sidecar's health port.
const defaultHealth = ":8972"

// serveOptions are the settings of rankcache serve.
type serveOptions struct {
	commonOptions
	data, socket  string
	admin, health string
	hosts         []string
	adminToken    *secret
	compatBoard   string
	ledgerURL     string
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
	poll          pollOptions
	profiles      profileOptions
	tracing       tracingOptions
	resp          respOptions
	rpc           rpcOptions
	snapshots     snapshotOptions
}

func newServeCommand() *cobra.Command {
	o := &serveOptions{}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the sidecar",
		Long: `Run the sidecar: answer the app's reads from local memory where a board is hot or
super-hot and from Redis where it is not.

The health port reports ready once Redis has answered, and every super-hot board equals
Redis, or has been given up to Redis because its deadline passed. With --snapshot-dir boards are kept
in files, so that a restart reads only what came since; where Redis is away at the
start, they are answered from, with their honest age.`,
		Example: `  rankcache serve --redis redis://redis:6379 --kafka kafka:9092 --rooms rooms.yaml
  rankcache serve --config rankcache.yaml --socket /run/rankcache/data.sock --snapshot-dir /var/lib/rankcache
  rankcache serve --redis 'rediss://app:secret@node1:6379?addr=node2:6379' --redis-mode cluster \
      --kafka.security.protocol=sasl_ssl --kafka.sasl.username=app`,
		Args: NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			hup := catchHangups()
			if err := o.load(cmd); err != nil {
				return err
			}
			return serve(cmd.Context(), o, hup, cmd.ErrOrStderr())
		},
	}
	o.register(cmd.Flags())
	return cmd
}

// registerAdmin registers the address of the admin port, of serve and its clients.
func registerAdmin(flags *pflag.FlagSet, admin *string) {
	flags.StringVar(admin, "admin", DefaultAdmin, "`address` of the sidecar's admin port; keep it on loopback")
}

func (o *serveOptions) register(flags *pflag.FlagSet) {
	o.commonOptions.register(flags)
	flags.StringVar(&o.data, "data", DefaultData, "`address` of the data port, for the app; keep it on loopback")
	flags.StringVar(&o.socket, "socket", "", "Unix socket `file` for the app, in addition to the data port")
	registerAdmin(flags, &o.admin)
	flags.StringVar(&o.health, "health", defaultHealth, "`address` of the health port, which a kubelet must reach")
	flags.StringSliceVar(&o.hosts, "allow-host", nil, "further `names` that callers may put into Host on loopback ports")
	flags.StringVar(&o.compatBoard, "compat-board", "", "`board` that GET /v1/scores reads unless it names another; empty: it must name one")
	flags.StringVar(&o.ledgerURL, "ledger-url", "", "`URL` of a rankcache ledger --serve-reads, which answers what Redis leaves unanswered; empty: nothing does")
	o.adminToken = secretVar(flags, "admin-token", "", "bearer token required for admin changes; empty: changes are refused")
	group(flags, "Ports and callers")
	registerDrain(flags, &o.drain)
	flags.BoolVar(&o.drainEarly, "drain-early", false, "end --drain once the app has had no connection for 250 ms; only for a native sidecar, which is stopped after the app")
	group(flags, "Stopping")
	flags.StringVar(&o.total, "total", "seq", "what Redis keeps as a board's total: seq, key:<pattern> or none")
	flags.DurationVar(&o.deadline, "give-up-after", replay.DefaultDeadline, "give a board that does not open up to Redis after this, plus 50 µs for each update")
	flags.DurationVar(&o.publishEvery, "publish-every", replay.DefaultPublishEvery, "shortest time between two publications of a board")
	flags.DurationVar(&o.totalsEvery, "totals-every", replay.DefaultTotalsEvery, "how often the totals of all super-hot boards are read from Redis, in one round trip; an answer's age reaches this")
	flags.DurationVar(&o.auditEvery, "audit-every", replay.DefaultAuditEvery, "how often each open super-hot board without seqs is compared with Redis; 0: never")
	flags.IntVar(&o.auditRows, "audit-rows", replay.DefaultAuditRows, "`rows` a second, of all open super-hot boards together, that are compared with Redis to find scores changed by hand; 0: none")
	group(flags, "Super-hot boards")
	o.snapshots.register(flags)
	group(flags, "Boards in files")
	flags.StringVar(&o.memoryBudget, "memory-budget", defaultMemoryBudget, "most memory for super-hot boards: `bytes` (300MiB), a share of the memory limit (60%), or 0 for no limit; less where the rest of the process needs it")
	flags.UintVar(&o.metricsBoards, "metrics-boards", 50, "how many super-hot boards have metrics of their own: those in trouble, then the largest; the rest are combined, board=\"(others)\"; 0: all are")
	group(flags, "Memory and metrics")
	registerHot(flags, &o.hotKeys, &o.hot)
	group(flags, "Hot boards")
	o.poll.register(flags)
	group(flags, "The fleet's hot keys")
	o.profiles.register(flags)
	group(flags, "Profiles")
	o.tracing.register(flags)
	group(flags, "Traces")
	o.resp.register(flags)
	group(flags, "Clients of Redis")
	o.rpc.register(flags)
	group(flags, "Live pages, Connect and gRPC")
}

// serve runs the sidecar until ctx is done and everything has ended.
func serve(ctx context.Context, o *serveOptions, hup hangups, stderr io.Writer) error {
	log, err := o.logger(stderr)
	if err != nil {
		return err
	}
	origin.LogTo(log)
	if err := o.snapshots.check(); err != nil {
		return err
	}
	s, err := newSidecar(o, log)
	if err != nil {
		return err
	}
	defer s.close()
	go hup.reload(ctx, log, o.secrets)
	return s.run(ctx)
}
