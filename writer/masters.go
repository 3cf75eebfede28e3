package writer

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/masters"
	"rankcache/wire"
	"rankcache/writer/internal/rewind"
)

// master is a server of Redis that has boards, and its era when it was asked.
type master struct {
	name   rewind.Master // a hash tag of its lowest slot
	era    rewind.Era
	client redis.Cmdable // of this server alone in a cluster
}

// masters asks all servers that have slots, or the one server, for their eras. The error is that one has
// not answered.
func (a *adopter) masters(ctx context.Context) (all []master, err error) {
	var mu sync.Mutex
	err = masters.Each(ctx, a.client, func(ctx context.Context, tag string, node redis.Cmdable) error {
		era, err := masters.Era(node.Info(ctx, "replication").Result())
		mu.Lock()
		defer mu.Unlock()
		all = append(all, master{rewind.Master(tag), rewind.Era(era[:min(len(era), wire.EraLen)]), node})
		return err
	})
	slices.SortFunc(all, func(x, y master) int { return strings.Compare(string(x.name), string(y.name)) })
	return all, err
}
