package writer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"rankcache/internal/httpserve"
	"rankcache/internal/kafka"
	"rankcache/internal/redisclock"
	"rankcache/wire"
)

const (
	// stopGrace is how long the current batch may take after the writer was stopped.
	stopGrace = 10 * time.Second
	// commitEvery is the time between commits of offsets: one for many batches, and little to repeat after a crash.
	commitEvery = 100 * time.Millisecond
	// timesEvery is the time between warnings of the command topic's setting.
	timesEvery = 10 * time.Minute
	// Pauses between attempts while Redis or Kafka is unavailable. Those of Redis are
	// short: a failover, a moving slot and an adoption are over in little time.
	firstPause    = 20 * time.Millisecond
	maxRedisPause = 200 * time.Millisecond
	maxKafkaPause = 2 * time.Second
)

// Writer applies commands in Redis and publishes their updates. Make it with [New].
type Writer struct {
	*processor
	posts     *poster
	timesLog  rate.Sometimes
	commitLog rate.Sometimes
	grace     time.Duration // stopGrace, except in tests
}

// New returns a Writer for the options, or an error that names the wrong one. It
// starts nothing and connects to nothing.
func New(opts Options) (*Writer, error) {
	opts, err := opts.check()
	if err != nil {
		return nil, err
	}
	p := newProcessor(opts)
	return &Writer{processor: p, posts: newPoster(p), timesLog: rate.Sometimes{Interval: timesEvery}, commitLog: logLimit(), grace: stopGrace}, nil
}

// Handler serves POST /v1/scores: one command as JSON, answered with its update and whether the order was applied
// before. For a super-hot board the answer comes when Kafka has acknowledged the update. POST /v1/scores:batch does the
// same for several commands, with a result or problem for each, and :delete for several members. Errors are
// application/problem+json; GET /v1/status shows the writer's state. After a 503 the same command with the same order
// number is to be posted again. Requests that a browser sends for another site's page are refused.
func (w *Writer) Handler() http.Handler { return w.posts.handler() }

// PostBatch does what POST /v1/scores:batch does: body and answer are those of it. ok is
// false if the body is refused as a whole, for a reason that problem has.
func (w *Writer) PostBatch(ctx context.Context, body []byte) (answer []byte, problem httpserve.Problem, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, w.posts.time)
	defer cancel()
	answer, err := w.posts.doSeveral(ctx, body, decodeBatch)
	if err != nil {
		return nil, problemOf(err), false
	}
	return answer, problem, true
}

// Run works until ctx ends, then finishes and commits the current batch and returns nil. It retries while Redis or
// Kafka is unavailable. An error means that a client could not be created, that the consumer failed for good, or that
// the last batch timed out, which is then repeated at the next start. Run must not be called concurrently.
func (w *Writer) Run(ctx context.Context) error {
	p, err := newProducer(w.opts.Kafka, w.topics, w.metrics, w.log)
	if err != nil {
		return err
	}
	defer p.close()
	defer w.posts.awaitRefused()
	w.producer.Store(p)
	defer w.producer.Store(nil)

	work, cancel := outlive(ctx, w.grace)
	defer cancel()
	if err := w.makeCommandTopic(ctx, p); err != nil {
		return nil // its only error is that ctx has ended
	}
	c, err := newConsumer(w.opts, w.rewinds)
	if err != nil {
		return err
	}
	defer c.close()
	w.rewinds.begin(work, c)
	defer w.rewinds.end()
	w.consumer.Store(c)
	defer w.consumer.Store(nil)
	defer kafka.KeepLogin(work, w.opts.KafkaLogin, func(username, password string) error {
		return errors.Join(c.client.SetSaslCredentials(username, password), p.setLogin(username, password))
	})()
	err = w.pipeline(ctx, work, c, p)
	if err == nil && w.opts.GroupInstance != "" {
		c.leave()
	}
	return err
}

