package origin

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// The scripts read only. Each gets the board's key and, where one is kept, the
// key of its total, and names no other key, so that a cluster can place it.
var (
	//go:embed page.lua
	pageSource string
	//go:embed around.lua
	aroundSource string
	//go:embed sample.lua
	sampleSource string

	pageScript   = redis.NewScript(pageSource)
	aroundScript = redis.NewScript(aroundSource)
	sampleScript = redis.NewScript(sampleSource)
)

// scriptCall is one run of a script.
type scriptCall struct {
	keys []string
	args []any
}

// runAll runs the script once per call in one pipeline, and those that Redis
// does not have in a second one that carries the source. The answers are in the
// order of the calls; each has its own error.
func (o *Origin) runAll(ctx context.Context, script *redis.Script, calls []scriptCall) []*redis.Cmd {
	answers := make([]*redis.Cmd, len(calls))
	_, _ = o.client.Pipelined(ctx, func(p redis.Pipeliner) error { // each answer has its error
		for i, c := range calls {
			answers[i] = script.EvalSha(ctx, p, c.keys, c.args...)
		}
		return nil
	})
	_, _ = o.client.Pipelined(ctx, func(p redis.Pipeliner) error { // sends nothing when nothing is added
		for i, c := range calls {
			if isNoScript(answers[i].Err()) {
				answers[i] = script.Eval(ctx, p, c.keys, c.args...)
			}
		}
		return nil
	})
	return answers
}

// fields returns the answer of a script, which is a list of n values.
func fields(key string, answer *redis.Cmd, n int) ([]any, error) {
	list, err := answer.Slice()
	if errors.Is(err, redis.Nil) || err == nil && len(list) != n {
		return nil, &badReply{key, fmt.Sprintf("answered %d values, want %d", len(list), n)}
	}
	return list, err
}
