package origin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"rankcache/wire"
)

// ErrOtherPlace reports an instance that boards were spread over in another way.
var ErrOtherPlace = errors.New("this Redis has another place among the instances")

const slots = 1 << 14 // those of a cluster

// instances returns a client of servers that know nothing of each other. Boards are spread over them as over the
// masters of a cluster: by slots, each address has an equal range of them, in the order of the addresses.
func (opts Options) instances() (redis.UniversalClient, error) {
	o, err := opts.clusterOptions("instances")
	if err != nil {
		return nil, err
	}
	addrs := slices.Clone(o.Addrs)
	if slices.Sort(addrs); len(addrs) < 2 || len(slices.Compact(addrs)) < len(o.Addrs) {
		return nil, errors.New("redis instances url: name each instance once, in an order that stays: redis://host1:6379?addr=host2:6379&addr=host3:6379")
	}
	ranges := spread(o.Addrs)
	o.ClusterSlots = func(context.Context) ([]redis.ClusterSlot, error) { return ranges, nil }
	o.NewClient = func(n *redis.Options) *redis.Client {
		if opts.Role == RoleRead { // its history tells whose replica it is
			n.OnConnect = rarely(masterOrReplica)
			return redis.NewClient(n)
		}
		place := fmt.Sprintf("%d/%d", 1+slices.Index(o.Addrs, cmp.Or(n.NodeAddress, n.Addr)), len(o.Addrs))
		master := rarely(onlyMaster)
		n.OnConnect = func(ctx context.Context, conn *redis.Conn) error { // of each connection: a writer would begin boards at another place
			if err := master(ctx, conn); err != nil {
				return err
			}
			if err := opts.checkPlace(ctx, conn, place); err != nil {
				return fmt.Errorf("connect: %w", err) // once more, because go-redis unwraps it
			}
			return nil
		}
		return redis.NewClient(n)
	}
	client := redis.NewClusterClient(o)
	opts.budgets(client)
	return client, nil
}

// spread returns the slots of each address.
func spread(addrs []string) (all []redis.ClusterSlot) {
	for i, addr := range addrs {
		all = append(all, redis.ClusterSlot{Start: i * slots / len(addrs), End: (i+1)*slots/len(addrs) - 1, Nodes: []redis.ClusterNode{{Addr: addr}}})
	}
	return all
}

// checkPlace compares the place that an instance has noted with the one that it has by the addresses, so that no list
// in another order has boards looked for, or begun anew, where they are not. The first writer notes it.
func (opts Options) checkPlace(ctx context.Context, conn *redis.Conn, place string) error {
	noted, err := conn.Get(ctx, wire.PlaceKey).Result()
	if errors.Is(err, redis.Nil) && opts.NotePlace {
		if err = conn.SetNX(ctx, wire.PlaceKey, place, 0).Err(); err == nil {
			noted, err = conn.Get(ctx, wire.PlaceKey).Result()
		}
	}
	switch {
	case errors.Is(err, redis.Nil):
		return nil
	case err != nil:
		return fmt.Errorf("its place among the instances (key %s): %w", wire.PlaceKey, err)
	case noted != place:
		return fmt.Errorf("%w: %s by its key %s, %s by the addresses: give all instances, in the order of before", ErrOtherPlace, noted, wire.PlaceKey, place)
	}
	return nil
}
