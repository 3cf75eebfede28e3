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

// reloadEvery is the least time between two requests for a cluster's slots.
const reloadEvery = 200 * time.Millisecond

// reloadPrefixes start the error replies of a node that does not serve the requested
// slots.
var reloadPrefixes = []string{"CLUSTERDOWN", "MASTERDOWN", "READONLY"}

// reloadOnErrors has a cluster client ask for the slots again as soon as a node can't be
// reached. By itself it does so once a minute, or when a node that is up redirects
// it, so that the board of a dead master would stay unread long after its replica took over.
func reloadOnErrors(client *redis.ClusterClient) {
	hook := &reloadHook{reload: client.ReloadState, limit: rate.Sometimes{Interval: reloadEvery}}
	client.OnNewNode(func(node *redis.Client) { node.AddHook(hook) })
}

// anyReplica has each process read another replica of a master, where there are several.
type anyReplica struct{}

// Next returns one of n.
func (anyReplica) Next(n int) int { return rand.IntN(n) } // #nosec G404 -- which one is no secret

// reloadHook is the [redis.Hook] of every node of a cluster.
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
