package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache/internal/lab/load"
	"rankcache/internal/lab/servers"
	"rankcache/rooms"
	"rankcache/wire"
	"rankcache/writer"
)

// splitWrites is what commands cost the masters of a cluster, which share this machine: so how much they take together is computed
// from their CPU time. Medians over the rounds.
type splitWrites struct {
	Masters int     `json:"masters"`
	One     float64 `json:"one_us"`           // CPU time of the master that has the one board, a command
	Split   float64 `json:"split_us"`         // of all masters together
	Busiest float64 `json:"split_busiest_us"` // of the one that has the most to do, of all commands
	// CapacityEven is how many times the commands of one board the masters take if the shards are spread evenly over
	// them, Capacity as they are spread here.
	CapacityEven float64 `json:"capacity_even"`
	Capacity     float64 `json:"capacity"`
}

const (
	splitWriteClasses = "classes:\n- {name: one, board: \"one_{x}\", period: none, ops: [incr]}\n- {name: split, board: \"split_{x}\", period: none, ops: [incr], shards: %d}\n"
	splitWriteMembers = 57_000 // at most
)

// splitWriters posts to boards of a cluster.
type splitWriters struct {
	writeBench
	pids []int // of the masters
}

// writes measures posts to one board and to a split one, in turn.
func (b *splitBench) writes(ctx context.Context) (r splitWrites, err error) {
	cluster, err := servers.StartRedisCluster(ctx, servers.ClusterOptions{})
	if err != nil {
		return r, fmt.Errorf("start a cluster: %w", err)
	}
	defer cluster.Close()
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs(), Protocol: 2, PoolSize: 16})
	defer client.Close()
	w := &splitWriters{writeBench: writeBench{members: min(b.members, splitWriteMembers)}}
	for _, node := range cluster.Nodes[:len(cluster.Nodes)/2] {
		w.pids = append(w.pids, node.Pid())
	}
	stop, err := w.start(ctx, client, b.shards)
	if err != nil {
		return r, err
	}
	defer stop()
	one, split := &writeKind{name: "one"}, &writeKind{name: "split"}
	for _, kind := range []*writeKind{one, split} {
		if err := w.change(ctx, kind, w.members); err != nil {
			return r, err
		}
	}
	var ones, splits, busiest, even, capacity []float64
	for range b.rounds {
		of, _, err := w.cost(ctx, one, b.window)
		if err != nil {
			return r, err
		}
		all, most, err := w.cost(ctx, split, b.window)
		if err != nil {
			return r, err
		}
		ones, splits, busiest = append(ones, of), append(splits, all), append(busiest, most)
		even, capacity = append(even, float64(len(w.pids))*of/all), append(capacity, of/most)
	}
	return splitWrites{len(w.pids), median(ones), median(splits), median(busiest), median(even), median(capacity)}, nil
}

// start starts a writer and returns what stops it.
func (w *splitWriters) start(ctx context.Context, client redis.UniversalClient, shards int) (stop func(), err error) {
	file, err := rooms.Parse(fmt.Appendf(nil, splitWriteClasses, shards))
	if err != nil {
		return nil, err
	}
	broker, err := servers.StartKfake() // of whose CPU nothing is measured
	if err != nil {
		return nil, err
	}
	posts, err := writer.New(writer.Options{Redis: client, Names: wire.DefaultNames(), Tiers: classTiers{file}, Group: writeGroup,
		Topics: writer.Topics{CommandPartitions: 1}, Kafka: map[string]string{"bootstrap.servers": broker.Addr(), "auto.offset.reset": "earliest"}})
	if err != nil {
		broker.Close()
		return nil, err
	}
	w.posts = posts.Handler()
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- posts.Run(ctx) }()
	return func() {
		cancel()
		<-ended
		broker.Close()
	}, nil
}

// cost returns the CPU time of all masters for a command, and that of the one that took the most of it.
func (w *splitWriters) cost(ctx context.Context, kind *writeKind, window time.Duration) (all, most float64, err error) {
	before, err := w.cpu()
	if err != nil {
		return 0, 0, err
	}
	n := 0
	for began := time.Now(); time.Since(began) < window; n += writePosters * writeBatch {
		if err := w.change(ctx, kind, writePosters*writeBatch); err != nil {
			return 0, 0, err
		}
	}
	after, err := w.cpu()
	for i := range after {
		us := float64((after[i] - before[i]).Nanoseconds()) / 1e3 / float64(n)
		all, most = all+us, max(most, us)
	}
	return all, most, err
}

func (w *splitWriters) cpu() (of []time.Duration, err error) {
	for _, pid := range w.pids {
		used, err := load.CPU([]int{pid})
		if err != nil {
			return nil, err
		}
		of = append(of, used)
	}
	return of, nil
}
