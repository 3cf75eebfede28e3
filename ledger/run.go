package ledger

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"rankcache/internal/kafka"
)

// Run works until ctx ends and returns nil then. It waits while the database or Kafka is unavailable, and at a change of a
// newer writer, for which it leaves the group ([Ledger.WriteError]). An error means that tables, topic or client
// can't be used as they are. Run must not be called concurrently.
func (l *Ledger) Run(ctx context.Context) error {
	err := l.run(ctx)
	if errors.Is(err, ErrNewer) {
		l.log.Error("the ledger reads no further", "err", err)
		l.note(func(s *Status) { s.Waiting = "upgrade" })
		l.wrote("newer", err)
		<-ctx.Done()
		return nil
	}
	return err
}

func (l *Ledger) run(ctx context.Context) error {
	if err := l.prepare(ctx); err != nil {
		return ended(ctx, err)
	}
	g, work := errgroup.WithContext(ctx)
	c, err := newConsumer(work, l)
	if err != nil {
		return err
	}
	defer c.close()
	defer kafka.KeepLogin(work, l.opts.KafkaLogin, c.client.SetSaslCredentials)()
	if l.opts.ServeReads {
		g.Go(func() error { c.keepCurrent(work); return nil })
	}
	g.Go(func() error { c.measure(work); return nil })
	now := Now{Leads: c.leads, Reached: func(ctx context.Context) error {
		at := positions{ctx, c.client.Admin}
		if err := at.written(l.opts.Topic, l.opts.Store); err != nil || l.opts.Finals == "" {
			return err
		}
		return at.written(l.opts.Finals, l.opts.Store)
	}}
	if l.opts.Beside != nil {
		g.Go(func() error { l.opts.Beside(work, now); return nil })
	}
	if l.opts.Redis != nil {
		g.Go(func() error { l.compareInTurn(work, now); return nil })
		g.Go(func() error { l.forgetInTurn(work, c.leads); return nil })
	}
	if l.opts.Finals != "" {
		g.Go(func() error { l.readFinals(work, c.leads); return nil })
	}
	g.Go(func() error { l.judge(work); return nil })
	g.Go(func() error { l.retain(work); return nil })
	g.Go(func() error { l.takeAgain(work); return nil })
	g.Go(func() error { return ended(ctx, l.consume(work, c)) })
	return g.Wait()
}

// ended returns nil if ctx has ended, else err.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// prepare makes the tables, or checks them.
func (l *Ledger) prepare(ctx context.Context) error {
	var fatal error
	err := l.retry(ctx, "database", func() error {
		err := l.opts.Store.prepare(ctx, l.opts.Check)
		if errors.Is(err, ErrSchema) {
			fatal, err = err, nil
		}
		return err
	})
	if err = errors.Join(err, fatal); err == nil {
		l.note(func(s *Status) { s.Schema = l.opts.Store.Wanted() })
	}
	return err
}

// consume writes batch after batch.
func (l *Ledger) consume(ctx context.Context, c *consumer) error {
	for ctx.Err() == nil {
		if c.next.replaced() {
			if err := c.seek(slices.Collect(maps.Keys(c.next.all()))...); err != nil {
				return err
			}
		}
		b, oldest, err := c.batch()
		if err != nil {
			return err
		}
		if b.Len() > 0 {
			if err := l.write(ctx, c, b, oldest); err != nil {
				return err
			}
		}
	}
	return nil
}

// write writes a batch, however long that takes, or reads on from where another consumer is.
func (l *Ledger) write(ctx context.Context, c *consumer, b *Batch, oldest time.Time) error {
	var done Result
	var overtaken bool
	var refused error // for its size
	begun := time.Now()
	err := l.retry(ctx, "database", func() (err error) {
		ctx, cancel := context.WithTimeout(ctx, applyTimeout)
		defer cancel()
		done, err = l.opts.Store.Apply(ctx, b)
		if overtaken = errors.Is(err, ErrOvertaken); overtaken {
			return nil
		}
		if b.Len() > 1 && tooLarge(err) {
			refused, err = err, nil
		}
		return err
	})
	if err != nil {
		return err
	}
	if refused != nil {
		return c.halve(b, refused)
	}
	l.metrics.apply.Observe(time.Since(begun).Seconds())
	if overtaken {
		l.metrics.overtaken.Inc()
		l.log.Warn("the batch was written already, or another consumer with another group is active: reading on from the database's offsets", "group", l.opts.Group)
		return c.seek(b.partitions()...)
	}
	c.written(b)
	l.written(&done, oldest)
	return nil
}

// written counts what became of a batch whose oldest record has a time.
func (l *Ledger) written(done *Result, oldest time.Time) {
	l.metrics.count(done)
	if !oldest.IsZero() {
		l.metrics.delay.Observe(time.Since(oldest).Seconds())
	}
	l.note(func(s *Status) {
		s.Rows, s.Bad, s.WrittenAt = s.Rows+int64(done.Rows), s.Bad+int64(done.Bad), time.Now()
	})
	if done.Aside > 0 {
		l.log.Warn("changes that Redis does not have any more are set aside in rank_lost until they come again", "changes", done.Aside)
	}
	if done.Reborn > 0 {
		l.log.Warn("boards have begun again with their first change: their keys had expired, or were deleted; rankcache ledger check tells what they had", "boards", done.Reborn)
	}
}
