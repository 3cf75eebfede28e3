package rebuild

import (
	"context"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/tick"
)

// paceShare is how many times as long as a call the pause after it is: at most a fifth of Redis's core is used, for one
// caller.
const paceShare = 4

// pace has a client of Redis wait after each call.
type pace struct{}

// DialHook changes nothing.
func (pace) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// ProcessHook waits after a command.
func (pace) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		begun := time.Now()
		err := next(ctx, cmd)
		tick.Sleep(ctx, paceShare*time.Since(begun))
		return err
	}
}

// ProcessPipelineHook waits after a pipeline.
func (pace) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		begun := time.Now()
		err := next(ctx, cmds)
		tick.Sleep(ctx, paceShare*time.Since(begun))
		return err
	}
}
