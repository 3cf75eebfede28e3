package origin

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/time/rate"
)

const reloadEvery = 200 * time.Millisecond // the least time between two requests for a cluster's slots

// reloadPrefixes start the error replies of a node that does not serve the requested slots.
var reloadPrefixes = []string{"CLUSTERDOWN", "MASTERDOWN", "READONLY"}

// reloadOnErrors has a cluster client ask for the slots as soon as a node can't be reached, not once a minute.
func reloadOnErrors(client *redis.ClusterClient) {
	hook := &reloadHook{reload: client.ReloadState, limit: rate.Sometimes{Interval: reloadEvery}}
	client.OnNewNode(func(node *redis.Client) { node.AddHook(hook) })
}

// budgets gives each node of a client a [Budget].
func (opts Options) budgets(client *redis.ClusterClient) {
	client.OnNewNode(func(node *redis.Client) { node.AddHook(newBudgetHook(opts.Timeout)) })
}

type anyReplica struct{} // has each process read another replica of a master, where there are several

// Next returns one of n.
func (anyReplica) Next(n int) int { return rand.IntN(n) } // #nosec G404 -- which one is no secret

type reloadHook struct {
	reload func(context.Context) // only starts reloading
	limit  rate.Sometimes
}

func (h *reloadHook) look(ctx context.Context, err error) {
	if isNodeAway(err) && !errors.Is(ctx.Err(), context.Canceled) {
		h.limit.Do(func() { h.reload(ctx) })
	}
}

// DialHook looks at the errors of connecting.
func (h *reloadHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		h.look(ctx, err)
		return conn, err
	}
}

// ProcessHook looks at the errors of commands.
func (h *reloadHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		h.look(ctx, err)
		return err
	}
}

// ProcessPipelineHook looks at the first error of a pipeline that matters.
func (h *reloadHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		worst := err
		for i := 0; i < len(cmds) && !isNodeAway(worst); i++ {
			worst = cmds[i].Err()
		}
		h.look(ctx, worst)
		return err
	}
}

// isNodeAway reports whether an error may mean that other nodes have the slots now.
func isNodeAway(err error) bool {
	if err == nil || errors.Is(err, redis.Nil) {
		return false
	}
	var reply redis.Error
	return !errors.As(err, &reply) || slices.ContainsFunc(reloadPrefixes, func(prefix string) bool { return redis.HasErrorPrefix(err, prefix) })
}
