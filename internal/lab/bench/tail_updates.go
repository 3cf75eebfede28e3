package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache/wire"
)

// tailUpdates changes the small boards at a steady rate, as a writer would: Redis first, then their topics.
type tailUpdates struct {
	bench  *openBench
	rate   int // a second, of all boards
	client *kgo.Client
	sent   atomic.Int64
	failed atomic.Pointer[error]
	cancel func()
	ended  chan struct{}
}

// newTailUpdates begins to change them, until close.
func newTailUpdates(ctx context.Context, b *openBench, rate int) (*tailUpdates, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(b.kafka), kgo.ProducerLinger(tailTick/2))
	if err != nil {
		return nil, fmt.Errorf("kafka client: %w", err)
	}
	u := &tailUpdates{bench: b, rate: rate, client: client, ended: make(chan struct{})}
	ctx, u.cancel = context.WithCancel(ctx)
	go func() {
		defer close(u.ended)
		if err := u.run(ctx); !errors.Is(err, context.Canceled) {
			u.failed.CompareAndSwap(nil, &err)
		}
	}()
	return u, nil
}

// run blocks until ctx is done or an update fails.
func (u *tailUpdates) run(ctx context.Context) error {
	ids, begin := u.bench.smallBoards(), time.Now()
	zipf := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.1, 50, uint64(u.bench.small-1))
	for done := 0; ; {
		if err := sleep(ctx, tailTick); err != nil {
			return err
		}
		each := (int(float64(u.rate)*time.Since(begin).Seconds()) - done) / len(ids)
		if each == 0 {
			continue
		}
		pipe := u.bench.redis.TxPipeline()
		var updates []wire.Update
		for _, id := range ids {
			board := u.bench.filled[id]
			for range each {
				updates = append(updates, board.Incr(benchMember(int(zipf.Uint64())), 1))
			}
			board.Queue(ctx, pipe, wire.DefaultNames(), updates[len(updates)-each:])
		}
		if _, err := pipe.Exec(context.WithoutCancel(ctx)); err != nil {
			return fmt.Errorf("change Redis: %w", err)
		}
		for i := range updates {
			u.produce(&updates[i])
		}
		done += len(updates)
	}
}

func (u *tailUpdates) produce(up *wire.Update) {
	up.OrderID, up.At = fmt.Sprint("tail-", up.Seq), time.Now().UnixMilli()
	record := &kgo.Record{Topic: wire.DefaultNames().Topic(up.Board), Key: []byte(up.Member), Value: wire.AppendUpdate(nil, up)}
	u.client.Produce(context.Background(), record, func(_ *kgo.Record, err error) {
		if err != nil {
			err = fmt.Errorf("produce to %s: %w", record.Topic, err)
			u.failed.CompareAndSwap(nil, &err)
		}
		u.sent.Add(1)
	})
}

func (u *tailUpdates) failure() error {
	if err := u.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// close returns when all is sent.
func (u *tailUpdates) close() {
	u.cancel()
	<-u.ended
	_ = u.client.Flush(context.Background())
	u.client.Close()
}
