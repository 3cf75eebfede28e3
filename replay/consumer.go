package replay

import (
	"context"
	"fmt"
	"time"
)

// consumer polls the log and changes what is read of it, both in one goroutine, so that it passes records on in
// order: everything of a topic's earlier reading, then itemBegin, then everything of the new one. All fields but
// requests belong to that goroutine.
type consumer struct {
	log      changeLog
	out      batches
	requests chan reassignment

	topics map[string]*topic // those being read, by name
	last   *topic            // of the previous item: mostly the next one's, too
	batch  []item
	nap    time.Duration // the last
	quiet  time.Duration // of all naps since the last event
	timer  *time.Timer   // of naps
}

// reassignment is a request of the topic watcher to the consumer.
type reassignment struct {
	stop  []*topic // stop reading these
	start []*topic // read these from where they begin
	done  chan error
}

func newConsumer(log changeLog, out batches) *consumer {
	return &consumer{log: log, out: out, requests: make(chan reassignment), topics: make(map[string]*topic)}
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

// run polls until ctx ends. It returns an error if the log has failed for good.
func (c *consumer) run(ctx context.Context) error {
	c.timer = time.NewTimer(0)
	defer c.timer.Stop()
	for {
		if err := c.newBatch(ctx); err != nil {
			return nil
		}
		events, err := c.log.fill(c)
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

// rest waits until more events have come, or may have.
func (c *consumer) rest(ctx context.Context) {
	arrived := c.log.arrived()
	if arrived == nil {
		c.setNap()
	}
	select {
	case r := <-c.requests:
		r.done <- c.apply(r)
	case <-arrived:
	case <-c.timer.C:
	case <-ctx.Done():
	}
}

// setNap sets the timer, to longer each time that no events have come.
func (c *consumer) setNap() {
	most := shortNap
	if c.quiet += c.nap; c.quiet >= quietAfter {
		most = lastNap
	}
	c.nap = min(max(2*c.nap, firstNap), most)
	c.timer.Reset(c.nap)
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
	if err := c.log.unassign(t.parts); err != nil {
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
	if err := c.log.assign(t.parts); err != nil {
		return fmt.Errorf("read topic %s: %w", t.name, err)
	}
	c.topics[t.name] = t
	c.batch = append(c.batch, item{part: t.parts[0], kind: itemBegin})
	return nil
}
