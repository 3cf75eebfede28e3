package origin

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
)

// The scripts only read. Each declares all its keys, the board's and that of its
// state if there is one, so that a cluster can route it.
var (
	//go:embed page.lua
	pageSource string
	//go:embed around.lua
	aroundSource string
	//go:embed whole.lua
	wholeSource string
	//go:embed bound.lua
	boundSource string // functions of whole.lua and ranked.lua
	//go:embed ranked.lua
	rankedSource string
	//go:embed sample.lua
	sampleSource string

	pageScript   = redis.NewScript(pageSource)
	aroundScript = redis.NewScript(aroundSource)
	wholeScript  = redis.NewScript(boundSource + wholeSource)
	rankedScript = redis.NewScript(boundSource + rankedSource)
	sampleScript = redis.NewScript(sampleSource)
)

// scriptCall is one run of a script.
type scriptCall struct {
	keys []string
	args []any
}

// runAll runs the script once per call in one pipeline, and repeats those that
// Redis did not have in a second one with the source. The replies are in the order
// of the calls; each has its own error.
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

// toPage converts the reply of page.lua.
func toPage(total TotalSource, keys []string, reply *redis.Cmd, at time.Time) (page rankcache.Page, err error) {
	list, err := fields(keys[0], reply, 3)
	if err != nil {
		return page, err
	}
	if page.Stamp, err = total.stamp(keys, list[1], list[2], at); err != nil {
		return page, err
	}
	rows, _ := list[0].([]any)
	page.Entries, err = pairsToEntries(keys[0], rows)
	return page, err
}

// toAround converts the reply of around.lua.
func toAround(total TotalSource, keys []string, reply *redis.Cmd, at time.Time) (page rankcache.Page, rank int, err error) {
	list, err := fields(keys[0], reply, 5)
	if err != nil {
		return page, 0, err
	}
	if page.Stamp, err = total.stamp(keys, list[3], list[4], at); err != nil {
		return page, 0, err
	}
	index, ok := list[0].(int64)
	if !ok {
		return page, 0, nil
	}
	start, _ := list[1].(int64)
	rows, _ := list[2].([]any)
	page.Start = int(start)
	page.Entries, err = pairsToEntries(keys[0], rows)
	return page, int(index) + 1, err
}
