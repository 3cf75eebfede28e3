package serve

import (
	"log/slog"

	"github.com/spf13/pflag"

	"rankcache/internal/cli"
)

// Registry returns the metrics of rankcache serve with every optional part, which does not run.
func Registry() (*cli.Registry, error) {
	o := &Options{}
	o.Register(pflag.NewFlagSet("serve", pflag.ContinueOnError))
	o.data, o.admin, o.health = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	o.profiles.redisKey = "profile:<member>"
	_ = o.redisRead.Flag.Value.Set("redis://127.0.0.1:6379")
	o.resp.addr = "127.0.0.1:0"
	o.rpc.addr = "127.0.0.1:0"
	o.snapshots.dir = "boards" // is not touched before the first save
	_ = o.snapshots.shared.Flag.Value.Set("file:///boards")
	s, err := newSidecar(o, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	s.close()
	return s.Registry, nil
}

// KeepRegistry returns the metrics of rankcache keep, which does not run.
func KeepRegistry() (*cli.Registry, error) {
	o := &KeepOptions{}
	o.Register(pflag.NewFlagSet("keep", pflag.ContinueOnError))
	o.health = "127.0.0.1:0"
	_ = o.snapshots.shared.Flag.Value.Set("file:///boards")
	k, err := newKeeper(o, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	k.close()
	return k.Registry, nil
}
