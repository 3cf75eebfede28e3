package app

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"rankcache/hotkey"
	"rankcache/internal/health"
	"rankcache/internal/httpserve"
	"rankcache/origin"
	"rankcache/wire"
)

// defaultPollHealth is the health port of rankcache poll.
const defaultPollHealth = ":8975"

// Sources of the fleet's verdict.
const (
	sourceAuto    = "auto"
	sourceTencent = "tencent"
	sourceRedis   = "redis"
	sourceNone    = "none"
)

// pollOptions configure the poller of hot keys.
type pollOptions struct {
	source   string
	instance string
	poller   hotkey.PollerConfig
	tencent  hotkey.TencentConfig
}

func (o *pollOptions) register(flags *pflag.FlagSet) {
	choiceVar(flags, &o.source, "hot-source", "", sourceAuto, "source of the hot keys: tencent, redis (HOTKEYS), none, or auto: tencent if --tencent-instance is set, else redis",
		sourceAuto, sourceTencent, sourceRedis, sourceNone)
	flags.StringVar(&o.instance, "hot-instance", "", "`name` of the Redis in the shared verdict's key; empty: --tencent-instance, else \"default\"")
	flags.DurationVar(&o.poller.Every, "poll-every", hotkey.DefaultPollEvery, "time between two calls of the whole fleet")
	flags.StringVar(&o.tencent.Instance, "tencent-instance", "", "Tencent Cloud Redis `instance`, such as crs-1234abcd")
	flags.StringVar(&o.tencent.Region, "tencent-region", "", "its `region`, such as ap-guangzhou")
	flags.StringVar(&o.tencent.Endpoint, "tencent-endpoint", hotkey.DefaultTencentEndpoint, "`URL` of the API")
	choiceVar(flags, &o.tencent.Credentials, "tencent-credentials", "", hotkey.TencentAuto, "where its credentials come from: env, tke, cvm or auto",
		hotkey.TencentAuto, hotkey.TencentEnv, hotkey.TencentTKE, hotkey.TencentCVM)
	flags.Int64Var(&o.tencent.MinCount, "tencent-min-count", hotkey.DefaultTencentMinCount, "least `requests` per 5 s of a hot key")
}

// verdictInstance names the Redis in the key of the fleet's verdict.
func (o *pollOptions) verdictInstance() string {
	return cmp.Or(o.instance, o.tencent.Instance, "default")
}

// newSource returns the source that is configured, nil for none.
func (o *pollOptions) newSource(client redis.UniversalClient, names wire.Names) (hotkey.Source, error) {
	source := o.source
	if _, single := client.(*redis.Client); source == sourceAuto {
		switch {
		case o.tencent.Instance != "":
			source = sourceTencent
		case single:
			source = sourceRedis
		default:
			source = sourceNone // HOTKEYS speaks of one server
		}
	}
	switch source {
	case sourceTencent:
		return hotkey.NewTencent(o.tencent, names)
	case sourceRedis:
		return hotkey.NewRedisHotKeys(hotkey.RedisHotKeysConfig{}, client, names)
	case sourceNone:
		return nil, nil
	}
	return nil, Usagef("--hot-source %q: want auto, tencent, redis or none", o.source)
}

// newPoller returns the poller of the source that is configured, nil for none.
func (o *pollOptions) newPoller(client redis.UniversalClient, names wire.Names, log *slog.Logger, reg prometheus.Registerer) (*hotkey.Poller, error) {
	source, err := o.newSource(client, names)
	if err != nil || source == nil {
		return nil, err
	}
	o.poller.ID = fmt.Sprintf("%s-%d", hostName(), os.Getpid())
	return hotkey.NewPoller(o.poller, source, client, names, o.verdictInstance(), log, reg)
}

// pollCommandOptions are the settings of rankcache poll.
type pollCommandOptions struct {
	commonOptions
	poll   pollOptions
	health string
}

func newPollCommand() *cobra.Command {
	o := &pollCommandOptions{}
	cmd := &cobra.Command{
		Use:   "poll",
		Short: "Run the fleet's hot-key poller alone",
		Long: `Ask the cloud which Redis keys are hot and share the verdict with all sidecars
through Redis. A lease elects one poller however many run. With this command
running, sidecars need no cloud credentials: give them --hot-source none.`,
		Example: "  rankcache poll --redis redis://redis:6379 --tencent-instance crs-1234abcd --tencent-region ap-guangzhou",
		Args:    NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			hup := catchHangups()
			if err := o.load(cmd); err != nil {
				return err
			}
			return poll(cmd.Context(), o, hup, cmd.ErrOrStderr())
		},
	}
	o.register(cmd.Flags())
	return cmd
}

func (o *pollCommandOptions) register(flags *pflag.FlagSet) {
	o.commonOptions.register(flags)
	o.poll.register(flags)
	flags.StringVar(&o.health, "health", defaultPollHealth, "`address` of the health port")
}

// poll runs the poller until ctx is done.
func poll(ctx context.Context, o *pollCommandOptions, hup hangups, stderr io.Writer) error {
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
	poller, err := o.poll.newPoller(client, o.names, log, registry)
	if err != nil {
		return err
	}
	if poller == nil {
		return Usagef("--hot-source %s: there is nothing to poll; want tencent or redis", o.poll.source)
	}
	listeners, err := openListeners(flagAddr{"health", o.health})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return poller.Run(ctx) })
	needs := health.Needs{serviceRedis: health.NewNeed(answerLasts).Require(o.redisNeed(client, "poll", "", nil), nil)}
	group.Go(func() error { return needs.Run(ctx) })
	ready := readiness(needs, nil)
	registerProcess(registry, ready)
	port := newHealthPort(&o.commonOptions, ready, registry, log).handler()
	for _, l := range listeners {
		group.Go(func() error { return httpserve.Serve(ctx, l, port, o.probes(nil), log) })
	}
	go hup.reload(ctx, log, o.secrets)
	log.Info("polling", "health", listeners.addr("health"), "source", o.poll.source, "key", o.names.HotKey(o.poll.verdictInstance()), "version", Version)
	return group.Wait()
}
