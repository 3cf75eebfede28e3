package serve

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/pflag"

	"rankcache"
	"rankcache/internal/cli"
	"rankcache/sidecar/rpc"
)

// rpcOptions are the settings of the listener for live pages, Connect and gRPC.
type rpcOptions struct {
	addr     string
	interval time.Duration
	streams  uint
}

func (o *rpcOptions) register(flags *pflag.FlagSet) {
	flags.StringVar(&o.addr, "rpc", "", "`address` for live pages and for clients of Connect and gRPC, such as 127.0.0.1:8975; empty: none. Keep it on loopback")
	flags.DurationVar(&o.interval, "live-interval", rpc.DefaultInterval, "shortest time between two events of a live page with changes; the first change is sent at once")
	flags.UintVar(&o.streams, "live-streams", rpc.DefaultStreams, "most live pages at once, over --rpc")
}

type rpcPart struct{ *Sidecar }

// buildRPC builds the listener for live pages, Connect and gRPC, if there is to be one.
func (s rpcPart) buildRPC() (err error) {
	o := s.options.rpc
	if o.addr == "" {
		return nil
	}
	if o.interval <= 0 || o.streams == 0 {
		return cli.Usagef("--live-interval %v and --live-streams %d: want more than 0", o.interval, o.streams)
	}
	s.rpcServer, err = rpc.New(s.reader, rpc.Config{MaxConns: s.listeners.Most("rpc"), Hosts: s.options.hosts, ReadTimeout: s.options.ReadTimeout, Interval: o.interval, Streams: int(o.streams), Drain: s.options.drain, Classes: s.Rooms.File}, s.log, s.Registry)
	return err
}

// changed has the live pages of a board read it. It is called by publications and refreshes.
func (s rpcPart) changed(board rankcache.BoardID) {
	if s.rpcServer != nil {
		s.rpcServer.Changed(board)
	}
}

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
