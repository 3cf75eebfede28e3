package replay

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"rankcache/internal/kafka"
)

// consumer polls the Kafka client and changes its assignment, both in one goroutine, so that it passes records on in
// order: everything of a topic's earlier reading, then itemBegin, then everything of the new one. All fields but
// requests belong to that goroutine.
type consumer struct {
	client   *client
	out      batches
	requests chan reassignment
	metrics  *metrics
	log      *slog.Logger

	topics  map[string]*topic // those being read, by name
	last    *topic            // of the previous item: mostly the next one's, too
	records [batchItems]kafka.Record
	batch   []item
	nap     time.Duration // the last
	quiet   time.Duration // of all naps since the last event
	timer   *time.Timer   // of naps
	cause   error         // the last error of the client's own
}

// reassignment is a request of the topic watcher to the consumer.
type reassignment struct {
	stop  []*topic // stop reading these
	start []*topic // read these from where they begin
	done  chan error
}

func newConsumer(c *client, out batches, m *metrics, log *slog.Logger) *consumer {
	return &consumer{client: c, out: out, requests: make(chan reassignment), metrics: m, log: log, topics: make(map[string]*topic)}
}

// reassign sends a request to the consumer and waits until it is done. Another goroutine calls it.
func (c *consumer) reassign(ctx context.Context, r reassignment) error {
	r.done = make(chan error, 1)
	select {
	case c.requests <- r:
		return <-r.done
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run polls until ctx ends. It returns an error if the Kafka client has failed for good.
func (c *consumer) run(ctx context.Context) error {
	c.timer = time.NewTimer(0)
	defer c.timer.Stop()
	for {
		if err := c.newBatch(ctx); err != nil {
			return nil
		}
		events, err := c.fill()
		if err != nil {
			return err
		}
		if events > 0 {
			c.nap, c.quiet = 0, 0
			c.answer()
		} else {
			c.rest(ctx)
		}
		c.send()
	}
}

// answer changes the assignment if that is asked for.
func (c *consumer) answer() {
	select {
	case r := <-c.requests:
		r.done <- c.apply(r)
	default:
	}
}

// rest waits until more events may have come, longer each time that none have.
func (c *consumer) rest(ctx context.Context) {
	most := shortNap
	if c.quiet += c.nap; c.quiet >= quietAfter {
		most = lastNap
	}
	c.nap = min(max(2*c.nap, firstNap), most)
	c.timer.Reset(c.nap)
	select {
	case r := <-c.requests:
		r.done <- c.apply(r)
	case <-c.timer.C:
	case <-ctx.Done():
	}
}

// newBatch waits for a batch that the dispatcher is done with.
func (c *consumer) newBatch(ctx context.Context) error {
	if c.batch != nil {
		return ctx.Err()
	}
	select {
	case c.batch = <-c.out.free:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fill polls until the batch is full or nothing more is there, and returns how many events there were.
func (c *consumer) fill() (events int, err error) {
	for events < batchItems {
		n, other := c.client.poll(c.records[:batchItems-events])
		for i := range c.records[:n] {
			r := &c.records[i]
			c.add(r.Topic, r.Partition, item{offset: r.Offset, value: r.Value})
		}
		clear(c.records[:n]) // releases their memory
		events += n
		switch ev := other.(type) {
		case kafka.PartitionEOF:
			c.add(*ev.Topic, ev.Partition, item{offset: int64(ev.Offset), kind: itemEnd})
		case kafka.Error:
			if err := c.failed(ev); err != nil {
				return events, err
			}
		default:
			return events, nil
		}
		events++
	}
	return events, nil
}

// add appends an item of a partition. Those of topics that are not read any more are dropped.
func (c *consumer) add(name string, number int32, it item) {
	if c.last == nil || c.last.name != name {
		c.last = c.topics[name]
	}
	if c.last == nil || int(number) >= len(c.last.parts) {
		return
	}
	it.part = c.last.parts[number]
	c.batch = append(c.batch, it)
}

func (c *consumer) failed(err error) error {
	if kafka.Fatal(err) {
		return fmt.Errorf("kafka consumer: %w", err)
	}
	c.metrics.kafkaErrors.Inc()
	if kafka.Follows(err) { // it was logged by its cause, with the broker's address
		c.client.answered(0, cmp.Or(c.cause, c.client.login.explain(err)))
		return nil
	}
	err = c.client.login.explain(err)
	c.cause = err
	c.client.answered(0, err)
	c.log.Warn("kafka consumer", "err", err)
	return nil
}

func (c *consumer) send() {
	if len(c.batch) > 0 {
		c.out.full <- c.batch // never blocks: there are no more batches than places
		c.batch = nil
	}
}

// apply carries out a request. One that fails half way is sent again; stopping a
// topic that is not read, and starting one that is, are harmless.
func (c *consumer) apply(r reassignment) error {
	for _, t := range r.stop {
		if err := c.stop(t.name); err != nil {
			return err
		}
	}
	for _, t := range r.start {
		if err := c.start(t); err != nil {
			return err
		}
	}
	return nil
}

func (c *consumer) stop(name string) error {
	t := c.topics[name]
	if t == nil {
		return nil
	}
	if err := c.client.unassign(t.parts); err != nil {
		return fmt.Errorf("stop reading topic %s: %w", name, err)
	}
	delete(c.topics, name)
	c.last = nil
	return nil
}

func (c *consumer) start(t *topic) error {
	if err := c.stop(t.name); err != nil {
		return err
	}
	if err := c.client.assign(t.parts); err != nil {
		return fmt.Errorf("read topic %s: %w", t.name, err)
	}
	c.topics[t.name] = t
	c.batch = append(c.batch, item{part: t.parts[0], kind: itemBegin})
	return nil
}
