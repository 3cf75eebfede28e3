package writer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"rankcache/wire"
	"rankcache/writer/internal/rewind"
)

// master is a server of Redis that has boards, and its era when it was asked.
type master struct {
	name   rewind.Master // a hash tag of its lowest slot
	era    rewind.Era
	client redis.Cmdable // of this server alone in a cluster
}

// masters asks all servers that have slots, or the one server, for their eras. A server is asked and
// not a key's: while a slot moves, its keys are answered by two. The error is that one has not answered.
func (a *adopter) masters(ctx context.Context) (all []master, err error) {
	cluster, ok := a.client.(*redis.ClusterClient)
	if !ok {
		era, err := readEra(ctx, a.client)
		return []master{{a.eras.tagOf(0), era, a.client}}, err
	}
	var mu sync.Mutex
	err = cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		era, err := readEra(ctx, node)
		lowest, slotErr := lowestSlot(ctx, node)
		mu.Lock()
		defer mu.Unlock()
		if lowest >= 0 {
			all = append(all, master{a.eras.tagOf(lowest), era, node})
		}
		return errors.Join(err, slotErr)
	})
	slices.SortFunc(all, func(x, y master) int { return strings.Compare(string(x.name), string(y.name)) })
	return all, err
}

func readEra(ctx context.Context, node redis.Cmdable) (rewind.Era, error) {
	info, err := node.Info(ctx, "replication").Result()
	if err != nil {
		return "", fmt.Errorf("history of a server of Redis: %w: check that the user may call INFO (+info)", err)
	}
	_, id, _ := strings.Cut(info, "master_replid:")
	if len(id) < wire.EraLen || !strings.Contains(info, "role:master") {
		return "", errors.New("a server of Redis is no master, or has no master_replid: check that the address is that of the master")
	}
	return rewind.Era(id[:wire.EraLen]), nil
}

// lowestSlot returns the lowest slot of a node by its own account, -1 if it has none.
func lowestSlot(ctx context.Context, node *redis.Client) (lowest int, err error) {
	text, err := node.ClusterNodes(ctx).Result()
	if err != nil {
		return -1, fmt.Errorf("slots of a node of the cluster: %w", err)
	}
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 8 && strings.HasPrefix(f[2], "myself") { // its slots are behind eight other fields, ascending
			first, _, _ := strings.Cut(f[8], "-")
			if lowest, err := strconv.Atoi(first); err == nil {
				return lowest, nil
			}
		}
	}
	return -1, nil
}

const slots = 1 << 14

// slotOf returns the slot of a key that is its own hash tag.
func slotOf(tag string) int {
	var crc uint16 // CRC-16/XMODEM
	for i := range len(tag) {
		crc ^= uint16(tag[i]) << 8
		for range 8 {
			crc = crc<<1 ^ crc>>15*0x1021
		}
	}
	return int(crc) % slots
}

// tagOf returns the first number, as text, that has the slot.
func (e *eras) tagOf(slot int) rewind.Master {
	if tag, ok := e.tags.Load(slot); ok {
		return tag.(rewind.Master)
	}
	for i := 0; ; i++ {
		if tag := strconv.Itoa(i); slotOf(tag) == slot {
			e.tags.Store(slot, rewind.Master(tag))
			return rewind.Master(tag)
		}
	}
}
