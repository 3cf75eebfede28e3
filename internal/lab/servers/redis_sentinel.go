package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// SentinelMaster is the name under which the sentinels of [StartSentinel] watch their master.
const SentinelMaster = "main"

// SentinelOptions configures a master with replicas and sentinels. The zero value has two replicas and three sentinels,
// which fail over about two seconds after the master's death.
type SentinelOptions struct {
	Replicas  int           // 0: 2
	Sentinels int           // 0: 3; a majority must be alive
	DownAfter time.Duration // until a silent master counts as dead; 0: 1 s
	Args      []string      // further arguments of master and replicas
}

// Sentinel is a running master with its replicas, watched by sentinels.
type Sentinel struct {
	Nodes     []*Redis // the first began as the master
	Sentinels []*Redis
}

// replicaUser may do what a replica does, and nothing else. Turning it off on a master is how a replica falls behind
// while other clients go on.
const replicaUser = "replica"

// StartSentinel starts all of them and returns once the sentinels know each other and the replicas, and the replicas
// have the master's data. ctx bounds the start. The error wraps ErrNotInstalled when there is no redis-server.
func StartSentinel(ctx context.Context, o SentinelOptions) (*Sentinel, error) {
	if o.Replicas == 0 {
		o.Replicas = 2
	}
	if o.Sentinels == 0 {
		o.Sentinels = 3
	}
	if o.DownAfter == 0 {
		o.DownAfter = time.Second
	}
	s := &Sentinel{}
	err := s.startNodes(ctx, o)
	if err == nil {
		err = s.startSentinels(ctx, o)
	}
	if err == nil {
		err = s.waitWhole(ctx, o)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Sentinel) startNodes(ctx context.Context, o SentinelOptions) error {
	args := append([]string{"--repl-diskless-sync-delay", "0", "--masteruser", replicaUser, "--masterauth", replicaUser,
		"--user", replicaUser, "on", ">" + replicaUser, "+psync", "+replconf", "+ping"}, o.Args...)
	for i := range 1 + o.Replicas {
		if i == 1 {
			args = append(args, "--replicaof", "127.0.0.1", s.Nodes[0].port())
		}
		r, err := StartRedis(ctx, RedisOptions{Args: args})
		if err != nil {
			return err
		}
		s.Nodes = append(s.Nodes, r)
	}
	return nil
}

func (s *Sentinel) startSentinels(ctx context.Context, o SentinelOptions) error {
	for range o.Sentinels {
		n, err := startSentinel(ctx, s.Nodes[0].port(), o)
		if err != nil {
			return err
		}
		s.Sentinels = append(s.Sentinels, n)
	}
	return nil
}

// startSentinel starts one. A sentinel keeps what it learns in its configuration file.
func startSentinel(ctx context.Context, masterPort string, o SentinelOptions) (*Redis, error) {
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("redis-server: %w: install it (Debian's package redis-server) or put it in PATH", ErrNotInstalled)
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	dir, own, err := folder("", "sentinel")
	if err != nil {
		return nil, err
	}
	ms := o.DownAfter.Milliseconds()
	conf := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %s\nsentinel monitor %s 127.0.0.1 %s %d\n", port, dir, SentinelMaster, masterPort, o.Sentinels/2+1) +
		fmt.Sprintf("sentinel down-after-milliseconds %s %d\nsentinel failover-timeout %[1]s %d\n", SentinelMaster, ms, 5*ms)
	file := filepath.Join(dir, "sentinel.conf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	server, err := launch(ctx, spec{
		name: "redis-sentinel", argv: []string{bin, file, "--sentinel"}, addr: loopback(port), dir: dir, ownDir: own,
		startTimeout: 30 * time.Second, poll: 5 * time.Millisecond, probe: probeRedis("tcp", loopback(port)),
	})
	if err != nil {
		return nil, err
	}
	return &Redis{Server: server}, nil
}

func (s *Sentinel) waitWhole(ctx context.Context, o SentinelOptions) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return pollUntil(ctx, func() error {
		for _, n := range s.Nodes {
			if err := n.inSync(ctx); err != nil {
				return err
			}
		}
		for _, n := range s.Sentinels {
			info, err := n.text(ctx, "info", "sentinel")
			if want := fmt.Sprintf("slaves=%d,sentinels=%d", o.Replicas, o.Sentinels); err == nil && !strings.Contains(info, want) {
				err = fmt.Errorf("a sentinel does not know all others yet: %s", info)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Addrs returns host:port of every sentinel.
func (s *Sentinel) Addrs() []string {
	addrs := make([]string, len(s.Sentinels))
	for i, n := range s.Sentinels {
		addrs[i] = n.Addr()
	}
	return addrs
}

// Master returns the node that the first running sentinel calls the master and that agrees; an error while there is
// none.
func (s *Sentinel) Master(ctx context.Context) (*Redis, error) {
	for _, n := range s.Sentinels {
		if n.Running() {
			return s.masterOf(ctx, n)
		}
	}
	return nil, errors.New("no sentinel is running")
}

func (s *Sentinel) masterOf(ctx context.Context, sentinel *Redis) (*Redis, error) {
	c := redis.NewSentinelClient(&redis.Options{Addr: sentinel.Addr(), Protocol: 2, DisableIdentity: true})
	defer c.Close()
	at, err := c.GetMasterAddrByName(ctx, SentinelMaster).Result()
	if err != nil {
		return nil, err
	}
	for _, n := range s.Nodes {
		if n.Running() && n.port() == at[1] {
			role, err := n.text(ctx, "info", "replication")
			if err == nil && !strings.Contains(role, "role:master") {
				err = fmt.Errorf("%s is not a master yet", n.Addr())
			}
			return n, err
		}
	}
	return nil, fmt.Errorf("the sentinels call %v the master, which does not run", at)
}

// CutReplicas ends the replication from a master and keeps replicas away from it: what it acknowledges from now on is
// lost when it fails over.
func (s *Sentinel) CutReplicas(ctx context.Context, master *Redis) error {
	return errors.Join(master.Do(ctx, "acl", "setuser", replicaUser, "off"), master.Do(ctx, "client", "kill", "type", "replica"))
}

// Close kills all of them and removes their folders.
func (s *Sentinel) Close() error {
	var errs []error
	for _, n := range append(append([]*Redis{}, s.Sentinels...), s.Nodes...) {
		errs = append(errs, n.Close())
	}
	return errors.Join(errs...)
}

// Output returns what all of them printed last.
func (s *Sentinel) Output() string {
	return outputs(append(append([]*Redis{}, s.Sentinels...), s.Nodes...))
}
