package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache"
	"rankcache/internal/lab/load"
	"rankcache/wire"
)

// ackTimes is when the broker acknowledged the updates of one board that no event has told of.
type ackTimes struct {
	mu     sync.Mutex
	at     map[uint64]time.Time // by seq
	delays []time.Duration
	seen   uint64
}

func (a *ackTimes) ack(seq uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.seen >= seq { // the event was faster than the acknowledgement
		a.delays = append(a.delays, 0)
		return
	}
	a.at[seq] = time.Now()
}

func (a *ackTimes) see(seq uint64, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen = max(a.seen, seq)
	for acked, at := range a.at {
		if acked <= seq {
			a.delays = append(a.delays, now.Sub(at))
			delete(a.at, acked)
		}
	}
}

func (a *ackTimes) reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.delays = nil
	a.at = make(map[uint64]time.Time)
}

// changes changes the boards as a writer would: Redis first, then the topic.
type changes struct {
	bench  *liveBench
	boards []*changedBoard
	client *kgo.Client
}

func newChanges(b *liveBench, ids []rankcache.BoardID) (*changes, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(b.kafka), kgo.ProducerLinger(2*time.Millisecond), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return nil, fmt.Errorf("kafka client: %w", err)
	}
	c := &changes{bench: b, client: client}
	for i, id := range ids {
		board := &changedBoard{id: id, quiet: i >= len(ids)-b.quiet}
		board.acks.reset()
		c.boards = append(c.boards, board)
	}
	return c, nil
}

func (c *changes) close() { c.client.Close() }

// changeTick is how often boards are changed that are due: together, as that costs the cores
// beside the sidecar's the least.
const changeTick = 5 * time.Millisecond

// run changes the boards until ctx is done: each at its own time of the interval.
func (c *changes) run(ctx context.Context) error {
	begin, every := time.Now(), make([]time.Duration, len(c.boards))
	next := make([]time.Time, len(c.boards))
	for i, board := range c.boards {
		if every[i] = time.Duration(float64(time.Second) / c.bench.rate); board.quiet {
			every[i] = 1500 * time.Millisecond
		}
		next[i] = begin.Add(time.Duration(i) * every[i] / time.Duration(len(c.boards)))
	}
	tick := time.NewTicker(changeTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		var due []*changedBoard
		for i, now := 0, time.Now(); i < len(next); i++ {
			if next[i].Before(now) {
				due, next[i] = append(due, c.boards[i]), next[i].Add(every[i])
			}
		}
		if err := c.change(context.WithoutCancel(ctx), due); err != nil {
			return err
		}
	}
}

// change changes each of the boards once, in Redis first.
func (c *changes) change(ctx context.Context, due []*changedBoard) error {
	pipe, updates := c.bench.redis.TxPipeline(), make([]wire.Update, len(due))
	for i, board := range due {
		filled := c.bench.filled[board.id]
		updates[i] = filled.Incr(benchMember(rand.IntN(60)), 1000)
		filled.Queue(ctx, pipe, wire.DefaultNames(), updates[i:i+1])
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("change Redis: %w", err)
	}
	for i, board := range due {
		c.produce(board, &updates[i])
	}
	return nil
}

func (c *changes) produce(board *changedBoard, u *wire.Update) {
	u.OrderID, u.At = fmt.Sprintf("live-%d", u.Seq), time.Now().UnixMilli()
	record := &kgo.Record{Topic: c.bench.shared.topic, Key: []byte(u.Board), Value: wire.AppendUpdate(nil, u)}
	seq := u.Seq
	c.client.Produce(context.Background(), record, func(_ *kgo.Record, err error) {
		if err == nil {
			board.acks.ack(seq)
		}
	})
}

// watchers are the streams of all boards. One stream of each board tells when its events came.
// One thread reads all, as thousands of goroutines would need most of a core to be woken.
type watchers struct {
	boards  []*changedBoard
	streams *load.Streams
	events  atomic.Int64
	failed  atomic.Pointer[error]
	ended   sync.WaitGroup
}

func watchAll(socket string, c *changes, streams int) (w *watchers, err error) {
	w = &watchers{boards: c.boards}
	var requests [][]byte
	for _, board := range c.boards {
		for range streams {
			requests = append(requests, fmt.Appendf(nil, "GET /v1/boards/%s/live?limit=50 HTTP/1.1\r\nHost: localhost\r\n\r\n", board.id))
		}
	}
	if w.streams, err = load.OpenStreams(socket, requests); err != nil {
		return nil, fmt.Errorf("open the streams: %w", err)
	}
	w.ended.Go(func() {
		err := w.streams.Read(func(stream int, data []byte) { w.read(c.boards[stream/streams], stream%streams == 0, data) })
		if err != nil {
			w.failed.Store(&err)
		}
	})
	return w, nil
}

// await waits until each stream has its page.
func (w *watchers) await(ctx context.Context) error {
	for until := time.Now().Add(time.Minute); w.events.Load() < int64(w.streams.Len()); {
		if failed := w.failed.Load(); failed != nil {
			return fmt.Errorf("a stream ended: %w", *failed)
		}
		if time.Now().After(until) {
			return fmt.Errorf("%d of %d streams have their page after a minute", w.events.Load(), w.streams.Len())
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// read counts the events of one stream. Those of a timed one are noted.
func (w *watchers) read(of *changedBoard, timed bool, data []byte) {
	w.events.Add(int64(bytes.Count(data, []byte("\nid: "))))
	if timed {
		if seq := lastSeq(data); seq > 0 {
			of.acks.see(seq, time.Now())
		}
	}
}

// lastSeq returns the seq of the last event whose beginning is in data, 0 if there is none.
func lastSeq(data []byte) uint64 {
	const name = `"seq":`
	i := bytes.LastIndex(data, []byte(name))
	if i < 0 {
		return 0
	}
	digits, _, _ := bytes.Cut(data[i+len(name):], []byte(","))
	seq, _ := strconv.ParseUint(string(digits), 10, 64)
	return seq
}

// reset forgets what was measured until now.
func (w *watchers) reset() {
	w.events.Store(0)
	for _, b := range w.boards {
		b.acks.reset()
	}
}

func (w *watchers) results() (events int, quiet, lively []time.Duration, err error) {
	for _, b := range w.boards {
		b.acks.mu.Lock()
		if b.quiet {
			quiet = append(quiet, b.acks.delays...)
		} else {
			lively = append(lively, b.acks.delays...)
		}
		b.acks.mu.Unlock()
	}
	if failed := w.failed.Load(); failed != nil {
		err = fmt.Errorf("a stream ended: %w", *failed)
	} else if w.streams.Len() > 0 && len(lively) == 0 {
		err = errors.New("no event had a change that the broker has acknowledged: the cores are too busy for so many boards")
	}
	return int(w.events.Load()), quiet, lively, err
}

func (w *watchers) close() {
	w.streams.Stop()
	w.ended.Wait()
}
