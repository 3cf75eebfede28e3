package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache"
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
type watchers struct {
	boards []*changedBoard
	conns  []net.Conn
	events atomic.Int64
	failed atomic.Pointer[error]
	ended  sync.WaitGroup
}

func watchAll(ctx context.Context, addr string, c *changes, streams int) (*watchers, error) {
	w := &watchers{boards: c.boards}
	var dialer net.Dialer
	for _, board := range c.boards {
		for i := range streams {
			conn, err := dialer.DialContext(ctx, "tcp", addr)
			if err == nil {
				_, err = fmt.Fprintf(conn, "GET /v1/boards/%s/live?limit=50 HTTP/1.1\r\nHost: localhost\r\n\r\n", board.id)
			}
			if err != nil {
				w.close()
				return nil, fmt.Errorf("open a stream: %w", err)
			}
			w.conns = append(w.conns, conn)
			timed := board
			if i > 0 {
				timed = nil
			}
			w.ended.Go(func() { w.read(conn, timed) })
		}
	}
	return w, nil
}

// await waits until each stream has its page.
func (w *watchers) await(ctx context.Context) error {
	for until := time.Now().Add(time.Minute); w.events.Load() < int64(len(w.conns)); {
		if failed := w.failed.Load(); failed != nil {
			return fmt.Errorf("a stream ended: %w", *failed)
		}
		if time.Now().After(until) {
			return fmt.Errorf("%d of %d streams have their page after a minute", w.events.Load(), len(w.conns))
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
func (w *watchers) read(conn net.Conn, timed *changedBoard) {
	var buffer [16 << 10]byte
	for {
		n, err := conn.Read(buffer[:])
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				w.failed.CompareAndSwap(nil, &err)
			}
			return
		}
		w.events.Add(int64(bytes.Count(buffer[:n], []byte("\nid: "))))
		if timed != nil {
			if seq := lastSeq(buffer[:n]); seq > 0 {
				timed.acks.see(seq, time.Now())
			}
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
	} else if len(w.conns) > 0 && len(lively) == 0 {
		err = errors.New("no event told of a change that the broker has acknowledged: the cores are too busy for so many boards")
	}
	return int(w.events.Load()), quiet, lively, err
}

func (w *watchers) close() {
	for _, c := range w.conns {
		_ = c.Close()
	}
	w.ended.Wait()
}
