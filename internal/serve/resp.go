package serve

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/pflag"

	"rankcache/internal/cli"
)

// respOptions are the settings of the listener for clients of Redis.
type respOptions struct {
	addr, socket string
	maxAge       time.Duration
}

func (o *respOptions) register(flags *pflag.FlagSet) {
	flags.StringVar(&o.addr, "resp", "", "`address` for clients of Redis, such as 127.0.0.1:6390; empty: none. Keep it on loopback: a client that can connect can do all that this sidecar can in Redis. Not with --redis-mode cluster or instances")
	flags.StringVar(&o.socket, "resp-socket", "", "Unix socket `file` for clients of Redis")
	flags.DurationVar(&o.maxAge, "resp-max-age", 0, "pass reads over --resp on to Redis if the copy was last known to be current before so long; 0: read any copy that is open")
}

func (o *respOptions) enabled() bool { return o.addr != "" || o.socket != "" }

// rawDial returns how a client connects: with TLS, and to the master that Sentinel names.
func rawDial(o *redis.Options) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		conn, err := o.Dialer(ctx, o.Network, o.Addr)
		if err != nil {
			return nil, fmt.Errorf("connect to Redis: %w", cli.ExplainHandshake(err))
		}
		return conn, nil
	}
}
