package hotkey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"rankcache/internal/lease"
	"rankcache/internal/metric"
	"rankcache/internal/tick"
	"rankcache/wire"
)

// Defaults of [PollerConfig].
const (
	// DefaultPollEvery is well under the 5 s of Tencent Cloud's counts, and half a call of the 20 a second allowed.
	DefaultPollEvery = 2 * time.Second
	// DefaultLease bounds how long the fleet has no poller: 1.2 leases, or until the rate key expires.
	DefaultLease = 1500 * time.Millisecond

	callTimeout = 5 * time.Second // bounds one call of the source
	stopPause   = 5 * time.Minute // the pause after an error that needs an operator
	maxBackoff  = time.Minute     // the longest pause of the exponential back-off
)

// PollerConfig configures a [Poller]. Zero fields take the defaults of this package.
type PollerConfig struct {
	Every time.Duration // between two calls of the whole fleet
	Lease time.Duration // life of the lease, renewed four times in it
	ID    string        // identifies this poller and must be unique in the fleet, such as the pod's name
	// Idle, if not nil, reports whether another kind of source is in use. It must not block.
	Idle func() bool
	// Answered, if it is not nil, is called at the end of each call of the source. It must not block.
	Answered func(took time.Duration, err error)
}

func (c PollerConfig) withDefaults() PollerConfig {
	c.Every = cmp.Or(c.Every, DefaultPollEvery)
	c.Lease = cmp.Or(c.Lease, DefaultLease)
	return c
}

func (c PollerConfig) check() error {
	if c.ID == "" {
		return errors.New("hot-key poller has no id: set it to the pod's name")
	}
	if d := min(c.Every, c.Lease); d < 20*time.Millisecond {
		return fmt.Errorf("hot-key poller: time of %v: want at least 20ms", d)
	}
	return nil
}

// Poller calls a server-side source on behalf of the fleet while it has the lease, and publishes the verdict.
type Poller struct {
	cfg     PollerConfig
	source  Source
	rdb     redis.Cmdable
	lease   lease.Lease
	verdict string // Redis key of the verdict
	rateKey string // Redis key that bounds the rate of calls
	elected bool   // by the caller, see RunElected
	log     *slog.Logger
	metrics *pollerMetrics

	// Used by Run's goroutine alone.
	backoff  *backoff.ExponentialBackOff // after errors with AfterBackoff
	lastCode string                      // of the last call if it failed, "" otherwise; to log changes only
}

// NewPoller returns a poller of source for one Redis instance. It starts nothing; the caller closes rdb.
func NewPoller(cfg PollerConfig, source Source, rdb redis.Cmdable, names wire.Names, instance string,
	log *slog.Logger, reg prometheus.Registerer) (*Poller, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	p := &Poller{cfg: cfg, source: source, rdb: rdb, log: log, metrics: newPollerMetrics(reg),
		verdict: names.HotKey(instance), rateKey: names.HotKey(instance + ":turn")}
	p.lease = lease.Lease{Redis: rdb, Key: names.HotKey(instance + ":lease"), ID: cfg.ID, TTL: cfg.Lease}
	p.backoff = &backoff.ExponentialBackOff{InitialInterval: 2 * cfg.Every, MaxInterval: max(maxBackoff, 2*cfg.Every),
		Multiplier: 2, RandomizationFactor: 0.3}
	p.backoff.Reset()
	return p, nil
}

// Run acquires the lease whenever it is free and polls while it has it, until ctx is done; it returns nil.
func (p *Poller) Run(ctx context.Context) error {
	failing := false
	for ctx.Err() == nil {
		if p.idle() {
			tick.Sleep(ctx, tick.Jitter(VerdictAge/3))
			continue
		}
		acquired, wait, err := p.lease.Acquire(ctx)
		switch {
		case acquired:
			failing, wait = false, p.lead(ctx)
		case err == nil: // try when it expires, not all pollers at the same time
			failing, wait = false, p.lease.Retry(wait)
		default:
			if !failing && ctx.Err() == nil {
				p.log.Warn("hot keys are not polled: the lease can't be acquired from Redis", "err", err)
			}
			failing, wait = true, tick.Jitter(p.cfg.Lease/2)
		}
		tick.Sleep(ctx, wait)
	}
	return nil
}

func (p *Poller) idle() bool { return p.cfg.Idle != nil && p.cfg.Idle() }

// RunElected polls until ctx is done instead of all other pollers, which have no turn meanwhile: it was the caller who
// chose this one. That two are chosen for a moment does no harm. It returns nil.
func (p *Poller) RunElected(ctx context.Context) error {
	p.elected = true
	p.metrics.leading.Set(1)
	defer p.metrics.leading.Set(0)
	for ctx.Err() == nil {
		pause, stop := p.poll(ctx)
		if stop {
			pause = tick.Jitter(stopPause)
		}
		tick.Sleep(ctx, pause)
	}
	return nil
}

