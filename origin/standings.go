package origin

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
)

const (
	// maxTrips is how many trips are under way before further queries share the next, maxAsks how many it takes.
	maxTrips, maxAsks = 4, 32
	// bareLasts is for how long a board without a state is taken to have none: it is not asked for.
	bareLasts, maxBare = 10 * time.Second, 10_000
)

// ask is one query for standings on its trip. Its caller may have left.
type ask struct {
	q      *rankcache.Query
	keys   []string
	a      rankcache.Answer
	ranks  []*redis.IntCmd
	scores []*redis.FloatCmd
	all    []redis.Cmder
	state  *redis.StringCmd
	failed error // of its own transaction
	err    error
	done   chan struct{}
}

// trips are the round trips for standings: queries that come while several are under way share the next one.
type trips struct {
	mu       sync.Mutex
	underWay int
	waiting  []*ask
	bare     map[rankcache.BoardID]time.Time // when a board was last seen without a state; nil: all are asked for it
}

// isBare reports whether no state of the board was seen lately.
func (t *trips) isBare(b rankcache.BoardID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Since(t.bare[b]) < bareLasts
}

func (t *trips) noteBare(b rankcache.BoardID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.bare == nil:
		return
	case len(t.bare) >= maxBare:
		clear(t.bare)
	}
	t.bare[b] = time.Now()
}

// begin returns the asks of a trip that begins with one, nil if that has to wait for the end of another.
func (t *trips) begin(one *ask) []*ask {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.underWay == maxTrips {
		t.waiting = append(t.waiting, one)
		return nil
	}
	t.underWay++
	return []*ask{one}
}

// next returns the asks of the trip that follows on one that has ended.
func (t *trips) next() (asks []*ask) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := min(len(t.waiting), maxAsks)
	if asks, t.waiting = t.waiting[:n:n], t.waiting[n:]; n == 0 {
		t.waiting = nil
		t.underWay--
	}
	return asks
}

// readStandings shares its round trip with others, which a cluster and several instances can't.
func (r reader) readStandings(ctx context.Context, q *rankcache.Query, a *rankcache.Answer) {
	if err := ctx.Err(); err != nil { // the trip is for others, too, and would not heed it
		a.Fail(explain(ctx, "standings", err))
		return
	}
	own := *q
	one := &ask{q: &own, keys: r.keys(q.Board), done: make(chan struct{})}
	if !q.Bounded() && len(one.keys) > 1 && r.trips.isBare(q.Board) {
		one.keys = one.keys[:1]
	}
	if _, single := r.client.(*redis.Client); !single {
		r.travel(ctx, []*ask{one})
	} else if asks := r.trips.begin(one); asks != nil {
		r.travel(context.WithoutCancel(ctx), asks)
		if more := r.trips.next(); len(more) > 0 {
			go r.travelOn(more)
		}
	}
	select {
	case <-one.done:
	case <-ctx.Done():
		a.Fail(explain(ctx, "standings", ctx.Err()))
		return
	}
	if one.err != nil {
		a.Fail(one.err)
		return
	}
	a.Begin(q, rankcache.SourceRedis, one.a.Stamp, one.a.At)
	copy(a.Own, one.a.Own)
}

// travelOn makes trips until nobody waits for one.
func (r reader) travelOn(asks []*ask) {
	for ; len(asks) > 0; asks = r.trips.next() {
		r.travel(context.Background(), asks)
	}
}

// travel asks for all in one transaction and tells each that it is done.
func (r reader) travel(ctx context.Context, asks []*ask) {
	at := time.Now() // the replies can't be older
	_ = r.call(ctx, "standings", func(ctx context.Context) (first error) {
		_, err := atOnce(ctx, r.client, func(p redis.Pipeliner) error {
			for _, one := range asks {
				one.queue(ctx, p)
			}
			return nil
		})
		if len(asks) > 1 && isAborted(asks[0].all[0].Err()) { // Redis refuses a command of one of them
			for _, one := range asks {
				if _, err := atOnce(ctx, r.client, func(p redis.Pipeliner) error { one.queue(ctx, p); return nil }); err != nil {
					one.failed = err
				}
			}
		}
		for _, one := range asks {
			if one.err = one.finish(r.total, at, cmp.Or(one.failed, err)); one.err != nil {
				one.err = explain(ctx, "standings", one.err)
				first = one.err
			} else if one.state != nil && one.state.Err() != nil {
				r.trips.noteBare(one.q.Board)
			}
		}
		return first
	})
	for _, one := range asks {
		close(one.done)
	}
}

func (one *ask) queue(ctx context.Context, p redis.Pipeliner) {
	key := one.keys[0]
	one.ranks, one.scores, one.all, one.state = nil, nil, nil, nil // of an attempt before
	for _, m := range one.q.Members {
		rank, score := zRank(ctx, p, key, m, one.q.Order), p.ZScore(ctx, key, m)
		one.ranks, one.scores, one.all = append(one.ranks, rank), append(one.scores, score), append(one.all, rank, score)
	}
	one.all = append(one.all, p.ZCard(ctx, key))
	if len(one.keys) > 1 {
		one.state = p.Get(ctx, one.keys[1])
		one.all = append(one.all, one.state)
	}
}

// finish sets the answer; failed is the first error of the transaction, which may be another's.
func (one *ask) finish(total TotalSource, at time.Time, failed error) error {
	if err := firstError(one.all, redis.Nil); err != nil {
		return err
	}
	members, ok := one.all[2*len(one.q.Members)].(*redis.IntCmd)
	if !ok || members.Err() != nil { // it never was sent
		return failed
	}
	var value any
	if one.state != nil && one.state.Err() == nil {
		value = one.state.Val()
	}
	stamp, err := total.stampOf(one.keys[len(one.keys)-1], value, int(members.Val()), at)
	if err != nil {
		return err
	}
	one.a.Begin(one.q, rankcache.SourceRedis, stamp, stamp.At)
	return setStandings(one.keys[0], one.a.Own, one.ranks, one.scores)
}
