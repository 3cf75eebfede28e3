package hotkey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"rankcache/wire"
)

// Defaults of [PollerConfig].
const (
	// DefaultPollEvery is well under the 5 s over which Tencent Cloud counts, and
	// is half a call a second of the 20 that one account may make in a region.
	DefaultPollEvery   = 2 * time.Second
	DefaultCallTimeout = 5 * time.Second
	// DefaultLease bounds how long the fleet goes without a poller: should one
	// die, the next call is made within 1.2 leases, or when the turn is free.
	DefaultLease = 1500 * time.Millisecond
	// DefaultStopPause is how long a poller stays away after an answer that
	// only an operator can mend.
	DefaultStopPause = 5 * time.Minute
	// maxBackoff is the longest pause between calls that are asked to slow down.
	maxBackoff = time.Minute
)

var errLeaseLost = errors.New("another poller has the lease")

// PollerConfig says how a server-side source is polled. Zero fields take the
// defaults of this package.
type PollerConfig struct {
	Every       time.Duration // between two calls of the whole fleet
	CallTimeout time.Duration // of one call
	Lease       time.Duration // life of the lease, renewed four times in it
	VerdictAge  time.Duration // life of the verdict in Redis
	StopPause   time.Duration // after an answer that only an operator can mend
	// ID names this poller in the verdict; it must differ from that of every
	// other poller, such as the pod's name.
	ID string
}

func (c PollerConfig) withDefaults() PollerConfig {
	c.Every = cmp.Or(c.Every, DefaultPollEvery)
	c.CallTimeout = cmp.Or(c.CallTimeout, DefaultCallTimeout)
	c.Lease = cmp.Or(c.Lease, DefaultLease)
	c.VerdictAge = cmp.Or(c.VerdictAge, DefaultVerdictAge)
	c.StopPause = cmp.Or(c.StopPause, DefaultStopPause)
	return c
}

func (c PollerConfig) check() error {
	if c.ID == "" {
		return errors.New("hot-key poller has no id: give it the name of the pod")
	}
	for _, d := range []time.Duration{c.Every, c.CallTimeout, c.Lease, c.VerdictAge, c.StopPause} {
		if d < 20*time.Millisecond {
			return fmt.Errorf("hot-key poller: time of %v: want at least 20ms", d)
		}
	}
	return nil
}

// Poller asks a server-side source on behalf of the fleet while it holds the
// lease, and publishes what it found.
type Poller struct {
	cfg     PollerConfig
	source  Source
	rdb     redis.Cmdable
	lease   lease
	verdict string // Redis key of the verdict
	turn    string // Redis key that bounds the rate of calls
	log     *slog.Logger
	metrics *pollerMetrics

	// Only the goroutine that leads uses these.
	slow  *backoff.ExponentialBackOff // after answers that ask for fewer calls
	prev  Verdict
	wrong string // code of the last call when it failed; for logging changes
}

// NewPoller returns a poller of source for one Redis instance, whose name is
// part of the keys in Redis. It starts nothing; rdb stays the caller's to close.
func NewPoller(cfg PollerConfig, source Source, rdb redis.Cmdable, names wire.Names, instance string,
	log *slog.Logger, reg prometheus.Registerer) (*Poller, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	p := &Poller{cfg: cfg, source: source, rdb: rdb, log: log, metrics: newPollerMetrics(reg),
		verdict: names.HotKey(instance), turn: names.HotKey(instance + ":turn")}
	p.lease = lease{rdb: rdb, key: names.HotKey(instance + ":lease"), id: cfg.ID, ttl: cfg.Lease}
	p.slow = &backoff.ExponentialBackOff{InitialInterval: 2 * cfg.Every, MaxInterval: max(maxBackoff, 2*cfg.Every),
		Multiplier: 2, RandomizationFactor: 0.3}
	p.slow.Reset()
	return p, nil
}

// Run takes part in the election and polls whenever it is elected, until ctx is
// done; it returns nil.
func (p *Poller) Run(ctx context.Context) error {
	failing := false
	for ctx.Err() == nil {
		held, wait, err := p.lease.acquire(ctx)
		switch {
		case held:
			failing, wait = false, p.lead(ctx)
		case err == nil: // when it runs out, not all at the same moment
			failing, wait = false, wait+rand.N(p.cfg.Lease/5)
		default:
			if !failing && ctx.Err() == nil {
				p.log.Warn("hot keys are not polled while Redis can't be asked for the lease", "err", err)
			}
			failing, wait = true, jitter(p.cfg.Lease/2)
		}
		sleep(ctx, wait)
	}
	return nil
}

