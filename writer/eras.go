package writer

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"

	"rankcache/internal/masters"
	"rankcache/wire"
	"rankcache/writer/internal/rewind"
)

const erasTimeout = 5 * time.Second // bounds one reading of the eras. It outlives the post that began it.

// eras are those of all masters for which calls change durable boards: scripts answer "s" on a server with another.
// All, not the master's alone, as a board may move meanwhile. It is safe for concurrent use.
type eras struct {
	client  redis.UniversalClient
	known   atomic.Pointer[string] // all of them; nil until they are needed
	reading singleflight.Group
}

// list returns the eras as the scripts take them; before they were read one that no server has.
func (e *eras) list() string {
	if known := e.known.Load(); known != nil {
		return *known
	}
	return "unknown"
}

// take has calls be made for the eras of the masters from now on.
func (e *eras) take(all []master) {
	list := make([]string, len(all))
	for i, m := range all {
		list[i] = string(m.era)
	}
	e.known.Store(new(strings.Join(list, " ")))
}

// fenced is called when a server has another era. It returns when eras were read again, or ctx ends.
func (e *eras) fenced(ctx context.Context) error {
	done := e.reading.DoChan("", func() (any, error) {
		work, cancel := context.WithTimeout(context.WithoutCancel(ctx), erasTimeout)
		defer cancel()
		all, err := e.masters(work)
		if err == nil {
			e.take(all)
		}
		return nil, err
	})
	select {
	case result := <-done:
		return result.Err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// master is a server of Redis that has boards, and its era when it was asked.
type master struct {
	name   rewind.Master // a hash tag of its lowest slot
	era    rewind.Era
	client redis.Cmdable // of this server alone in a cluster
}

// masters asks all servers that have slots, or the one server, for their eras. The error is that one has not answered.
func (e *eras) masters(ctx context.Context) (all []master, err error) {
	var mu sync.Mutex
	err = masters.Each(ctx, e.client, func(ctx context.Context, tag string, node redis.Cmdable) error {
		era, err := masters.Era(node.Info(ctx, "replication").Result())
		mu.Lock()
		defer mu.Unlock()
		all = append(all, master{rewind.Master(tag), rewind.Era(era[:min(len(era), wire.EraLen)]), node})
		return err
	})
	slices.SortFunc(all, func(x, y master) int { return strings.Compare(string(x.name), string(y.name)) })
	return all, err
}
