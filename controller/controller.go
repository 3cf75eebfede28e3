package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"golang.org/x/time/rate"

	"rankcache"
	"rankcache/internal/kafka"
	"rankcache/internal/lease"
	"rankcache/internal/redisclock"
	"rankcache/internal/tick"
	"rankcache/rooms"
	"rankcache/wire"
)

// Defaults of [Options].
const (
	DefaultTopicKeep   = 7 * 24 * time.Hour // outlives a holiday during which somebody empties Redis by mistake
	DefaultEvery       = time.Second
	DefaultTopicsEvery = time.Minute
	DefaultLease       = 10 * time.Second
	DefaultPrimeRate   = 2000 // a small part of what a core of Redis applies
)

// ClockMargin is how far the clock of a controller may be from that of Redis: beyond it no board is closed.
const ClockMargin = 5 * time.Second

// Tiers are the settings of the rooms file. It must be safe for concurrent use.
type Tiers interface {
	// Mode returns the mode of a board, or of a room.
	Mode(board rankcache.BoardID, room string) rooms.Mode
	// File returns the rooms file in force; never nil.
	File() *rooms.File
	// Resolved reports whether the boards of all rooms are known.
	Resolved() bool
}

// Ledger is asked before a board whose class has a ledger is closed.
type Ledger interface {
	// Settled reports whether the ledger has everything that Redis has of a board at a
	// state, and nothing that Redis has lost is still to be applied again.
	Settled(ctx context.Context, board rankcache.BoardID, state rankcache.State) (bool, error)
}

// Snapshots are saved boards, in a folder for each topic.
type Snapshots interface {
	// RemoveBelow deletes all in a folder.
	RemoveBelow(ctx context.Context, folder string) error
}

// Options configure a [Controller]. Zero times take the defaults of this package, except TopicKeep.
type Options struct {
	Redis redis.UniversalClient // closed by the caller
	Names wire.Names
	Tiers Tiers
	Kafka map[string]string // holds librdkafka settings, at least bootstrap.servers
	// KafkaLogin, if it is not nil, calls set with each new user name and password for SASL, until ctx is done.
	KafkaLogin  func(ctx context.Context, set func(username, password string) error)
	Group       string // the writers' consumer group, PostTimeout how long after it came a post may be applied
	PostTimeout time.Duration
	// TopicKeep is how long Redis must not have known a board until its topic goes. 0: these topics stay.
	TopicKeep                 time.Duration
	PrimeRate                 int       // how many primes of rolling boards are sent in a second at most
	Ledger                    Ledger    // nil: boards are closed without it
	Finalizer                 Finalizer // nil: no board has a final
	Snapshots                 Snapshots // that are deleted with the topics of their boards; nil: none
	ID                        string    // identifies this controller and must differ from that of every other one
	Every, TopicsEvery, Lease time.Duration
	Now                       func() time.Time // for tests; nil: the time of Redis
	Log                       *slog.Logger
	Registerer                prometheus.Registerer
}

func (o Options) check() (Options, error) {
	o.Every, o.TopicsEvery, o.Lease = cmp.Or(o.Every, DefaultEvery), cmp.Or(o.TopicsEvery, DefaultTopicsEvery), cmp.Or(o.Lease, DefaultLease)
	o.PrimeRate = cmp.Or(o.PrimeRate, DefaultPrimeRate)
	switch {
	case o.PrimeRate < 0:
		return o, fmt.Errorf("prime rate %d: want at least 1 a second", o.PrimeRate)
	case o.Redis == nil || o.Tiers == nil || o.Log == nil || o.Registerer == nil:
		return o, errors.New("controller: Redis, Tiers, Log and Registerer are required")
	case o.ID == "" || o.Group == "":
		return o, errors.New("controller: the id and the writers' consumer group are required")
	case o.Kafka["bootstrap.servers"] == "":
		return o, errors.New("kafka setting bootstrap.servers is missing: want host:port[,host:port]")
	case o.TopicKeep != 0 && o.TopicKeep < time.Minute:
		return o, fmt.Errorf("topic keep %v: want 0 or at least 1m", o.TopicKeep)
	}
	return o, o.Names.Check()
}

// Controller closes boards and deletes topics. Make it with [New].
type Controller struct {
	opts    Options
	lease   lease.Lease
	metrics *metrics
	log     *slog.Logger
	errLog  rate.Sometimes
	clock   *redisclock.Clock
	now     func() time.Time

	mu     sync.Mutex // nothing is called under it
	status Status
}

