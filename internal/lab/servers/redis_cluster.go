package servers

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"
)

// ClusterOptions configures a Redis Cluster. The zero value has three masters with a replica each, and fails over about
// two seconds after a master's death.
type ClusterOptions struct {
	Masters     int           // 0: 3, the fewest that can elect a new master
	Replicas    int           // of each master; 0: 1
	NodeTimeout time.Duration // until a silent node counts as failed; 0: 1 s
	Args        []string      // further arguments of every node
}

const clusterSlots = 16384

// RedisCluster is a running Redis Cluster of several redis-servers. Reads of the other shards go on while one has no
// master.
type RedisCluster struct{ Nodes []*Redis } // the first Masters of them began as masters

// StartRedisCluster starts the nodes, joins them, and returns once every node finds the cluster in order and every
// replica has its master's data, some three seconds later. ctx bounds the start. The error wraps ErrNotInstalled when
// there is no redis-server.
func StartRedisCluster(ctx context.Context, o ClusterOptions) (*RedisCluster, error) {
	if o.Masters == 0 {
		o.Masters = 3
	}
	if o.Replicas == 0 {
		o.Replicas = 1
	}
	if o.NodeTimeout == 0 {
		o.NodeTimeout = time.Second
	}
	c := &RedisCluster{}
	err := c.start(ctx, o)
	if err == nil {
		err = c.join(ctx, o.Masters)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *RedisCluster) start(ctx context.Context, o ClusterOptions) error {
	args := []string{"--cluster-node-timeout", strconv.FormatInt(o.NodeTimeout.Milliseconds(), 10), "--cluster-require-full-coverage", "no",
		"--repl-diskless-sync-delay", "0"}
	for range o.Masters * (1 + o.Replicas) {
		r, err := StartRedis(ctx, RedisOptions{Cluster: true, Args: append(args, o.Args...)})
		if err != nil {
			return err
		}
		c.Nodes = append(c.Nodes, r)
	}
	return nil
}

// join does what "redis-cli --cluster create" does.
func (c *RedisCluster) join(ctx context.Context, masters int) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for i, n := range c.Nodes {
		err := n.Do(ctx, "cluster", "set-config-epoch", i+1) // else nodes that meet give each other new ones for a while
		if i < masters && err == nil {
			err = n.Do(ctx, "cluster", "addslotsrange", clusterSlots*i/masters, clusterSlots*(i+1)/masters-1)
		}
		if err == nil && i > 0 {
			host, port, bus := "127.0.0.1", n.port(), n.Bus
			err = c.Nodes[0].Do(ctx, "cluster", "meet", host, port, bus)
		}
		if err != nil {
			return err
		}
	}
	if err := c.all(ctx, c.introduced); err != nil {
		return err
	}
	for i, n := range c.Nodes[masters:] {
		id, err := c.Nodes[i%masters].text(ctx, "cluster", "myid")
		if err == nil {
			err = n.Do(ctx, "cluster", "replicate", id)
		}
		if err != nil {
			return err
		}
	}
	return c.WaitWhole(ctx)
}

// introduced reports whether a node knows all others.
func (c *RedisCluster) introduced(ctx context.Context, n *Redis) error {
	text, err := n.text(ctx, "cluster", "nodes")
	if err == nil && (strings.Count(text, " connected") < len(c.Nodes) || strings.Contains(text, "handshake")) {
		err = fmt.Errorf("%s does not know all nodes yet:\n%s", n.Addr(), text)
	}
	return err
}

// WaitWhole waits until every running node finds the cluster in order and all masters well, and every running replica has
// its master's data, at most half a minute.
func (c *RedisCluster) WaitWhole(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return c.all(ctx, func(ctx context.Context, n *Redis) error {
		info, err := n.text(ctx, "cluster", "info")
		if err == nil && !(strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "_slots_pfail:0") && strings.Contains(info, "_slots_fail:0")) {
			err = fmt.Errorf("%s: the cluster is not in order:\n%s", n.Addr(), info)
		}
		if err == nil {
			err = n.inSync(ctx)
		}
		return err
	})
}

// all waits until a condition holds for every running node.
func (c *RedisCluster) all(ctx context.Context, cond func(context.Context, *Redis) error) error {
	return pollUntil(ctx, func() error {
		var nodes errgroup.Group
		for _, n := range c.Nodes {
			if n.Running() {
				nodes.Go(func() error { return cond(ctx, n) })
			}
		}
		return nodes.Wait()
	})
}

