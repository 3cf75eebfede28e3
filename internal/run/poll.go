package run

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"rankcache/internal/cli"
	"rankcache/internal/health"
)

const defaultPollHealth = ":8975" // the health port of rankcache poll

// PollOptions are the settings of rankcache poll.
type PollOptions struct {
	cli.Options
	poll   cli.HotKeyOptions
	health string
}

func NewPollCommand() *cobra.Command {
	o := &PollOptions{}
	cmd := &cobra.Command{
		Use:   "poll",
		Short: "Run the fleet's hot-key poller alone",
		Long: `Read from the cloud which Redis keys are hot and share the verdict with all sidecars
through Redis. A lease elects one poller however many run. With this command
running, sidecars need no cloud credentials: give them --hot-source none.`,
		Example: "  rankcache poll --redis redis://redis:6379 --tencent-instance crs-1234abcd --tencent-region ap-guangzhou",
		Args:    cli.NoArgs,
	}
	cmd.RunE = o.LongRunning(func(cmd *cobra.Command, log *slog.Logger) error { return Poll(cmd.Context(), o, log) })
	o.Register(cmd.Flags())
	return cmd
}

func (o *PollOptions) Register(flags *pflag.FlagSet) {
	o.Options.Register(flags)
	o.poll.Register(flags)
	flags.StringVar(&o.health, "health", defaultPollHealth, "`address` of the health port")
}

// Poll runs the poller until ctx is done.
func Poll(ctx context.Context, o *PollOptions, log *slog.Logger) error {
	client, err := o.DialRedis()
	if err != nil {
		return err
	}
	defer client.Close()
	registry := cli.NewRegistry()
	poller, err := o.poll.NewPoller(client, o.Names, log, registry)
	if err != nil {
		return err
	}
	if poller == nil {
		return cli.Usagef("--hot-source %s: there is nothing to poll; want tencent or redis", o.poll.Source)
	}
	listeners, err := cli.OpenListeners(log, cli.FlagAddr{Flag: "health", Addr: o.health})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return poller.Run(ctx) })
	needs := health.Needs{cli.ServiceRedis: health.NewNeed(cli.AnswerLasts).Require(o.RedisNeed(client, "poll", "", nil), nil)}
	group.Go(func() error { return needs.Run(ctx) })
	ready := cli.Readiness(needs, nil)
	o.RegisterProcess(registry, ready)
	port := cli.NewHealthPort(&o.Options, ready, registry, log).Handler()
	for _, l := range listeners {
		group.Go(func() error { return l.Serve(ctx, port, o.Probes(nil), log) })
	}
	log.Info("polling", "health", listeners.Addr("health"), "source", o.poll.Source, "key", o.Names.HotKey(o.poll.VerdictInstance()), "version", cli.Version)
	return group.Wait()
}
