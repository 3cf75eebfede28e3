// Package masters asks each server of Redis that has boards.
package masters

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Each calls do for each server that has slots, or the one server, by a name that it keeps over failovers: a hash tag
// of its lowest slot. In a cluster node is a client of that server alone, and do runs concurrently. The error is that
// of one call, or that a node does not tell its slots.
func Each(ctx context.Context, client redis.UniversalClient, do func(ctx context.Context, tag string, node redis.Cmdable) error) error {
	cluster, ok := client.(*redis.ClusterClient)
	if !ok {
		return do(ctx, Tag(0), client)
	}
	return cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		lowest, err := lowestSlot(ctx, cluster, node)
		if err != nil || lowest < 0 {
			return err
		}
		return do(ctx, Tag(lowest), node)
	})
}

// Of returns the name of the server that has a key.
func Of(ctx context.Context, client redis.UniversalClient, key string) (tag string, err error) {
	cluster, ok := client.(*redis.ClusterClient)
	if !ok {
		return Tag(0), nil
	}
	node, err := cluster.MasterForKey(ctx, key)
	if err != nil {
		return "", err
	}
	lowest, err := lowestSlot(ctx, cluster, node)
	if err == nil && lowest < 0 {
		err = fmt.Errorf("the server of key %s has no slots any more", key)
	}
	return Tag(max(lowest, 0)), err
}

const eraLen = 40 // the length of master_replid

// Era returns the name of a master's present history: the master_replid of what INFO replication has answered.
func Era(info string, err error) (string, error) {
	if err != nil {
		return "", fmt.Errorf("history of a server of Redis: %w: check that the user may call INFO (+info)", err)
	}
	_, id, _ := strings.Cut(info, "master_replid:")
	if len(id) < eraLen || !strings.Contains(info, "role:master") {
		return "", errors.New("a server of Redis is no master, or has no master_replid: check that the address is that of the master")
	}
	return id[:eraLen], nil
}

// lowestSlot returns a node's lowest slot, -1 if it has none: by its own account, else by the client's.
func lowestSlot(ctx context.Context, cluster *redis.ClusterClient, node *redis.Client) (lowest int, err error) {
	if fixed := cluster.Options().ClusterSlots; fixed != nil {
		ranges, err := fixed(ctx)
		at := slices.IndexFunc(ranges, func(s redis.ClusterSlot) bool {
			return s.Nodes[0].Addr == cmp.Or(node.NodeAddress(), node.Options().Addr)
		})
		if err != nil || at < 0 {
			return -1, err
		}
		return ranges[at].Start, nil
	}
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

// Part is the slots of one server that has boards.
type Part struct {
	Tag    string // the server's name, as of [Each]
	Ranges []redis.ClusterSlot
}

// Parts returns a cluster's servers that have slots, as one of them tells, or those that a client is given.
func Parts(ctx context.Context, cluster *redis.ClusterClient) ([]Part, error) {
	ask := cluster.Options().ClusterSlots
	if ask == nil {
		ask = func(ctx context.Context) ([]redis.ClusterSlot, error) {
			return cluster.ClusterSlots(ctx).Result() //lint:ignore SA1019 servers before Redis 7 have no CLUSTER SHARDS
		}
	}
	ranges, err := ask(ctx)
	if err != nil {
		return nil, fmt.Errorf("slots of the cluster: %w", err)
	}
	ranges = slices.SortedFunc(slices.Values(ranges), func(a, b redis.ClusterSlot) int { return cmp.Compare(a.Start, b.Start) })
	var parts []Part
	places := make(map[string]int) // of a server among them
	for _, s := range ranges {
		if len(s.Nodes) == 0 || s.Start < 0 || s.End >= slots || s.Start > s.End {
			continue
		}
		server := cmp.Or(s.Nodes[0].ID, s.Nodes[0].Addr)
		i, known := places[server]
		if !known {
			i = len(parts)
			places[server], parts = i, append(parts, Part{Tag: Tag(s.Start)})
		}
		parts[i].Ranges = append(parts[i].Ranges, s)
	}
	return parts, nil
}

const slots = 1 << 14

// Slot returns the slot of a key: that of what is within its first braces, if there is something.
func Slot(key string) int {
	if _, behind, ok := strings.Cut(key, "{"); ok {
		if tag, _, closed := strings.Cut(behind, "}"); closed && tag != "" {
			key = tag
		}
	}
	return slotOf(key)
}

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

var tags sync.Map // slot to its tag, which takes a millisecond to find

// Tag returns the first number, as text, that has the slot.
func Tag(slot int) string {
	if tag, ok := tags.Load(slot); ok {
		return tag.(string)
	}
	for i := 0; ; i++ {
		if tag := strconv.Itoa(i); slotOf(tag) == slot {
			tags.Store(slot, tag)
			return tag
		}
	}
}