// Addrs returns host:port of every node.
func (c *RedisCluster) Addrs() []string {
	addrs := make([]string, len(c.Nodes))
	for i, n := range c.Nodes {
		addrs[i] = n.Addr()
	}
	return addrs
}

// Master returns the running node that serves a key as its master, in its own view; an error while there is none.
func (c *RedisCluster) Master(ctx context.Context, key string) (*Redis, error) {
	for _, n := range c.Nodes {
		if !n.Running() {
			continue
		}
		// A node that does not serve the key answers MOVED, a replica too.
		if _, err := n.text(ctx, "type", key); err == nil {
			return n, nil
		}
	}
	return nil, fmt.Errorf("no node of the cluster serves %s", key)
}

// OtherMaster returns a running master that does not serve a key; which nodes are masters changes when one was killed.
func (c *RedisCluster) OtherMaster(ctx context.Context, key string) (*Redis, error) {
	serves, err := c.Master(ctx, key)
	if err != nil {
		return nil, err
	}
	for _, n := range c.Nodes {
		if n == serves || !n.Running() {
			continue
		}
		if role, err := n.text(ctx, "info", "replication"); err == nil && strings.Contains(role, "role:master") {
			return n, nil
		}
	}
	return nil, fmt.Errorf("no master of the cluster but the one that serves %s", key)
}

// Close kills the nodes and removes their folders.
func (c *RedisCluster) Close() error {
	var errs []error
	for _, n := range c.Nodes {
		errs = append(errs, n.Close())
	}
	return errors.Join(errs...)
}

// Output returns what the nodes printed last.
func (c *RedisCluster) Output() string { return outputs(c.Nodes) }

// Moved is how long MIGRATE took, for which every call of the slot has to wait.
type Moved struct {
	Calls          int
	Longest, Total time.Duration
}

// MoveSlot moves a key's slot to another master while clients go on, by so many keys a MIGRATE, as "redis-cli --cluster
// reshard" does with ten.
func (c *RedisCluster) MoveSlot(ctx context.Context, key string, to *Redis, keys int) (m Moved, err error) {
	from, err := c.Master(ctx, key)
	if err != nil {
		return m, err
	}
	slot, err := from.text(ctx, "cluster", "keyslot", key)
	if err != nil {
		return m, err
	}
	fromID, err := from.text(ctx, "cluster", "myid")
	if err != nil {
		return m, err
	}
	toID, err := to.text(ctx, "cluster", "myid")
	if err != nil {
		return m, err
	}
	if err := c.failOver(ctx, false); err != nil {
		return m, err
	}
	defer func() { // a node that counts as failed until the next ping would lose its place, and writes
		ctx := context.WithoutCancel(ctx)
		err = errors.Join(err, c.WaitWhole(ctx), c.failOver(ctx, true))
	}()
	if err = to.Do(ctx, "cluster", "setslot", slot, "importing", fromID); err == nil {
		err = from.Do(ctx, "cluster", "setslot", slot, "migrating", toID)
	}
	for done := false; err == nil && !done; {
		done, err = m.migrate(ctx, from, to, slot, keys)
	}
	for _, n := range []*Redis{to, from} {
		if err == nil {
			err = n.Do(ctx, "cluster", "setslot", slot, "node", toID)
		}
	}
	return m, err
}

// migrate moves some keys of a slot and reports whether none is left.
func (m *Moved) migrate(ctx context.Context, from, to *Redis, slot string, keys int) (done bool, err error) {
	c := from.Client()
	defer c.Close()
	names, err := c.Do(ctx, "cluster", "getkeysinslot", slot, keys).StringSlice()
	if err != nil || len(names) == 0 {
		return err == nil, err
	}
	args := []any{"migrate", "127.0.0.1", to.port(), "", 0, 60_000, "keys"}
	for _, name := range names {
		args = append(args, name)
	}
	start := time.Now()
	err = c.Do(ctx, args...).Err()
	took := time.Since(start)
	m.Calls, m.Longest, m.Total = m.Calls+1, max(m.Longest, took), m.Total+took
	if errors.Is(err, redis.Nil) || err == nil {
		return false, nil
	}
	return false, fmt.Errorf("migrate %d keys of slot %s: %w", len(names), slot, err)
}

// failOver sets whether replicas take the place of a master that is silent for the node time-out, which is shorter than
// a MIGRATE may block it.
func (c *RedisCluster) failOver(ctx context.Context, on bool) error {
	no := map[bool]string{true: "no", false: "yes"}
	for _, n := range c.Nodes {
		if err := n.Do(ctx, "config", "set", "cluster-replica-no-failover", no[on]); err != nil {
			return err
		}
	}
	return nil
}
