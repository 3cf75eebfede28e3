package origin

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/wire"
)

// Origin reads boards through one client, which the caller closes. All methods may be called concurrently.
type Origin struct {
	reader
	bulkReader
	scanner
	auditor
	sizer
	ladderMaker
}

// link makes the round trips of all readers.
type link struct {
	client  redis.UniversalClient
	names   wire.Names
	total   TotalSource   // where a board's state is kept
	timeout time.Duration // of one round trip, retries included
	hasData func(rankcache.BoardID) bool
	metrics metrics
	mscore  atomic.Bool // the server may have ZMSCORE
	trips   trips

	histories histories
}

// Option changes a default of [New].
type Option func(*link)

// WithTotalSource sets where a board's state is kept. Default: its meta.
func WithTotalSource(t TotalSource) Option { return func(l *link) { l.total = t } }

// WithTimeout limits each round trip, in addition to the caller's context. Default: [DefaultTimeout].
func WithTimeout(d time.Duration) Option { return func(l *link) { l.timeout = d } }

// WithData sets which boards have members with data beside their scores. Default: none.
func WithData(has func(rankcache.BoardID) bool) Option { return func(l *link) { l.hasData = has } }

// WithRegisterer registers the metrics of this Origin. Default: unregistered.
func WithRegisterer(reg prometheus.Registerer) Option {
	return func(l *link) { l.metrics = newMetrics(reg) }
}

// New returns an Origin that reads through client. It sends nothing yet.
func New(client redis.UniversalClient, names wire.Names, opts ...Option) *Origin {
	l := &link{client: client, names: names, timeout: DefaultTimeout, trips: trips{bare: make(map[rankcache.BoardID]time.Time)}}
	l.mscore.Store(true)
	for _, opt := range opts {
		opt(l)
	}
	if l.metrics.seconds == nil {
		l.metrics = newMetrics(nil)
	}
	return &Origin{reader{l}, bulkReader{l}, scanner{l}, auditor{l}, sizer{l}, ladderMaker{l}}
}

// call runs one round trip with the time-out, measures it with the wait for its turn, and classifies its error.
func (l *link) call(ctx context.Context, op string, roundTrip func(context.Context) error) error {
	bounded, cancel := bound(ctx, l.timeout)
	defer cancel()
	begin := time.Now()
	err := explain(ctx, op, roundTrip(bounded))
	l.metrics.observe(op, time.Since(begin), err)
	return err
}

// keys returns the keys of every read of a board: its sorted set and, unless there is none, that of its state.
func (l *link) keys(b rankcache.BoardID) []string {
	keys := []string{l.names.BoardKey(b)}
	if state := l.total.key(l.names, b); state != "" {
		keys = append(keys, state)
	}
	return keys
}

// transaction runs the commands that add queues in one MULTI with those that read the board's members and state. For a
// page of 50 rows MULTI costs Redis a third less than a script.
func (l *link) transaction(ctx context.Context, b rankcache.BoardID, add func(redis.Pipeliner)) (rankcache.Stamp, error) {
	var members *redis.IntCmd
	var state *redis.StringCmd
	keys, at := l.keys(b), time.Now() // the reply can't be older
	cmds, err := atOnce(ctx, l.client, func(p redis.Pipeliner) error {
		add(p)
		members = p.ZCard(ctx, keys[0])
		if len(keys) > 1 {
			state = p.Get(ctx, keys[1])
		}
		return nil
	})
	// A truncated reply leaves prefilled rows and an error: check the error first.
	if err = firstError(cmds, err); err != nil {
		return rankcache.Stamp{At: at}, err
	}
	var value any
	if state != nil && state.Err() == nil {
		value = state.Val()
	}
	return l.total.stampOf(keys[len(keys)-1], value, int(members.Val()), at)
}
