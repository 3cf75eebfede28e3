package origin

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// The scripts only read. Each declares its keys, the board's and its state's, so that a cluster can route it.
var (
	//go:embed whole.lua
	wholeSource string
	//go:embed bound.lua
	boundSource string // functions of whole.lua
	//go:embed sample.lua
	sampleSource string

	wholeScript  = redis.NewScript(boundSource + wholeSource)
	sampleScript = redis.NewScript(sampleSource)
)

type scriptCall struct {
	keys []string
	args []any
}

// runAll runs the script once per call in a pipeline, with its source where Redis lacks it. Each reply has its error.
func runAll(ctx context.Context, client redis.UniversalClient, script *redis.Script, calls []scriptCall) []*redis.Cmd {
	replies := make([]*redis.Cmd, len(calls))
	_, _ = client.Pipelined(ctx, func(p redis.Pipeliner) error { // each reply has its error
		for i, c := range calls {
			replies[i] = script.EvalSha(ctx, p, c.keys, c.args...)
		}
		return nil
	})
	_, _ = client.Pipelined(ctx, func(p redis.Pipeliner) error { // an empty pipeline sends nothing
		for i, c := range calls {
			if isNoScript(replies[i].Err()) {
				replies[i] = script.Eval(ctx, p, c.keys, c.args...)
			}
		}
		return nil
	})
	return replies
}

// fields returns the reply of a script, a list of n values.
func fields(key string, reply *redis.Cmd, n int) ([]any, error) {
	list, err := reply.Slice()
	if errors.Is(err, redis.Nil) || err == nil && len(list) != n {
		return nil, &badReply{key, fmt.Sprintf("answered %d values, want %d", len(list), n)}
	}
	return list, err
}