// New returns a Controller, or an error that names the wrong option. It starts nothing and connects to nothing.
func New(opts Options) (*Controller, error) {
	opts, err := opts.check()
	if err != nil {
		return nil, err
	}
	clock := redisclock.New(opts.Redis)
	if opts.Now == nil {
		opts.Now = clock.Now
	}
	c := &Controller{opts: opts, metrics: newMetrics(opts.Registerer), log: opts.Log, errLog: rate.Sometimes{First: 1, Interval: 10 * time.Second},
		clock: clock, now: opts.Now}
	c.lease = lease.Lease{Redis: opts.Redis, Key: opts.Names.Controller, ID: opts.ID, TTL: opts.Lease}
	c.status = Status{ID: opts.ID}
	return c, nil
}

// Run works whenever it has the lease, until ctx is done; its error is that no client of Kafka could be made.
func (c *Controller) Run(ctx context.Context) error {
	k, err := openKafka(c.opts)
	if err != nil {
		return err
	}
	defer k.close()
	defer kafka.KeepLogin(ctx, c.opts.KafkaLogin, k.setLogin)()
	var compares sync.WaitGroup
	compares.Go(func() { c.clock.Run(ctx) })
	defer compares.Wait()
	for ctx.Err() == nil {
		acquired, left, err := c.lease.Acquire(ctx)
		wait := c.lease.Retry(left)
		switch {
		case acquired:
			c.lead(ctx, k)
			wait = c.opts.Lease / 4
		case err != nil:
			c.failed("lease", err)
		}
		tick.Sleep(ctx, wait)
	}
	return nil
}

// ClockError returns why this controller closes no board, or nil: its clock and Redis's differ.
func (c *Controller) ClockError() error { return c.clock.Check(ClockMargin) }

// CompareClock compares this machine's clock with Redis's, for ClockError. The error: Redis did not tell its time.
func (c *Controller) CompareClock(ctx context.Context) error {
	return c.clock.Compare(ctx, redisclock.Good)
}

// lead works until ctx is done or the lease is lost.
func (c *Controller) lead(ctx context.Context, k *kafkaClient) {
	c.led(true)
	defer c.led(false)
	c.log.Info("closing boards", "id", c.opts.ID)
	reason := c.lease.Hold(ctx, func(ctx context.Context) {
		t := newTerm(c, k)
		var primes sync.WaitGroup
		primes.Go(func() { newPrimer(c, k).run(ctx) })
		defer primes.Wait()
		for ctx.Err() == nil {
			t.step(ctx)
			tick.Sleep(ctx, c.opts.Every)
		}
	})
	if ctx.Err() == nil {
		c.log.Info("no longer closing boards", "reason", reason)
	}
}

// term is one time of leading: what it holds is found again by the next leader.
type term struct {
	leading
	plain, durable gate // of boards that are not durable, and of those that are
	boards         map[rankcache.BoardID]progress
	waits          string // what boards wait for, the first of it
	waitSince      time.Time
	waitLog        rate.Sometimes
	finalsUntil    time.Time // when no more finals are begun in this look
	topics         topicEnder
	topicsNext     time.Time
}

type leading struct {
	*Controller
	kafka *kafkaClient
}

func newTerm(c *Controller, k *kafkaClient) *term {
	with := leading{c, k}
	return &term{leading: with, boards: make(map[rankcache.BoardID]progress), waitSince: c.now(), waitLog: rate.Sometimes{Interval: sayAfter}, topics: topicEnder{leading: with}}
}

// step looks once at the boards that are due, and at the topics when it is time for that.
func (t *term) step(ctx context.Context) {
	if err := t.clock.Agrees(ctx, redisclock.Good, ClockMargin); err != nil {
		t.failed("clock", err)
		return
	}
	if err := t.closeBoards(ctx); err != nil && ctx.Err() == nil {
		t.failed("boards", err)
	}
	if now := t.now(); !now.Before(t.topicsNext) && t.opts.Tiers.Resolved() && ctx.Err() == nil {
		t.topicsNext = now.Add(t.opts.TopicsEvery)
		if err := t.topics.lookAtTopics(ctx); err != nil && ctx.Err() == nil {
			t.failed("topics", err)
		}
	}
}

// failed counts an error and logs it; what failed is tried again.
func (c *Controller) failed(part string, err error) {
	c.metrics.errors.WithLabelValues(part).Inc()
	c.note(func(s *Status) { s.Error, s.ErrorAt = err.Error(), c.now() })
	c.errLog.Do(func() { c.log.Warn("controller failed, retrying", "part", part, "err", err) })
}
