package bench

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache"
	"rankcache/internal/lab/fill"
	"rankcache/localboard"
	"rankcache/wire"
)

// The live tail: updates come at a steady rate into a board that is open and
// read, and each has to be published soon after the broker has it.
const (
	liveFor   = 5 * time.Second
	liveBeat  = 5 * time.Millisecond
	liveEvery = 250 // every so many updates one is timed
)

// liveRow is the live part of a replay row. The delay is from the broker's
// acknowledgement of an update to the first top whose seq has it.
type liveRow struct {
	LiveRate  float64 `json:"live_updates_per_s"`
	DelayP50  float64 `json:"live_publish_p50_ms"`
	DelayP99  float64 `json:"live_publish_p99_ms"`
	LiveReads float64 `json:"live_reads_per_s"` // of the top, by one reader meanwhile
}

// liveTail times updates from the broker to the board's readers.
type liveTail struct {
	mu     sync.Mutex
	acked  map[uint64]time.Time // of the timed seqs not seen yet
	delays []time.Duration
	seen   uint64 // seqs that a reader has seen
}

func (l *liveTail) ack(seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen >= seq { // the reader was faster than the acknowledgement
		l.delays = append(l.delays, 0)
		return
	}
	l.acked[seq] = time.Now()
}

func (l *liveTail) see(seq uint64, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = seq
	for timed, acked := range l.acked {
		if timed <= seq {
			l.delays = append(l.delays, at.Sub(acked))
			delete(l.acked, timed)
		}
	}
}

// measure produces b.liveRate updates a second while a reader reads, and returns when
// the last one has been seen.
func (l *liveTail) measure(ctx context.Context, b *replayBench, id rankcache.BoardID, board *localboard.Board, filled *fill.Board) (row liveRow, err error) {
	ctx, cancel := context.WithTimeout(ctx, liveFor+time.Minute)
	defer cancel()
	updates := make([]wire.Update, b.liveRate*int(liveFor/time.Second))
	for i := range updates {
		updates[i] = filled.Incr(benchMember(i*2654435761%b.members), 1)
	}
	last := updates[len(updates)-1].Seq
	// There is no writer here. Redis has to know of the updates, or the board would be taken for wrong.
	if err := filled.Follow(ctx, b.redis, wire.DefaultNames(), updates); err != nil {
		return row, err
	}
	produced := make(chan error, 1)
	go func() { produced <- l.produce(ctx, b, id, updates) }()
	begin, reads := time.Now(), 0
	for l.seen < last {
		if err := ctx.Err(); err != nil {
			return row, fmt.Errorf("live tail: update %d of %d was seen: %w", l.seen, last, err)
		}
		top := rankcache.One(ctx, board, rankcache.Query{Limit: 50})
		if reads++; top.Seq > l.seen {
			l.see(top.Seq, time.Now())
		}
		time.Sleep(200 * time.Microsecond)
	}
	took := time.Since(begin).Seconds()
	if err := <-produced; err != nil {
		return row, err
	}
	slices.Sort(l.delays)
	at := func(q float64) float64 {
		return l.delays[int(q*float64(len(l.delays)-1))].Seconds() * 1000
	}
	return liveRow{LiveRate: float64(len(updates)) / took, DelayP50: at(0.5), DelayP99: at(0.99), LiveReads: float64(reads) / took}, nil
}

func (l *liveTail) produce(ctx context.Context, b *replayBench, id rankcache.BoardID, updates []wire.Update) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(b.kafka), kgo.DefaultProduceTopic(wire.DefaultNames().Topic(id)),
		kgo.ProducerLinger(time.Millisecond))
	if err != nil {
		return fmt.Errorf("kafka client: %w", err)
	}
	defer client.Close()
	tick := time.NewTicker(liveBeat)
	defer tick.Stop()
	for begin, done := time.Now(), 0; done < len(updates); <-tick.C {
		for due := min(len(updates), int(float64(b.liveRate)*time.Since(begin).Seconds())); done < due; done++ {
			l.put(ctx, client, &updates[done])
		}
	}
	return client.Flush(ctx)
}

// put sends an update.
func (l *liveTail) put(ctx context.Context, client *kgo.Client, u *wire.Update) {
	u.OrderID, u.At = fmt.Sprintf("live-%d", u.Seq), time.Now().UnixMilli()
	record := &kgo.Record{Key: []byte(u.Member), Value: wire.AppendUpdate(nil, u)}
	client.Produce(ctx, record, func(_ *kgo.Record, err error) {
		if err == nil && u.Seq%liveEvery == 0 {
			l.ack(u.Seq)
		}
	})
}
