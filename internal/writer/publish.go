package writer

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v5"

	"rankcache/rooms"
	"rankcache/wire"
)

const (
	// commitEvery is how long acknowledged batches may wait for their commit:
	// one commit for many of them, and little to repeat after a crash.
	commitEvery = 100 * time.Millisecond
	// Pauses between attempts while Redis or Kafka is away.
	firstPause = 20 * time.Millisecond
	maxPause   = 2 * time.Second
)

// appliedBatch is a batch that Redis has dealt with.
type appliedBatch struct {
	updates []message // to be published
	ends    offsets   // to be committed afterwards
}

// applyBatch decodes and applies a batch. Its only error is that ctx has ended.
func (w *Writer) applyBatch(ctx context.Context, b *batch) (*appliedBatch, error) {
	w.metrics.batch.Observe(float64(len(b.records)))
	jobs := make([]*job, 0, len(b.records))
	for _, m := range b.records {
		c, err := DecodeCommand(m.Value, max(0, m.Timestamp.UnixMilli()))
		if err == nil {
			err = w.admit(c)
		}
		if err != nil {
			w.refuse(asRefusal(err), "partition", m.TopicPartition.Partition, "offset", m.TopicPartition.Offset)
			continue
		}
		jobs = append(jobs, &job{Command: c})
	}
	begin := time.Now()
	err := w.retry(ctx, "redis", func() error { return w.applier.apply(ctx, jobs) })
	w.metrics.apply.Observe(time.Since(begin).Seconds())
	if err != nil {
		return nil, err
	}
	return &appliedBatch{w.messages(jobs), b.ends}, nil
}

// admit returns a refusal if the operator blocked the board or the room.
func (w *Writer) admit(c *Command) error {
	if w.opts.Tiers.Mode(c.Board, c.Room) == rooms.ModeBlocked {
		return &Refusal{"blocked", errors.New("the operator has switched this board or its room off")}
	}
	return nil
}

// messages counts the outcomes and returns the updates to publish.
func (w *Writer) messages(jobs []*job) (messages []message) {
	for _, j := range jobs {
		if m, ok := w.message(j); ok {
			messages = append(messages, m)
		}
	}
	return messages
}

// message counts the outcome of a job and returns its update if it is to be
// published. A duplicate is published too: the crash that made it a duplicate
// may have kept its update from Kafka.
func (w *Writer) message(j *job) (message, bool) {
	if j.Refusal != nil {
		w.refuse(j.Refusal, "board", j.Board, "order", j.Order)
		return message{}, false
	}
	w.metrics.countOutcome(&j.Outcome)
	if !w.opts.PublishAll && w.opts.Tiers.Mode(j.Board, j.Room) != rooms.ModeSuperHot {
		return message{}, false
	}
	return message{w.opts.Names.Topic(j.Board), []byte(j.Update.Member), wire.AppendUpdate(nil, &j.Update)}, true
}

func (w *Writer) refuse(r *Refusal, where ...any) {
	w.metrics.countRefusal(r)
	w.refusals.log(w.log, slog.LevelWarn, "refused a command", append([]any{"err", r}, where...)...)
}

// publishBatches publishes and commits batches in the order in which they come,
// until the channel is closed.
func (w *Writer) publishBatches(ctx context.Context, c *consumer, p *producer, batches <-chan *appliedBatch) error {
	done := make(offsets)
	var due <-chan time.Time // nil while there is nothing to commit
	for {
		select {
		case b, ok := <-batches:
			if !ok {
				w.commit(c, done)
				return nil
			}
			if err := w.publish(ctx, p, b.updates); err != nil {
				return err
			}
			if done.add(b.ends); due == nil {
				due = time.After(commitEvery)
			}
		case <-due:
			if due = nil; !w.commit(c, done) {
				due = time.After(commitEvery)
			}
		}
	}
}

// commit reports whether it was done. One that was not is made good by the next;
// at worst commands are repeated.
func (w *Writer) commit(c *consumer, done offsets) bool {
	if err := c.commit(done); err != nil {
		w.trouble.log(w.log, slog.LevelWarn, "offsets are not committed, trying again", "err", err)
		return false
	}
	clear(done)
	return true
}

// publish returns when Kafka has acknowledged all messages. Its only error is
// that ctx has ended.
func (w *Writer) publish(ctx context.Context, p *producer, messages []message) error {
	if len(messages) == 0 {
		return nil
	}
	begin := time.Now()
	err := w.retry(ctx, "kafka", func() (err error) {
		messages, err = p.send(ctx, messages)
		return err
	})
	w.metrics.publish.Observe(time.Since(begin).Seconds())
	return err
}

// retry calls attempt until it succeeds or ctx ends, which is its only error.
func (w *Writer) retry(ctx context.Context, of string, attempt func() error) error {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = firstPause, maxPause
	var lines rarely
	_, err := backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, attempt() },
		backoff.WithBackOff(pause), backoff.WithMaxElapsedTime(0),
		backoff.WithNotify(func(err error, next time.Duration) {
			w.metrics.retries.WithLabelValues(of).Inc()
			lines.log(w.log, slog.LevelWarn, "no answer, trying again", "of", of, "in", next, "err", err)
		}))
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// makeCommandTopic returns an error only when ctx has ended.
func (w *Writer) makeCommandTopic(ctx context.Context, p *producer) error {
	return w.retry(ctx, "kafka", func() error { return p.topics.ensureCommands(ctx, p.admin, w.opts.Names.Commands) })
}
