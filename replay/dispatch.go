package replay

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"rankcache"
	"rankcache/wire"
)

// Batches circulate between consumer and dispatcher, which bounds how many records wait in between.
const (
	batchItems = 256 // enough to make the hand-over cheap
	batchCount = 6
)

// item is one step of the dispatcher, in the order in which the consumer saw it.
type item struct {
	part   *partition
	offset int64          // of the record, or of the end
	value  []byte         // of the record
	entry  *wire.LogEntry // in place of value, from the log in Redis
	kind   itemKind
}

type itemKind uint8

const (
	itemRecord itemKind = iota
	itemEnd             // everything before offset was read
	itemBegin           // the records of part.topic follow, from its beginning
	itemAgain           // reading goes back to offset
)

// batches are two queues: full ones for the dispatcher, free ones for the consumer.
type batches struct{ full, free chan []item }

func newBatches() batches {
	b := batches{make(chan []item, batchCount), make(chan []item, batchCount)}
	for range batchCount {
		b.free <- make([]item, 0, batchItems)
	}
	return b
}

// recycle returns a batch to the consumer, and the records in it to the collector.
func (b batches) recycle(batch []item) {
	clear(batch)
	b.free <- batch[:0] // never blocks: there are no more batches than places
}

// dispatcher decodes batches, groups the updates by board and has each replica apply its own. Its fields belong to the
// goroutine of run, the only one that applies updates.
type dispatcher struct {
	in      batches
	feeds   *feeds
	totals  signal // wakes the totals poller
	metrics *metrics
	log     *slog.Logger
	badLog  rate.Sometimes
	publish publisher

	now     feedMaps     // of the batch in hand
	last    *feed        // the board of the previous record: mostly the next one's too
	filled  []*feed      // with updates gathered
	touched []*partition // with records or an end gathered
	update  wire.Update
}

func newDispatcher(c *common, in batches) *dispatcher {
	every := c.cfg.PublishEvery
	if c.cfg.RedisLog != nil {
		every /= 2 // reads are PublishEvery apart: what one brings must not wait for the end of the same time again
	}
	return &dispatcher{in: in, feeds: &c.feeds, totals: c.totalsWake, metrics: c.metrics, log: c.log,
		badLog: rate.Sometimes{Interval: logEvery}, publish: newPublisher(every, c.metrics.visible)}
}

// run applies batches until ctx ends.
func (d *dispatcher) run(ctx context.Context) error {
	defer d.publish.timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case batch := <-d.in.full:
			d.dispatch(batch)
			d.in.recycle(batch)
		case <-d.publish.timer.C:
			d.publish.all()
		}
	}
}

func (d *dispatcher) dispatch(batch []item) {
	d.now, d.last = d.feeds.maps(), nil
	records := 0
	for i := range batch {
		switch it := &batch[i]; it.kind {
		case itemRecord:
			d.record(it)
			records++
		case itemEnd:
			it.part.atEnd = it.part.topic.isStream()
			d.reach(it.part, it.offset)
		case itemBegin:
			d.flush()
			d.begin(it.part.topic)
		case itemAgain:
			d.flush()
			it.part.back(it.offset)
		}
	}
	d.metrics.records.Add(float64(records))
	d.flush()
	d.now, d.last = feedMaps{}, nil // boards that are let go before the next batch must not stay in memory
}

// record gathers one record. Offsets that go back show another log under the same
// name: nothing more is taken from it until the topic watcher starts it again.
func (d *dispatcher) record(it *item) {
	part := it.part
	if it.offset < part.reached {
		part.topic.rewound.Store(true)
	}
	if part.topic.rewound.Load() {
		return
	}
	d.reach(part, it.offset+1)
	if it.entry != nil {
		d.entry(it)
		return
	}
	if err := wire.DecodeUpdate(it.value, &d.update); err != nil {
		d.skip(it, skipReason(err), err)
		return
	}
	if f := d.route(part.topic, d.update.Board); f != nil {
		d.gather(f, append(f.batch, d.update))
	}
}

