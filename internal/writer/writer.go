// Package writer is the write side of rankcache: it turns commands into score
// changes in Redis and, for super-hot boards, into updates on Kafka.
//
// The way of a command, in order: consume.go reads a batch of the command
// topic; command.go decodes and checks each record; apply.go sends the batch to
// Redis in one pipeline, where order.lua applies each order once and counts it;
// publish.go has producer.go hand the updates of super-hot boards to Kafka, on
// topics that topics.go has made; when all are acknowledged the batch's offsets
// are committed. http.go takes the same way with one command of a caller that
// has no Kafka.
//
// # What is promised
//
// A crash anywhere repeats commands that were not committed. Redis remembers
// each order together with what it did, so a repeat changes nothing and gives
// the very same update again: nothing is lost, and what comes twice is known by
// its seq. Several writers may share the work, and may overlap.
//
// Not promised: a command posted over HTTP is repeated by its caller or by
// nobody; one that failed after Redis took it leaves the board's log with a gap
// that sidecars close from Redis. And a Redis that loses acknowledged writes in
// a failover loses the orders with the scores.
package writer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"rankcache"
	"rankcache/rooms"
	"rankcache/wire"
)

// Defaults.
const (
	// DefaultGroup is the consumer group that all writers of one command topic
	// share.
	DefaultGroup = "rankcache-writer"
	// stopGrace is how long the batch in hand may take when the writer stops.
	stopGrace = 10 * time.Second
)

// Tiers says what the operator decided about a board, or about the room that a
// command names ("" for none). It is asked from several goroutines.
type Tiers interface {
	Mode(board rankcache.BoardID, room string) rooms.Mode
}

// Options are what a Writer works with.
type Options struct {
	Redis redis.UniversalClient // stays the caller's to close
	Names wire.Names
	Tiers Tiers
	// Kafka holds librdkafka's settings by their own names, at least
	// bootstrap.servers.
	Kafka map[string]string
	Group string // consumer group; empty: DefaultGroup
	// PublishAll publishes the updates of all boards, not of super-hot ones only.
	PublishAll bool
	// BoardLife is how long after its first order a board expires, together with
	// its count and its orders. 0: never, because a board that is gone by itself
	// is worse than one that stays; somebody then has to delete the three kinds
	// of keys, and an order takes about 140 bytes of Redis's memory till then
	// (180 with a life).
	BoardLife  time.Duration
	Topics     Topics
	Log        *slog.Logger          // nil: silent
	Registerer prometheus.Registerer // nil: metrics are counted but not shown
}

// Writer is the write side. Make it with [New].
type Writer struct {
	opts     Options
	applier  applier
	topics   *topics
	metrics  *metrics
	log      *slog.Logger
	refusals rarely        // log lines about refused commands
	trouble  rarely        // log lines about commits
	grace    time.Duration // stopGrace, but for tests
	// producer is there while Run runs; requests come at any time.
	producer atomic.Pointer[producer]
}

// New returns a Writer for the options, or an error that says which is wrong.
// It starts nothing and connects to nothing.
func New(opts Options) (*Writer, error) {
	if opts.Redis == nil || opts.Tiers == nil {
		return nil, errors.New("writer: Redis and Tiers are needed")
	}
	if err := settings(opts.Kafka).check(); err != nil {
		return nil, err
	}
	if err := opts.Names.Check(); err != nil {
		return nil, err
	}
	if opts.BoardLife < 0 {
		return nil, fmt.Errorf("board life %v: want 0 or more", opts.BoardLife)
	}
	if opts.Group == "" {
		opts.Group = DefaultGroup
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	m := newMetrics(opts.Registerer)
	return &Writer{opts: opts, metrics: m, log: opts.Log, topics: newTopics(opts.Topics, m), grace: stopGrace,
		applier: applier{opts.Redis, newOrderScript(opts.Names, opts.BoardLife)}}, nil
}

// Run works until ctx ends, then finishes the batch in hand, commits it and
// returns nil. A Redis or Kafka that is away is waited for. The error says that
// the clients could not be made, that the consumer can't go on, or that the
// last batch was given up, in which case it is repeated at the next start.
// Run must not be called twice at a time.
func (w *Writer) Run(ctx context.Context) error {
	p, err := newProducer(settings(w.opts.Kafka).producer(), w.topics, w.metrics, w.log)
	if err != nil {
		return err
	}
	defer p.close()
	w.producer.Store(p)
	defer w.producer.Store(nil)

	work, cancel := outlive(ctx, w.grace)
	defer cancel()
	if err := w.makeCommandTopic(ctx, p); err != nil {
		return nil // only ctx ends it
	}
	c, err := newConsumer(settings(w.opts.Kafka).consumer(w.opts.Group), w.opts.Names.Commands, w.log)
	if err != nil {
		return err
	}
	defer c.close()
	return w.flow(ctx, work, c, p)
}

// flow runs the two halves of a batch's way side by side, so that Redis works
// on a batch while Kafka acknowledges the one before it. At most one batch
// waits between them.
func (w *Writer) flow(ctx, work context.Context, c *consumer, p *producer) error {
	applied := make(chan *appliedBatch)
	g, work := errgroup.WithContext(work)
	g.Go(func() error {
		defer close(applied)
		return w.applyBatches(ctx, work, c, applied)
	})
	g.Go(func() error { return w.publishBatches(work, c, p, applied) })
	if err := g.Wait(); err != nil {
		return fmt.Errorf("writer: %w", err)
	}
	return nil
}

// applyBatches reads until ctx ends and works on what was read until work ends.
func (w *Writer) applyBatches(ctx, work context.Context, c *consumer, applied chan<- *appliedBatch) error {
	both, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(work, func() { cancel(context.Cause(work)) })()
	for {
		b, err := c.next(both)
		if b == nil {
			return err
		}
		done, err := w.applyBatch(work, b)
		if err != nil {
			return err
		}
		select {
		case applied <- done:
		case <-work.Done():
			return context.Cause(work)
		}
	}
}

// outlive returns a context that ends grace after ctx does.
func outlive(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(grace, func() { cancel(errGivenUp) })
	})
	return work, func() { stop(); cancel(nil) }
}

var errGivenUp = errors.New("the batch in hand could not be finished in time: Redis or Kafka did not answer; it is repeated at the next start")
