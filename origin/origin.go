package origin

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/wire"
)

// MaxAround is the most neighbours on each side that Around returns.
const MaxAround = (rankcache.MaxTop - 1) / 2

// Origin reads boards through one client, which the caller closes. All methods may
// be called concurrently.
type Origin struct {
	client  redis.UniversalClient
	names   wire.Names
	total   TotalSource   // where a board's state is kept
	timeout time.Duration // of one round trip, retries included
	metrics metrics
}

// Option changes a default of [New].
type Option func(*Origin)

// WithTotalSource sets where a board's state is kept. Default: its meta.
func WithTotalSource(t TotalSource) Option { return func(o *Origin) { o.total = t } }

// WithTimeout limits each round trip, in addition to the caller's context.
// Default: [DefaultTimeout].
func WithTimeout(d time.Duration) Option { return func(o *Origin) { o.timeout = d } }

// WithRegisterer registers the metrics of this Origin. Default: unregistered.
func WithRegisterer(reg prometheus.Registerer) Option {
	return func(o *Origin) { o.metrics = newMetrics(reg) }
}

// New returns an Origin that reads through client. It sends nothing yet.
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

// call runs one round trip with the time-out, measures it and classifies its
// error.
func (o *Origin) call(ctx context.Context, op string, roundTrip func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	begin := time.Now()
	err := explain(ctx, op, roundTrip(bounded))
	o.metrics.observe(op, time.Since(begin), err)
	return err
}

// keys returns the keys of every read of a board: its sorted set and, unless there
// is none, that of its state.
func (o *Origin) keys(b rankcache.BoardID) []string {
	keys := []string{o.names.BoardKey(b)}
	if state := o.total.key(o.names, b); state != "" {
		keys = append(keys, state)
	}
	return keys
}

// Page returns up to limit rows of the board from the 0-based index start on, with
// the board's members and state of the same instant. A board that does not exist is
// empty. The error wraps [rankcache.ErrUnavailable] if Redis is unreachable or
// late.
func (o *Origin) Page(ctx context.Context, b rankcache.BoardID, start, limit int, dir rankcache.Direction) (rankcache.Page, error) {
	if start < 0 || limit < 1 || limit > rankcache.MaxTop {
		return rankcache.Page{}, fmt.Errorf("page of %d rows from %d: want 1 to %d rows from 0 or more", limit, start, rankcache.MaxTop)
	}
	page := rankcache.Page{Start: start}
	err := o.call(ctx, "page", func(ctx context.Context) (err error) {
		var rows *redis.ZSliceCmd
		page.Stamp, err = o.transaction(ctx, b, func(p redis.Pipeliner) {
			rows = zRange(ctx, p, o.names.BoardKey(b), start, limit, dir)
		})
		if err == nil {
			page.Entries, err = toEntries(o.names.BoardKey(b), rows.Val())
		}
		return err
	})
	return page, err
}

// Standings returns the standing of each member, in the order of members and all
// of the one instant that the stamp describes. A member that is not on the board
// has rank 0.
func (o *Origin) Standings(ctx context.Context, b rankcache.BoardID, members []string, dir rankcache.Direction) (
	standings []rankcache.Standing, stamp rankcache.Stamp, err error) {
	err = o.call(ctx, "standings", func(ctx context.Context) (err error) {
		key := o.names.BoardKey(b)
		ranks := make([]*redis.IntCmd, len(members))
		scores := make([]*redis.FloatCmd, len(members))
		stamp, err = o.transaction(ctx, b, func(p redis.Pipeliner) {
			for i, m := range members {
				ranks[i], scores[i] = zRank(ctx, p, key, m, dir), p.ZScore(ctx, key, m)
			}
		})
		if err == nil {
			standings, err = toStandings(key, members, ranks, scores)
		}
		return err
	})
	return standings, stamp, err
}

// Around returns the rows from n ranks before the member to n after it, and its
// 1-based rank, all of one instant. For a member that is not on the board the
// error wraps [rankcache.ErrUnknownMember] and the page has only a stamp.
func (o *Origin) Around(ctx context.Context, b rankcache.BoardID, member string, n int, dir rankcache.Direction) (page rankcache.Page, rank int, err error) {
	if n < 0 || n > MaxAround {
		return page, 0, fmt.Errorf("%d neighbours: want 0 to %d", n, MaxAround)
	}
	rankCmd, rangeCmd := "ZREVRANK", "ZREVRANGE"
	if dir == rankcache.Ascending {
		rankCmd, rangeCmd = "ZRANK", "ZRANGE"
	}
	err = o.call(ctx, "around", func(ctx context.Context) (err error) {
		at, call := time.Now(), scriptCall{o.keys(b), []any{rankCmd, rangeCmd, member, n}}
		answer := runAll(ctx, o.client, aroundScript, []scriptCall{call})[0]
		page, rank, err = o.toAround(call.keys, answer, at)
		return err
	})
	if err == nil && rank == 0 {
		err = fmt.Errorf("board %s, member %.40q: %w", b, member, rankcache.ErrUnknownMember)
	}
	return page, rank, err
}

// transaction runs the commands that add queues in one MULTI with those that read
// the board's members and state. For a page of 50 rows MULTI costs Redis a third less
// than a script.
func (o *Origin) transaction(ctx context.Context, b rankcache.BoardID, add func(redis.Pipeliner)) (rankcache.Stamp, error) {
	var members *redis.IntCmd
	var state *redis.StringCmd
	keys, at := o.keys(b), time.Now() // the reply can't be older
	cmds, err := o.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		add(p)
		members = p.ZCard(ctx, keys[0])
		if len(keys) > 1 {
			state = p.Get(ctx, keys[1])
		}
		return nil
	})
	stamp := rankcache.Stamp{At: at}
	// A truncated reply leaves prefilled rows and an error: check the error first.
	if err = firstError(cmds, err); err != nil {
		return stamp, err
	}
	stamp.Members = int(members.Val())
	if state != nil && state.Err() == nil {
		stamp.State, err = o.total.state(keys[1], state.Val(), stamp.Members)
	}
	return stamp, err
}

func zRange(ctx context.Context, p redis.Pipeliner, key string, start, limit int, dir rankcache.Direction) *redis.ZSliceCmd {
	if dir == rankcache.Ascending {
		return p.ZRangeWithScores(ctx, key, int64(start), int64(start+limit-1))
	}
	return p.ZRevRangeWithScores(ctx, key, int64(start), int64(start+limit-1))
}

func zRank(ctx context.Context, p redis.Pipeliner, key, member string, dir rankcache.Direction) *redis.IntCmd {
	if dir == rankcache.Ascending {
		return p.ZRank(ctx, key, member)
	}
	return p.ZRevRank(ctx, key, member)
}
