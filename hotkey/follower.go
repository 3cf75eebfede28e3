package hotkey

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
)

const (
	// followEvery is how often the verdict is read, with a tenth of jitter.
	followEvery = time.Second
	// followTimeout bounds one reading.
	followTimeout = 500 * time.Millisecond
)

// Observer takes verdicts; a [Tracker] is one.
type Observer interface {
	// Observe is called with every verdict read, mostly one seen before.
	Observe(Verdict)
}

// Follower reads the fleet's verdict from Redis.
type Follower struct {
	rdb     redis.Cmdable
	key     string
	to      Observer
	log     *slog.Logger
	reads   *prometheus.CounterVec
	failing bool // the last reading failed; for saying so once
}

// NewFollower returns a follower of the verdict under key (see
// wire.Names.HotKey). It starts nothing; rdb stays the caller's to close.
func NewFollower(rdb redis.Cmdable, key string, to Observer, log *slog.Logger, reg prometheus.Registerer) *Follower {
	f := &Follower{rdb: rdb, key: key, to: to, log: log,
		reads: counterVec("verdict_reads_total", "Readings of the fleet's hot-key verdict, by result.", "result")}
	reg.MustRegister(f.reads)
	return f
}

// Run reads the verdict about once a second until ctx is done; it returns nil.
func (f *Follower) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		result, err := f.read(ctx)
		if ctx.Err() != nil {
			break
		}
		f.reads.WithLabelValues(result).Inc()
		f.report(err)
		sleep(ctx, jitter(followEvery))
	}
	return nil
}

// read passes the verdict on, if there is one.
func (f *Follower) read(ctx context.Context) (result string, err error) {
	ctx, cancel := context.WithTimeout(ctx, followTimeout)
	defer cancel()
	data, err := f.rdb.Get(ctx, f.key).Bytes()
	switch {
	case errors.Is(err, redis.Nil):
		return "none", nil
	case err != nil:
		return "error", fmt.Errorf("read the hot-key verdict %s: %w", f.key, err)
	}
	v, err := DecodeVerdict(data)
	if err != nil {
		return "bad", fmt.Errorf("%s: %w", f.key, err)
	}
	f.to.Observe(v)
	return "ok", nil
}

// report logs when reading starts to fail and when it works again.
func (f *Follower) report(err error) {
	switch failing := err != nil; {
	case failing == f.failing:
	case failing:
		f.failing = true
		f.log.Warn("the hot-key verdict can't be read; own request rates still promote", "err", err)
	default:
		f.failing = false
		f.log.Info("the hot-key verdict is read again")
	}
}
