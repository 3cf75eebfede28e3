package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// brokerFaults are those of one of three brokers. A board's topic has one copy, on a broker that
// does not lead the commands, so that it is away as long as its broker, and commands are not.
func brokerFaults() []fault {
	return []fault{{
		name: "one of three brokers is away for 13 s", note: "it leads the topics of boards",
		prepare: func(w *env) { w.useBrokers() },
		start: func(w *env) {
			w.startRelay(relay{window: 1})
			w.steady()
		},
		inject: func(w *env) { w.loseLeader(13 * time.Second) },
	}, {
		name: "a board's broker stalls for 3 s at 50,000 updates/s",
		prepare: func(w *env) {
			w.useBrokers()
			w.feedBoard()
		},
		inject: func(w *env) {
			w.feeder.start()
			w.waitReads(steadyReads)
			w.loseLeader(3 * time.Second)
			w.feeder.stop()
		},
	}}
}

// useBrokers gives the row three brokers, which rows share one after another. The commands of the writer
// have a copy on each.
func (w *env) useBrokers() {
	w.Helper()
	w.lockClusters()
	own := *w.fixture
	own.direct = strings.Join(w.kafkaCluster().Addrs(), ",")
	own.seeds = own.direct
	w.fixture = &own
	testkit.CreateReplicated(w, w.direct, w.commands(), 1, 3, nil)
	commands, err := w.kafkaCluster().Leader(w.Context(), w.commands(), 0)
	w.must(err)
	w.boardsBroker = 1
	for w.kafkaCluster().Brokers[w.boardsBroker-1] == commands {
		w.boardsBroker++
	}
}

// createTopic makes a board's topic, on its broker if there are several.
func (w *env) createTopic(topic string) {
	w.Helper()
	if w.boardsBroker == 0 {
		testkit.CreateTopic(w, w.direct, topic, 1, nil)
		return
	}
	req, rt, where := kmsg.NewPtrCreateTopicsRequest(), kmsg.NewCreateTopicsRequestTopic(), kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
	where.Replicas = []int32{w.boardsBroker}
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor, rt.ReplicaAssignment = topic, -1, -1, append(rt.ReplicaAssignment, where)
	req.Topics = append(req.Topics, rt)
	resp, err := req.RequestWith(w.Context(), testkit.KafkaClient(w, w.direct))
	w.must(err)
	w.must(kerr.ErrorForCode(resp.Topics[0].ErrorCode))
	w.eventually(func() error {
		_, err := w.kafkaCluster().Leader(w.Context(), topic, 0)
		return err
	})
}

// loseLeader pauses the broker of the local boards, and checks that no read of them was answered
// by Redis.
func (w *env) loseLeader(away time.Duration) {
	w.Helper()
	leader := w.kafkaCluster().Brokers[w.boardsBroker-1]
	before := w.tally.Seen("local", "redis")
	w.must(leader.Pause())
	time.Sleep(away)
	w.must(leader.Resume())
	w.waitReads(steadyReads)
	if n := w.tally.Seen("local", "redis") - before; n > 0 {
		w.Errorf("%d reads of local boards were answered by Redis", n)
	}
}

// feeder changes one board in Redis, a thousand members at a time, and publishes the updates:
// faster than a writer is posted to.
type feeder struct {
	env    *env
	board  Board
	redis  redis.UniversalClient
	kafka  *kgo.Client
	scores []float64
	meta   wire.Meta
	rng    *rand.Rand
	stop   func()
}

const (
	feedRate  = 50_000 // updates a second
	feedEvery = 20 * time.Millisecond
)

// feedBoard has the second local board fed instead of posted to.
func (w *env) feedBoard() {
	w.Helper()
	b := w.boards[1]
	b.Members = 2000
	w.boards[1] = b
	w.reads.Boards = w.boards
	w.writes.Boards = append([]Board{w.boards[0]}, w.boards[2:]...)
	topic := wire.DefaultNames().Topic(b.ID)
	w.createTopic(topic)
	f := &feeder{env: w, board: b, redis: w.client(), scores: make([]float64, b.Members), rng: rand.New(rand.NewPCG(5, 5)),
		kafka: testkit.KafkaClient(w, w.direct, kgo.DefaultProduceTopic(topic), kgo.MaxBufferedRecords(1<<20))}
	now := uint64(time.Now().UnixMilli())
	f.meta = wire.Meta{State: rankcache.State{Run: now * 1024, HasSum: true}, Now: now, OrderLife: 3600, Buckets: 4}
	for i := range f.scores {
		f.scores[i] = float64(i)
	}
	f.feed(b.Members, func(i int) int { return i })
	w.feeder = f
}

// run feeds until ctx ends.
func (f *feeder) run(ctx context.Context) {
	each(ctx, feedEvery, func() {
		f.feed(int(feedRate*feedEvery/time.Second), func(int) int { return f.rng.IntN(len(f.scores)) })
	})
}

// feed changes n members and publishes that.
func (f *feeder) feed(n int, which func(int) int) {
	updates, last := make([]wire.Update, n), map[string]float64{}
	for i := range updates {
		m := which(i)
		member, old := memberName(m), f.scores[m]
		f.scores[m] += float64(f.rng.IntN(20))
		if f.meta.Seq < uint64(len(f.scores)) {
			f.meta.Members++
		} else {
			f.meta.Sum -= wire.Hash(member, old)
		}
		f.meta.Sum = (f.meta.Sum + wire.Hash(member, f.scores[m])) & wire.SumMask
		f.meta.Seq++
		last[member] = f.scores[m]
		updates[i] = wire.Update{Board: f.board.ID, Member: member, Op: wire.OpSet, Score: f.scores[m], Run: f.meta.Run, Seq: f.meta.Seq,
			Sum: f.meta.Sum, HasSum: true, Members: int(f.meta.Members), OrderID: fmt.Sprint("fed-", f.meta.Seq), At: int64(f.meta.Now)}
	}
	f.apply(last)
	now := time.Now()
	for i := range updates {
		if err := f.env.oracle.Applied(updates[i], now); err != nil {
			f.env.Error(err)
		}
		f.kafka.Produce(context.Background(), &kgo.Record{Key: []byte(updates[i].Member), Value: wire.AppendUpdate(nil, &updates[i])}, func(_ *kgo.Record, err error) {
			if err != nil {
				f.env.Errorf("feed: %v", err)
			}
		})
	}
}

// apply changes the scores and the meta of the board in Redis at once.
func (f *feeder) apply(scores map[string]float64) {
	zs := make([]redis.Z, 0, len(scores))
	for m, s := range scores {
		zs = append(zs, redis.Z{Member: m, Score: s})
	}
	names := wire.DefaultNames()
	_, err := f.redis.TxPipelined(context.Background(), func(p redis.Pipeliner) error {
		p.ZAdd(context.Background(), string(f.board.ID), zs...)
		return p.Set(context.Background(), names.MetaKey(f.board.ID), wire.AppendMeta(nil, &f.meta), 0).Err()
	})
	if err != nil {
		f.env.Errorf("feed: %v", err)
	}
}

// start feeds until stop is called or the row ends, and notes the rate.
func (f *feeder) start() {
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	begin, from := time.Now(), f.meta.Seq
	done.Go(func() { f.run(ctx) })
	f.stop = sync.OnceFunc(func() {
		cancel()
		done.Wait()
		f.env.note("%.0f updates/s", float64(f.meta.Seq-from)/time.Since(begin).Seconds())
	})
	f.env.Cleanup(f.stop)
}
