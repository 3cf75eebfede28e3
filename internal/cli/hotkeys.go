package cli

import (
	"cmp"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"github.com/spf13/pflag"

	"rankcache/hotkey"
	"rankcache/wire"
)

// Sources of the fleet's verdict.
const (
	sourceAuto    = "auto"
	sourceTencent = "tencent"
	sourceRedis   = "redis"
	sourceFleet   = hotkey.SourceFleet
	sourceNone    = "none"
)

// HotKeyOptions configure the poller of hot keys.
type HotKeyOptions struct {
	Source   string
	instance string
	Poller   hotkey.PollerConfig
	tencent  hotkey.TencentConfig
}

func (o *HotKeyOptions) Register(flags *pflag.FlagSet) {
	ChoiceVar(flags, &o.Source, "hot-source", "", sourceAuto, "source of the hot keys: tencent, redis (HOTKEYS), fleet (what all sidecars count), none, or auto: tencent if --tencent-instance is set, else fleet while a keeper runs, else redis",
		sourceAuto, sourceTencent, sourceRedis, sourceFleet, sourceNone)
	o.RegisterInstance(flags)
	flags.DurationVar(&o.Poller.Every, "poll-every", hotkey.DefaultPollEvery, "time between two calls of the whole fleet")
	flags.StringVar(&o.tencent.Region, "tencent-region", "", "its `region`, such as ap-guangzhou")
	flags.StringVar(&o.tencent.Endpoint, "tencent-endpoint", hotkey.DefaultTencentEndpoint, "`URL` of the API; of international accounts https://redis.intl.tencentcloudapi.com")
	ChoiceVar(flags, &o.tencent.Credentials, "tencent-credentials", "", hotkey.TencentAuto, "where its credentials come from: env, tke, cvm or auto",
		hotkey.TencentAuto, hotkey.TencentEnv, hotkey.TencentTKE, hotkey.TencentCVM)
	flags.Int64Var(&o.tencent.MinCount, "tencent-min-count", hotkey.DefaultTencentMinCount, "least `requests` per 5 s of a hot key")
}

// RegisterInstance registers what names the Redis.
func (o *HotKeyOptions) RegisterInstance(flags *pflag.FlagSet) {
	flags.StringVar(&o.instance, "hot-instance", "", "`name` of the Redis in the keys of the fleet's verdict and keeper; empty: --tencent-instance, else \"default\"")
	flags.StringVar(&o.tencent.Instance, "tencent-instance", "", "Tencent Cloud Redis `instance`, such as crs-1234abcd")
}

// RegisterKeeper registers the flags of a keeper, which adds up what the sidecars count unless there is a cloud.
func (o *HotKeyOptions) RegisterKeeper(flags *pflag.FlagSet) {
	ChoiceVar(flags, &o.Source, "hot-source", "", sourceAuto, "source of the hot keys: fleet (what all sidecars count), none, or auto: fleet unless --tencent-instance is set", sourceAuto, sourceFleet, sourceNone)
	o.RegisterInstance(flags)
}

// VerdictInstance names the Redis in the keys of the fleet's verdict and keeper.
func (o *HotKeyOptions) VerdictInstance() string {
	return cmp.Or(o.instance, o.tencent.Instance, "default")
}

// NewSource returns the source that is configured, nil for none.
func (o *HotKeyOptions) NewSource(client redis.UniversalClient, names wire.Names, log *slog.Logger, reg prometheus.Registerer) (hotkey.Source, error) {
	source := o.Source
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
		return hotkey.NewRedisHotKeys(client, names)
	case sourceFleet:
		return hotkey.NewFleet(client, names, o.VerdictInstance(), log, reg), nil
	case sourceNone:
		return nil, nil
	}
	return nil, Usagef("--hot-source %q: want auto, tencent, redis, fleet or none", o.Source)
}

// NewPoller returns the poller of the source that is configured, nil for none.
func (o *HotKeyOptions) NewPoller(client redis.UniversalClient, names wire.Names, log *slog.Logger, reg prometheus.Registerer) (*hotkey.Poller, error) {
	source, err := o.NewSource(client, names, log, reg)
	if err != nil || source == nil {
		return nil, err
	}
	cfg := o.Poller
	cfg.ID = ProcessName()
	return hotkey.NewPoller(cfg, source, client, names, o.VerdictInstance(), log, reg)
}

// NewKeeperPoller returns the poller of a keeper, nil for none.
func (o *HotKeyOptions) NewKeeperPoller(client redis.UniversalClient, names wire.Names, log *slog.Logger, reg prometheus.Registerer) (*hotkey.Poller, error) {
	k := *o
	k.Poller.Every = hotkey.FleetEvery
	switch {
	case k.Source == sourceAuto && k.tencent.Instance == "":
		k.Source = sourceFleet
	case k.Source == sourceAuto:
		k.Source = sourceNone
	}
	return k.NewPoller(client, names, log, reg)
}
