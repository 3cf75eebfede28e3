package writer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"rankcache/internal/httpserve"
	"rankcache/internal/kafka"
)

// stopGrace is how long the current batch may take after the writer was stopped.
const stopGrace = 10 * time.Second

// Writer applies commands in Redis and publishes their updates. Make it with [New].
type Writer struct {
	*processor
	posts *poster
	grace time.Duration // stopGrace, except in tests
}

// New returns a Writer for the options, or an error that names the wrong one. It
// starts nothing and connects to nothing.
func New(opts Options) (*Writer, error) {
	opts, err := opts.check()
	if err != nil {
		return nil, err
	}
	p := newProcessor(opts)
	return &Writer{processor: p, posts: newPoster(p), grace: stopGrace}, nil
}

// Handler serves POST /v1/scores: one command as JSON, answered with its update and whether the order was applied
// before. For a super-hot board the answer comes when its log has the update. POST /v1/scores:batch does the
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

// Run works until ctx ends, then finishes and commits the current batch and returns nil. Without Kafka it reads no
// commands, and posts need what it runs. It retries while Redis or
// Kafka is unavailable. An error means that a client could not be created, that the consumer failed for good, or that
// the last batch timed out, which is then repeated at the next start. Run must not be called concurrently.
func (w *Writer) Run(ctx context.Context) error {
	if !w.opts.hasKafka() {
		w.runBeside(ctx)
		return nil
	}
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

// makeCommandTopic creates the command topic if needed. Its only error is that ctx has ended.
func (w *Writer) makeCommandTopic(ctx context.Context, p *producer) error {
	return w.retry(ctx, "kafka", func() error { return p.makeCommandTopic(ctx) })
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
	for _, run := range []func(context.Context){w.runBeside, w.rewinds.run, c.watchTopic, makeTopics, nameMasters, watchLog, (&looker{processor: w.processor, limit: logLimit()}).run} {
		g.Go(func() error { w.meanwhile(ctx, work, run); return nil })
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("writer: %w", err)
	}
	return nil
}

// runBeside runs what goes on beside commands, with Kafka or without, until ctx ends.
func (w *Writer) runBeside(ctx context.Context) {
	var all sync.WaitGroup
	for _, run := range []func(context.Context){readopter{w.applier.adopter}.readopt, w.rooms.run, w.rolling.run, w.applier.clock.Run, w.applier.logs.run} {
		all.Go(func() { run(ctx) })
	}
	all.Wait()
}

// meanwhile runs what needs no batch until one of the contexts ends.
func (w *Writer) meanwhile(ctx, work context.Context, run func(context.Context)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(work, cancel)()
	run(ctx)
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

// Status returns what GET /v1/status shows, to be marshalled to JSON. It asks Redis and Kafka
// and takes at most two seconds.
func (w *Writer) Status(ctx context.Context) any { return statusPage{w.processor}.read(ctx) }

// Fault returns what keeps the writer from a part of its work: commands stand still, or posts are refused.
func (w *Writer) Fault() error {
	return cmp.Or(w.stall.fault(), w.logFault(), w.applier.logs.fault())
}

// logFault returns why posts of durable classes are refused, nil while none are.
func (w *Writer) logFault() error {
	if err := w.rewinds.deniedBy(); err != nil {
		return fmt.Errorf("%w: %w", errUnfit, err)
	}
	if st, refused := w.commands.state(); refused > 0 {
		return fmt.Errorf("%s (%d classes)", st.Error, refused)
	}
	return nil
}