// pipeline runs the two stages concurrently, so that Redis applies a batch while
// Kafka acknowledges the one before it. At most one batch waits between them.
func (w *Writer) pipeline(ctx, work context.Context, c *consumer, p *producer) error {
	applied := make(chan *appliedBatch)
	g, work := errgroup.WithContext(work)
	g.Go(func() error {
		defer close(applied)
		return w.applyBatches(ctx, work, c, applied)
	})
	g.Go(func() error { return w.publishBatches(work, c, p, applied) })
	makeTopics := func(ctx context.Context) { w.makeTopics(ctx, p) }
	nameMasters := func(ctx context.Context) { w.nameMasters(ctx, p) }
	watchLog := func(ctx context.Context) { w.commands.run(ctx, p) }
	for _, run := range []func(context.Context){readopter{w.applier.adopter}.readopt, w.rooms.run, w.rolling.run, w.rewinds.run, c.watchTopic, makeTopics, nameMasters, watchLog, w.applier.clock.Run, (&looker{processor: w.processor, limit: logLimit()}).run} {
		g.Go(func() error { w.meanwhile(ctx, work, run); return nil })
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("writer: %w", err)
	}
	return nil
}

// applyBatches reads until ctx ends and applies what was read until work ends.
func (w *Writer) applyBatches(ctx, work context.Context, c *consumer, applied chan<- *appliedBatch) error {
	both, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(work, func() { cancel(context.Cause(work)) })()
	var last *batch
	for {
		b, err := c.next(both, last)
		if b == nil {
			return err
		}
		last = b
		end := w.stall.take(&w.stall.applying)
		done, err := w.applyBatch(work, b)
		end()
		if errors.Is(err, errStale) {
			continue
		}
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

// appliedBatch is a batch that Redis has applied.
type appliedBatch struct {
	*batch             // its ends are to be committed afterwards
	messages []message // to publish: updates, and commands that were refused
	heard    []heard   // what posts wait for
}

// applyBatch decodes and applies a batch. Its only errors are that ctx has ended, and errStale.
func (w *Writer) applyBatch(ctx context.Context, b *batch) (*appliedBatch, error) {
	w.metrics.batch.Observe(float64(len(b.records)))
	w.checkTimes(b.records)
	polled, err := w.awaitClock(ctx, b)
	if err == nil {
		err = w.retry(ctx, "redis", func() error { return w.rolling.settle(ctx) })
	}
	if err != nil {
		return nil, err
	}
	jobs, record := make([]*job, 0, len(b.records)), make([]*kafka.Message, 0, len(b.records))
	var messages []message
	var told []heard
	for _, m := range b.records {
		if wire.IsMarker(m.Value) { // its offset is committed with the others
			continue
		}
		j, err := w.acceptRecord(m, polled)
		if b.round.wasPublished(m) && (err != nil || !j.rules.durable()) {
			continue
		}
		if err == nil && j.rules.durable() && w.rewinds.deniedBy() != nil {
			b.leave(m)
			continue
		}
		if b.round.number > 0 {
			j.round, j.place, j.origin = b.round, b.round.place(m, polled), originOf(m)
		}
		if err != nil {
			messages = append(messages, w.refuseRecord(asRefusal(err), j.Command, m))
			told = appendHeard(told, m, Outcome{Refusal: asRefusal(err)}, nil)
			continue
		}
		w.countKey(j, m.Key)
		jobs, record = append(jobs, j), append(record, m)
	}
	fed, err := w.applyJobs(ctx, b.round, jobs)
	if err == nil {
		err = w.indexAgain(ctx, b.round, record, jobs, fed)
	}
	if err != nil {
		return nil, err
	}
	for i, j := range jobs {
		all := append([]*job{j}, fed.of(i)...)
		w.rewinds.mark(b.round, record[i], all...)
		if !b.keep(record[i], all...) {
			told = appendHeard(told, record[i], j.toPost(), fed.of(i))
		}
		if j.waits {
			continue
		}
		if j.Refusal != nil {
			if !j.told {
				messages = append(messages, w.refuseRecord(j.Refusal, j.Command, record[i]))
			}
			continue
		}
		messages = w.appendMessages(messages, j, fed.of(i))
		for _, f := range fed.of(i) {
			if f.Refusal != nil && !f.told {
				messages = append(messages, w.refuseFed(f, record[i]))
			}
		}
	}
	b.cap()
	return &appliedBatch{b, messages, told}, nil
}

// awaitClock waits until the batch can be judged by the clocks, and returns when it was polled by
// that of Redis. Its only error is that ctx has ended.
func (w *Writer) awaitClock(ctx context.Context, b *batch) (polled time.Time, err error) {
	limit := maxClockDifference
	if slices.ContainsFunc(b.records, func(m *kafka.Message) bool { return !brokerDates(m) }) {
		limit = w.strictestClock()
	}
	err = w.retry(ctx, "clock", func() error { return w.applier.clock.Agrees(ctx, redisclock.Good, limit) })
	return w.applier.clock.At(b.polled), err
}

// applyJobs applies jobs of a round, and then those that they feed, which it returns.
func (w *Writer) applyJobs(ctx context.Context, of *round, jobs []*job) (fedJobs, error) {
	begin := time.Now()
	defer func() { w.metrics.apply.Observe(time.Since(begin).Seconds()) }()
	if err := w.applyIn(ctx, of, jobs); err != nil {
		return nil, err
	}
	w.rooms.add(ctx, jobs)
	fed := w.fed(jobs)
	if all := fed.all(); len(all) > 0 {
		if err := w.applyIn(ctx, of, all); err != nil {
			return fed, err
		}
	}
	fed, rolled := w.rolled(jobs, fed)
	if len(rolled) > 0 {
		return fed, w.applyIn(ctx, of, rolled)
	}
	return fed, nil
}

// applyIn applies jobs while a round lasts. Its only errors are that ctx has ended, and errStale.
func (w *Writer) applyIn(ctx context.Context, of *round, jobs []*job) error {
	return w.retry(ctx, "redis", func() error {
		var err error
		if !w.rewinds.stale(of) {
			err = w.applier.apply(ctx, jobs)
		}
		if errors.Is(err, errOtherEra) {
			w.rewinds.fenced(of)
		}
		if w.rewinds.stale(of) {
			return backoff.Permanent(errStale)
		}
		return err
	})
}

// checkTimes warns if the senders choose the times of the records and there are periods to be late for.
func (w *Writer) checkTimes(records []*kafka.Message) {
	if len(records) == 0 || brokerDates(records[0]) || !w.opts.Tiers.File().Periodic() {
		return
	}
	w.timesLog.Do(func() {
		w.log.Warn("commands count as arrived when they are polled, so that those of ended periods are refused after an outage: set message.timestamp.type=LogAppendTime on the command topic",
			"topic", w.opts.Names.Commands)
	})
}

// publishBatches publishes and commits batches in the order of the channel until it is closed.
func (w *Writer) publishBatches(ctx context.Context, c *consumer, p *producer, batches <-chan *appliedBatch) error {
	done, left, of, topic := make(offsets), make(offsets), noRewinds, ""
	var due <-chan time.Time // nil while there is nothing to commit
	for {
		select {
		case b, ok := <-batches:
			if !ok {
				w.commit(c, done, topic)
				w.rewinds.drain(ctx)
				return nil
			}
			if w.rewinds.stale(b.round) {
				continue
			}
			end := w.stall.take(&w.stall.publishing)
			if err := w.publish(ctx, p, b.messages); err != nil {
				return err
			}
			end()
			w.answer(ctx, b.heard)
			w.rewinds.done(b.batch)
			if of != b.round || topic != b.topic { // what is below was committed, too, or is of another topic
				of, topic, done, left = b.round, b.topic, make(offsets), make(offsets)
			}
			left.keep(b.left)
			if done.add(b.round.committable(b.ends).atMost(left)); due == nil {
				due = time.After(commitEvery)
			}
		case <-due:
			if due = nil; !w.commit(c, done, topic) {
				due = time.After(commitEvery)
			}
		}
	}
}

// commit commits the offsets of a topic and reports success. After a failure the next commit
// includes them; at worst commands are repeated.
func (w *Writer) commit(c *consumer, done offsets, topic string) bool {
	if err := c.commit(done, topic); err != nil {
		w.commitLog.Do(func() { w.log.Warn("offsets not committed, retrying", "err", err) })
		return false
	}
	clear(done)
	return true
}

// meanwhile runs what needs no batch until one of the contexts ends.
func (w *Writer) meanwhile(ctx, work context.Context, run func(context.Context)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(work, cancel)()
	run(ctx)
}

// makeCommandTopic creates the command topic if needed. Its only error is that ctx has ended.
func (w *Writer) makeCommandTopic(ctx context.Context, p *producer) error {
	return w.retry(ctx, "kafka", func() error { return p.makeCommandTopic(ctx) })
}

// outlive returns a context that ends grace after ctx.
func outlive(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(grace, func() { cancel(errStopTimeout) })
	})
	return work, func() { stop(); cancel(nil) }
}

var errStopTimeout = errors.New("the last batch was not finished in time: Redis or Kafka did not answer; it is repeated at the next start")