// lead polls while the poller has the lease and returns the pause before the next attempt to acquire it.
func (p *Poller) lead(ctx context.Context) (pause time.Duration) {
	p.metrics.leading.Set(1)
	defer p.metrics.leading.Set(0)
	p.log.Info("polling hot keys for the fleet", "source", p.source.Name())
	stop := false
	reason := p.lease.Hold(ctx, func(led context.Context) {
		for led.Err() == nil && !stop && !p.idle() {
			pause, stop = p.poll(led)
			if !stop {
				tick.Sleep(led, pause)
			}
		}
	})
	if stop {
		return tick.Jitter(stopPause)
	}
	if ctx.Err() == nil {
		p.log.Info("no longer polling hot keys", "reason", reason)
	}
	return tick.Jitter(p.cfg.Lease / 2)
}

// poll makes one call if it is time for one and returns the pause until the
// next, or stop after an error that needs an operator.
//
// The lease alone does not bound the rate: a poller that is paused between its last renewal and its call still calls
// when it continues, and the lease passes on with each replaced pod. So a call also needs to set the rate key, which
// lives nearly as long as the time between two calls.
func (p *Poller) poll(ctx context.Context) (pause time.Duration, stop bool) {
	if mine, err := p.turn(ctx); err != nil || !mine {
		return tick.Jitter(p.cfg.Every / 8), false
	}
	bounded, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	begun := time.Now()
	hot, err := p.source.Hot(bounded)
	if ctx.Err() != nil { // the lease is lost: the error is not the source's
		return 0, false
	}
	if p.cfg.Answered != nil {
		p.cfg.Answered(time.Since(begun), err)
	}
	if err == nil {
		err = p.publish(ctx, hot)
	}
	return p.afterCall(err)
}

// turn takes the right to one call.
func (p *Poller) turn(ctx context.Context) (mine bool, err error) {
	if p.elected {
		err := p.rdb.Set(ctx, p.rateKey, p.cfg.ID, 3*p.cfg.Every).Err()
		return err == nil, err
	}
	return p.rdb.SetNX(ctx, p.rateKey, p.cfg.ID, p.cfg.Every*9/10).Result()
}

func (p *Poller) publish(ctx context.Context, s HotBoards) error {
	p.metrics.ignored.Add(float64(s.Ignored))
	slices.SortFunc(s.Boards, func(a, b BoardCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Board, b.Board))
	})
	v := Verdict{At: time.Now().UnixMilli(), Source: p.source.Name(), Poller: p.cfg.ID,
		Boards: s.Boards[:min(len(s.Boards), maxVerdictBoards)], Ignored: s.Ignored}
	if err := p.rdb.Set(ctx, p.verdict, v.Encode(), VerdictAge).Err(); err != nil {
		return &CallError{"publish", AfterPause, fmt.Errorf("publish the hot-key verdict under %s: %w", p.verdict, err)}
	}
	return nil
}

// afterCall counts and logs the outcome of a call and returns the pause before the next.
func (p *Poller) afterCall(err error) (pause time.Duration, stop bool) {
	call := &CallError{Code: "ok"}
	if err != nil && !errors.As(err, &call) {
		call = &CallError{"other", AfterBackoff, err}
	}
	p.metrics.calls.WithLabelValues(p.source.Name(), call.Code).Inc()
	p.logOutcome(call)
	switch call.After {
	case AfterOperator:
		p.metrics.stopped.Set(1)
		return 0, true
	case AfterBackoff:
		return p.backoff.NextBackOff(), false
	}
	p.metrics.stopped.Set(0)
	p.backoff.Reset()
	return tick.Jitter(p.cfg.Every), false
}

func (p *Poller) logOutcome(call *CallError) {
	switch {
	case call.Err == nil && p.lastCode != "":
		p.log.Info("source of hot keys answers again", "source", p.source.Name())
		p.lastCode = ""
	case call.Err == nil || p.lastCode == call.Code:
	case call.Code == CodeUnsupported:
		p.log.Info("hot keys are not polled: the server does not support it; own request rates still promote",
			"source", p.source.Name(), "err", call.Err)
		p.lastCode = call.Code
	case call.After == AfterOperator:
		p.log.Error("hot keys are not polled: the settings or rights of the source are wrong; own request rates still promote",
			"source", p.source.Name(), "code", call.Code, "retry_in", stopPause, "err", call.Err)
		p.lastCode = call.Code
	default:
		p.log.Warn("source of hot keys failed", "source", p.source.Name(), "code", call.Code, "then", string(call.After), "err", call.Err)
		p.lastCode = call.Code
	}
}

type pollerMetrics struct {
	calls   *prometheus.CounterVec
	ignored prometheus.Counter
	leading prometheus.Gauge
	stopped prometheus.Gauge
}

func newPollerMetrics(reg prometheus.Registerer) *pollerMetrics {
	set := metric.New(reg, "hot_")
	defer set.Must()
	return &pollerMetrics{
		calls:   set.Counters("source_calls_total", "Calls of the server-side hot-key source by this poller, by result code.", "source", "code"),
		ignored: set.Counter("source_ignored_keys_total", "Hot keys of the source that belong to no board."),
		leading: set.Gauge("poller_leading", "1 while this poller has the fleet's lease."),
		stopped: set.Gauge("source_stopped", "1 while this poller pauses because the source's settings or rights are wrong."),
	}
}