// entry gathers the changes of an entry of the log in Redis, which has those of all boards: most may be of others.
func (d *dispatcher) entry(it *item) {
	f := d.route(it.part.topic, it.entry.Board)
	if f == nil {
		return
	}
	batch, err := wire.DecodeLog(it.entry.Board, it.entry.Changes, f.batch)
	if err != nil {
		d.skip(it, skipReason(err), err)
	}
	d.gather(f, batch)
}

// gather has a board's batch be a longer one.
func (d *dispatcher) gather(f *feed, batch []wire.Update) {
	if len(f.batch) == 0 && len(batch) > 0 {
		d.filled = append(d.filled, f)
	}
	f.batch = batch
}

// route returns the feed of a board; nil if it is no followed board of this topic.
func (d *dispatcher) route(t *topic, board rankcache.BoardID) *feed {
	if d.last == nil || d.last.id != board {
		d.last = d.now.byID[board]
	}
	if d.last == nil || d.last.log.Topic != t.name {
		d.metrics.skipped.WithLabelValues(skipNotFollowed).Inc()
		return nil
	}
	return d.last
}

// reach notes that part was read up to next. It counts once it is applied.
func (d *dispatcher) reach(part *partition, next int64) {
	if part.reached == part.next.Load() {
		d.touched = append(d.touched, part)
	}
	part.reached = max(part.reached, next)
}

// flush has the replicas apply the gathered updates, and only then advances the
// partitions: a gate that sees a log's end must see its updates on the board.
func (d *dispatcher) flush() {
	for _, f := range d.filled {
		f.replica.apply(f.batch)
		clear(f.batch) // releases the records' memory
		f.batch = f.batch[:0]
		d.publish.add(f)
	}
	clear(d.filled)
	d.filled = d.filled[:0]
	for _, part := range d.touched {
		before := part.ended()
		part.advance()
		if !before && part.ended() {
			for _, f := range d.now.byTopic[part.topic.name] {
				f.replica.wake.wake()
			}
		}
	}
	d.touched = d.touched[:0]
	d.publish.schedule()
}

// begin passes a new reading to the boards of its topic. Their gates need a new total of Redis.
func (d *dispatcher) begin(t *topic) {
	for _, f := range d.now.byTopic[t.name] {
		f.replica.begin(t)
	}
	d.totals.wake()
}

func skipReason(err error) string {
	if bad, ok := errors.AsType[*wire.BadUpdate](err); ok {
		return bad.Reason
	}
	return skipOther
}

func (d *dispatcher) skip(it *item, reason string, err error) {
	d.metrics.skipped.WithLabelValues(reason).Inc()
	d.badLog.Do(func() {
		d.log.Warn("record skipped", "topic", it.part.topic.name, "partition", it.part.number, "offset", it.offset, "err", err)
	})
}

// publisher publishes the boards that updates were applied to, all together and at
// most once per interval. It belongs to the dispatcher's goroutine.
type publisher struct {
	every time.Duration
	dirty []*feed     // readable, applied to and not published
	timer *time.Timer // runs while armed
	armed bool
	last  time.Time // of the last publication
	// visible measures the time from commands to their publication, in seconds.
	visible prometheus.Observer
}

func newPublisher(every time.Duration, visible prometheus.Observer) publisher {
	p := publisher{every: every, timer: time.NewTimer(every), visible: visible}
	p.timer.Stop()
	return p
}

// add marks a board to be published. One that is not readable is published when it is opened.
func (p *publisher) add(f *feed) {
	if f.dirty || !f.replica.visible() {
		return
	}
	f.dirty = true
	p.dirty = append(p.dirty, f)
}

// schedule publishes the dirty boards at once if the interval is over, and arms the timer for its end otherwise.
func (p *publisher) schedule() {
	if len(p.dirty) == 0 || p.armed {
		return
	}
	wait := p.every - time.Since(p.last)
	if wait <= 0 {
		p.all()
		return
	}
	p.armed = true
	p.timer.Reset(wait)
}

// all publishes the dirty boards.
func (p *publisher) all() {
	p.armed = false
	for _, f := range p.dirty {
		if oldest := f.replica.publish(); oldest > 0 {
			p.visible.Observe(max(0, time.Since(time.UnixMilli(oldest)).Seconds()))
		}
		f.dirty = false
	}
	clear(p.dirty)
	p.dirty = p.dirty[:0]
	p.last = time.Now()
}
