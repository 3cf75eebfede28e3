package serve

import (
	"time"

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

// rpcPart is the sidecar's listener for live pages, Connect and gRPC.
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
	s.rpcServer, err = rpc.New(s.reader, rpc.Config{Hosts: s.options.hosts, ReadTimeout: s.options.ReadTimeout, Interval: o.interval, Streams: int(o.streams), Drain: s.options.drain, Classes: s.Rooms.File}, s.log, s.Registry)
	return err
}

// changed has the live pages of a board read it. It is called by publications and refreshes.
func (s rpcPart) changed(board rankcache.BoardID) {
	if s.rpcServer != nil {
		s.rpcServer.Changed(board)
	}
}
