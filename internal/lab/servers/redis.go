package servers

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// RedisOptions configures how a redis-server is started. The zero value is a server on a free loopback port that writes
// nothing to disk.
type RedisOptions struct {
	Program string   // what is started; empty: the redis-server in PATH
	Dir     string   // its folder, kept at Close; empty: a temporary one
	Port    int      // 0: a free one
	Cluster bool     // a node of a cluster
	Unix    bool     // listen on a Unix socket in the folder instead of a port
	Args    []string // further arguments, which win over the defaults, such as "--appendonly", "yes"
}

// Redis is a running redis-server.
type Redis struct {
	*Server
	Bus int // the port on which it talks with the other nodes of a cluster, or 0
}

// StartRedis starts the redis-server found in PATH and returns once it answers PING. ctx bounds the start, at most half
// a minute, not the server's life. The error wraps ErrNotInstalled when there is no redis-server, and ends in the
// server's output when it did not come up.
func StartRedis(ctx context.Context, o RedisOptions) (*Redis, error) {
	bin, err := exec.LookPath(cmp.Or(o.Program, "redis-server"))
	if err != nil {
		return nil, fmt.Errorf("redis-server: %w: install it (Debian's package redis-server) or put it in PATH", ErrNotInstalled)
	}
	bus := 0
	if o.Cluster {
		// Redis's own choice, 10,000 above its port, may be one that an outgoing connection has.
		if bus, err = freePort(); err != nil {
			return nil, err
		}
		o.Args = append([]string{"--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus)}, o.Args...)
	}
	sp, err := redisSpec(bin, o)
	if err != nil {
		return nil, err
	}
	s, err := launch(ctx, sp)
	if err != nil {
		return nil, err
	}
	return &Redis{s, bus}, nil
}

func redisSpec(bin string, o RedisOptions) (spec, error) {
	port, err := o.Port, error(nil)
	if port == 0 && !o.Unix {
		if port, err = freePort(); err != nil {
			return spec{}, err
		}
	}
	dir, own, err := folder(o.Dir, "redis")
	if err != nil {
		return spec{}, err
	}
	network, addr := "tcp", loopback(port)
	args := []string{bin, "--port", strconv.Itoa(port), "--bind", "127.0.0.1"}
	if o.Unix {
		network, addr = "unix", filepath.Join(dir, "redis.sock")
		args = []string{bin, "--port", "0", "--unixsocket", addr}
	}
	args = append(args, "--dir", dir, "--save", "", "--appendonly", "no", "--daemonize", "no")
	return spec{
		name: "redis-server", argv: append(args, o.Args...), addr: addr, dir: dir, ownDir: own,
		startTimeout: 30 * time.Second, poll: 5 * time.Millisecond, probe: probeRedis(network, addr),
	}, nil
}
