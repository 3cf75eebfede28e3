// Package origin reads boards from Redis, the system of record. It writes
// nothing there.
//
// The path of a call, in order: Dial builds the client from a URL (dial.go);
// a method names the keys of its board and sends one round trip: MULTI where
// the commands are known beforehand (page.go, standings.go), a read-only script
// where a later command needs an earlier answer or where several boards share
// one pipeline (script.go and the .lua files); reply.go turns the answer into
// the root package's words; errors.go tells a Redis that can't be reached from
// one that answers no.
//
// Everything that one answer says of one board is of one instant: its rows,
// its number of members and its total belong together.
package origin

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/wire"
)

// Origin reads boards through one client, which stays the caller's to close.
// All methods may be called concurrently.
type Origin struct {
	client  redis.UniversalClient
	names   wire.Names
	total   Total         // where a board's count of applied orders is kept
	timeout time.Duration // of one round trip, retries included
	metrics metrics
}

// Option changes what [New] sets by default.
type Option func(*Origin)

// WithTotal says where a board's total is kept. Default: the seq key.
func WithTotal(t Total) Option { return func(o *Origin) { o.total = t } }

// WithTimeout bounds each round trip, in addition to the caller's context.
// Default: [DefaultTimeout].
func WithTimeout(d time.Duration) Option { return func(o *Origin) { o.timeout = d } }

// WithRegisterer registers the metrics of this Origin. Default: they are
// counted but not shown.
func WithRegisterer(reg prometheus.Registerer) Option {
	return func(o *Origin) { o.metrics = newMetrics(reg) }
}

// New returns an Origin that reads through client. It asks nothing of Redis.
func New(client redis.UniversalClient, names wire.Names, opts ...Option) *Origin {
	o := &Origin{client: client, names: names, timeout: DefaultTimeout}
	for _, opt := range opts {
		opt(o)
	}
	if o.metrics.seconds == nil {
		o.metrics = newMetrics(nil)
	}
	return o
}

// call runs one round trip under the time-out, counts it and explains its
// error.
func (o *Origin) call(ctx context.Context, op string, roundTrip func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	begin := time.Now()
	err := explain(ctx, op, roundTrip(bounded))
	o.metrics.observe(op, time.Since(begin), err)
	return err
}

// keys returns the keys that every answer about a board is read from: its
// sorted set and, unless there is none, its total.
func (o *Origin) keys(b rankcache.BoardID) []string {
	keys := []string{o.names.BoardKey(b)}
	if total := o.total.key(o.names, b); total != "" {
		keys = append(keys, total)
	}
	return keys
}