// lead polls while the lease is held and returns how long to stay away from the
// election.
func (p *Poller) lead(ctx context.Context) (away time.Duration) {
	p.metrics.leading.Set(1)
	defer p.metrics.leading.Set(0)
	p.log.Info("polling hot keys for the fleet", "source", p.source.Name())
	led, lost := context.WithCancelCause(ctx)
	kept := make(chan struct{})
	go func() { defer close(kept); p.lease.keep(led, lost) }()
	defer func() { lost(nil); <-kept; p.resign(ctx) }()
	for led.Err() == nil {
		pause, stop := p.poll(led)
		if stop {
			return jitter(p.cfg.StopPause)
		}
		sleep(led, pause)
	}
	if ctx.Err() == nil {
		p.log.Info("no longer polling hot keys", "reason", context.Cause(led))
	}
	return jitter(p.cfg.Lease / 2)
}

// resign gives the lease back. Should that fail, it runs out by itself.
func (p *Poller) resign(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.cfg.Lease/2)
	defer cancel()
	_ = p.lease.release(ctx)
}

// poll makes one call if it is time for one and returns the pause until the
// next, or stop when only an operator can help.
//
// The lease alone does not bound the rate: a poller stopped between its last
// renewal and its call still calls when it goes on, and pods that are replaced
// one by one hand the lease on each time. So a call also needs the turn, a key
// that lives nearly as long as the time between two calls.
func (p *Poller) poll(ctx context.Context) (pause time.Duration, stop bool) {
	mine, err := p.rdb.SetNX(ctx, p.turn, p.cfg.ID, p.cfg.Every*9/10).Result()
	if err != nil || !mine {
		return jitter(p.cfg.Every / 8), false
	}
	bounded, cancel := context.WithTimeout(ctx, p.cfg.CallTimeout)
	defer cancel()
	sample, err := p.source.Hot(bounded)
	if ctx.Err() != nil { // no longer the leader: says nothing of the source
		return 0, false
	}
	if err == nil {
		err = p.publish(ctx, sample)
	}
	return p.judge(err)
}

// publish shares what a call found.
func (p *Poller) publish(ctx context.Context, s Sample) error {
	p.metrics.ignored.Add(float64(s.Ignored))
	slices.SortFunc(s.Boards, func(a, b BoardCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Board, b.Board))
	})
	v := Verdict{At: time.Now(), Source: p.source.Name(), Poller: p.cfg.ID,
		Boards: s.Boards[:min(len(s.Boards), maxVerdictBoards)], Ignored: s.Ignored}
	if !p.prev.At.IsZero() && p.prev.sameBoards(v) {
		p.metrics.identical.Inc()
	} else {
		p.metrics.identical.Set(0)
	}
	p.prev = v
	if err := p.rdb.Set(ctx, p.verdict, v.Encode(), p.cfg.VerdictAge).Err(); err != nil {
		return &CallError{"publish", AfterPause, fmt.Errorf("publish the hot-key verdict under %s: %w", p.verdict, err)}
	}
	return nil
}

// judge counts and logs the outcome of a call and returns when to call again.
func (p *Poller) judge(err error) (pause time.Duration, stop bool) {
	call := &CallError{Code: "ok"}
	if err != nil && !errors.As(err, &call) {
		call = &CallError{"other", AfterBackoff, err}
	}
	p.metrics.calls.WithLabelValues(p.source.Name(), call.Code).Inc()
	p.say(call)
	switch call.After {
	case AfterOperator:
		p.metrics.stopped.Set(1)
		return 0, true
	case AfterBackoff:
		return p.slow.NextBackOff(), false
	}
	p.metrics.stopped.Set(0)
	p.slow.Reset()
	return jitter(p.cfg.Every), false
}

// say logs an outcome that differs from the one before.
func (p *Poller) say(call *CallError) {
	switch {
	case call.Err == nil && p.wrong != "":
		p.log.Info("hot keys are answered again", "source", p.source.Name())
		p.wrong = ""
	case call.Err == nil || p.wrong == call.Code:
	case call.Code == codeUnsupported:
		p.log.Info("hot keys are not polled: the server has none to tell; own request rates still promote",
			"source", p.source.Name(), "err", call.Err)
		p.wrong = call.Code
	case call.After == AfterOperator:
		p.log.Error("hot keys are not polled until an operator looks; own request rates still promote",
			"source", p.source.Name(), "code", call.Code, "again_in", p.cfg.StopPause, "err", call.Err)
		p.wrong = call.Code
	default:
		p.log.Warn("hot keys were not answered", "source", p.source.Name(), "code", call.Code, "then", string(call.After), "err", call.Err)
		p.wrong = call.Code
	}
}

// sleep returns after d or when ctx is done.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
