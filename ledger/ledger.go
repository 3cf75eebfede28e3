package ledger

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

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

// wrote notes what became of a write.
func (l *Ledger) wrote(of string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed[of] = err
}

// WriteError returns why the database refused the last write of any kind, nil if it took it. Call it at any time.
func (l *Ledger) WriteError() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, tried := l.failed["rank_lost"]; !tried { // which is written without a batch, too
		return errors.New("nothing was written yet")
	}
	return errors.Join(l.failed["newer"], l.failed["database"], l.failed["rank_lost"])
}
