package ledger

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"rankcache/internal/kafka"
	"rankcache/internal/retry"
)

// DefaultGroup is the consumer group that all ledgers of one topic and database share.
const DefaultGroup = "rankcache-ledger"

const (
	// applyTimeout bounds one transaction; a database that hangs is asked again.
	applyTimeout = time.Minute
	// Pauses between attempts while the database or Kafka is unavailable.
	firstPause, maxPause = 50 * time.Millisecond, 5 * time.Second
	logEvery             = time.Second
)

// Options configure a [Ledger].
type Options struct {
	Store *Store // closed by the caller
	// Redis is asked before a change is said to be lost, and boards are compared with it; nil: none is.
	Redis Redis
	// Kafka holds librdkafka settings, at least bootstrap.servers.
	Kafka map[string]string
	// KafkaLogin, if it is not nil, calls set with each new user name and password for SASL, until ctx is done.
	KafkaLogin func(ctx context.Context, set func(username, password string) error)
	Group      string // consumer group; empty: DefaultGroup
	Topic      string
	Finals     string // the topic of finals, which a database from an older dump has again from there; empty: it is not read
	// Check has tables of another version refused instead of being made.
	Check bool
	// PutAside has changes of newer writers put into rank_bad. Else the ledger reads no further once there are some.
	PutAside bool
	// ServeReads has the index for reads made, and Status.CurrentAt kept.
	ServeReads bool
	Keep       Keep
	// Beside, if it is not nil, runs while the ledger does. It returns when ctx ends.
	Beside func(ctx context.Context, now Now)
	// Observe, if it is not nil, is called after each call of the database.
	Observe    func(took time.Duration, err error)
	Log        *slog.Logger          // nil: silent
	Registerer prometheus.Registerer // nil: unregistered
}

// Ledger writes a topic into a database. Make it with [New].
type Ledger struct {
	opts    Options
	metrics *metrics
	log     *slog.Logger

	mu     sync.Mutex // nothing is called with it held
	status Status
	failed map[string]error // the last write of each kind, if it was refused
}

// Status is how a ledger fares. Times are zero before the first.
type Status struct {
	Schema     int       `json:"schema"`     // version of the tables, 0 until they are there
	Partitions int       `json:"partitions"` // that this process reads
	Behind     int64     `json:"behind"`     // records of these that are not written yet, Pending and Differs
	Rows       int64     `json:"rows"`       // written since the start
	Lost       int64     `json:"lost"`       // by Redis, and not applied again in time, since the start
	Pending    int       `json:"pending"`    // set aside, and may be applied again, of all ledgers
	Wrong      int       `json:"wrong"`      // of these, those that Redis has after ten minutes: the ledger is wrong
	Differs    int       `json:"differs"`    // boards that Redis has otherwise, of those that this process compares
	Bad        int64     `json:"bad"`        // kept in rank_bad since the start
	Skipped    int64     `json:"skipped"`    // offsets that Kafka removed before they were read, since the start
	Replaced   int       `json:"replaced"`   // partitions whose topic was deleted and made again, since the start
	WrittenAt  time.Time `json:"written_at"` // last batch
	Waiting    string    `json:"waiting"`    // for what, "" if for nothing: database, kafka, upgrade
	// CurrentAt is when the database was last known to have all that the topic has; zero
	// without ServeReads, and before the first time.
	CurrentAt time.Time `json:"current_at,omitzero"`
}

// New returns a Ledger for the options, or an error that names the wrong one. It starts
// nothing and connects to nothing.
func New(opts Options) (*Ledger, error) {
	if opts.Store == nil || opts.Topic == "" {
		return nil, errors.New("ledger: Store and Topic are required")
	}
	if err := kafka.Check(opts.Kafka, "auto.offset.reset", "isolation.level", "partition.assignment.strategy"); err != nil {
		return nil, err
	}
	if opts.Group == "" {
		opts.Group = DefaultGroup
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Observe == nil {
		opts.Observe = func(time.Duration, error) {}
	}
	return &Ledger{opts: opts, metrics: newMetrics(opts.Registerer), log: opts.Log, failed: make(map[string]error)}, nil
}

// Status returns how the ledger fares. It may be called at any time.
func (l *Ledger) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.status
}

func (l *Ledger) note(change func(*Status)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.status)
}

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
		at := &current{ledger: l, client: c.client, log: l.log, errLog: rate.Sometimes{Interval: 10 * logEvery}}
		g.Go(func() error { at.run(work); return nil })
	}
	g.Go(func() error { l.measure(work, c); return nil })
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

// retry is [retry.Do] for the ledger's servers.
func (l *Ledger) retry(ctx context.Context, of string, attempt func() error) error {
	failed := func() {
		l.metrics.retries.WithLabelValues(of).Inc()
		l.note(func(s *Status) { s.Waiting = of })
	}
	defer l.note(func(s *Status) { s.Waiting = "" })
	return retry.Do(ctx, of, retry.Policy{First: firstPause, Most: maxPause, Failed: failed, Log: l.log, Every: 10 * logEvery}, func() error {
		begun := time.Now()
		err := attempt()
		if of == "database" && ctx.Err() == nil {
			l.wrote(of, err)
			l.opts.Observe(time.Since(begun), err)
		}
		return err
	})
}
