package replay

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// reader owns the consumer's polls and its assignment, so that what it hands on
// is in order: everything of a topic's earlier reading, then itemBegin, then
// everything of the new one.
type reader struct {
	client  *client
	out     batches
	changes chan change
	metrics *metrics
	log     *slog.Logger
	errLog  limiter

	topics map[string]*topic // those being read
	batch  []item
}

// change is an order of the catalogue to the reader.
type change struct {
	end   []*topic     // stop reading these
	begin []*topic     // read these from their beginning
	more  []*partition // partitions added to topics being read
	done  chan error
}

func newReader(c *client, out batches, m *metrics, log *slog.Logger) *reader {
	return &reader{client: c, out: out, changes: make(chan change), metrics: m, log: log, topics: make(map[string]*topic)}
}

// change asks the reader for a change and waits until it is made.
func (r *reader) change(ctx context.Context, c change) error {
	c.done = make(chan error, 1)
	select {
	case r.changes <- c:
		return <-c.done
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run polls until ctx ends, or the consumer is beyond help.
func (r *reader) run(ctx context.Context) error {
	for {
		if err := r.newBatch(ctx); err != nil {
			return nil
		}
		if err := r.fill(); err != nil {
			return err
		}
		select {
		case c := <-r.changes:
			c.done <- r.apply(c)
		default:
		}
		r.send()
	}
}

func (r *reader) send() {
	if len(r.batch) > 0 {
		r.out.full <- r.batch // never blocks: there are no more batches than places
		r.batch = nil
	}
}

// newBatch waits for a batch that the pump is done with.
func (r *reader) newBatch(ctx context.Context) error {
	if r.batch != nil {
		return ctx.Err()
	}
	select {
	case r.batch = <-r.out.free:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fill polls until the batch is full or nothing more is there. Only the first
// poll waits. A place is left for what a change adds.
func (r *reader) fill() error {
	timeout := pollTimeout
	var e event
	for n := 0; n < batchItems; n++ {
		r.client.poll(timeout, &e)
		switch e.kind {
		case nothing:
			return nil
		case errorEvent:
			if err := r.failed(e.err); err != nil {
				return err
			}
		default:
			r.add(&e)
		}
		timeout = 0
	}
	return nil
}

func (r *reader) add(e *event) {
	t := r.topics[e.topic]
	if t == nil {
		return // of a topic that is not read any more
	}
	parts := t.partitions()
	if int(e.partition) >= len(parts) {
		return
	}
	it := item{part: parts[e.partition], offset: e.offset, value: e.value}
	if e.kind == endEvent {
		it.kind = itemEnd
	}
	r.batch = append(r.batch, it)
}

func (r *reader) failed(err error) error {
	if fatal(err) {
		return fmt.Errorf("kafka consumer: %w", err)
	}
	r.metrics.kafkaErrors.Inc()
	if skipped, ok := r.errLog.allow(time.Now()); ok {
		r.log.Warn("kafka consumer", "err", err, "more", skipped)
	}
	return nil
}

// apply makes a change. One that fails half way is asked for again; ending what
// is not read, and beginning what is, are harmless.
func (r *reader) apply(c change) error {
	for _, t := range c.end {
		if err := r.end(t.name); err != nil {
			return err
		}
	}
	for _, t := range c.begin {
		if err := r.begin(t); err != nil {
			return err
		}
	}
	return r.addParts(c.more)
}

func (r *reader) end(name string) error {
	t := r.topics[name]
	if t == nil {
		return nil
	}
	if err := r.client.unassign(t.partitions()); err != nil {
		return fmt.Errorf("stop reading topic %s: %w", name, err)
	}
	delete(r.topics, name)
	return nil
}

func (r *reader) begin(t *topic) error {
	if err := r.end(t.name); err != nil {
		return err
	}
	if err := r.client.assign(t.partitions()); err != nil {
		return fmt.Errorf("read topic %s: %w", t.name, err)
	}
	r.topics[t.name] = t
	r.batch = append(r.batch, item{part: t.partitions()[0], kind: itemBegin})
	return nil
}

// addParts reads partitions that were added to a topic.
func (r *reader) addParts(more []*partition) error {
	for _, p := range more {
		t := r.topics[p.topic.name]
		if t != p.topic || len(t.partitions()) > int(p.number) {
			continue
		}
		if err := r.client.assign([]*partition{p}); err != nil {
			return fmt.Errorf("read partition %d of topic %s: %w", p.number, t.name, err)
		}
		parts := append(slices.Clip(t.partitions()), p)
		t.parts.Store(&parts)
	}
	return nil
}
