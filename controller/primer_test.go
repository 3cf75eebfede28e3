package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/class"
	"rankcache/internal/lab/servers"
	"rankcache/internal/masters"
	"rankcache/internal/testkit"
	"rankcache/rooms"
	"rankcache/wire"
)

const rollingFile = `classes:
- {name: day, board: "NAME:{zone}:{period}", period: day, grace: 5s, keep: 240h, ops: [incr], ties: first}
- {name: roll, board: "NAMEr:{zone}:{period}", rolling: {of: day, last: 3}}
`

// priming is a primer with a board of the running day and those of the days before it, on a Redis of its own.
type priming struct {
	*fixture
	primer    *primer
	day, roll *rooms.Class
	today     class.Board
	next      class.Board   // the rolling board of tomorrow
	sources   []class.Board // the days whose sums it is given
}

func newPriming(t *testing.T) *priming {
	t.Helper()
	return newPrimingOn(t, testkit.Kfake(t).Addr(), map[string]string{}, func(*Options) {})
}

func newPrimingOn(t *testing.T, broker string, settings map[string]string, change func(*Options)) *priming {
	t.Helper()
	server := testkit.StartRedis(t, servers.RedisOptions{Args: []string{"--enable-debug-command", "yes"}})
	var name string
	f := newFixture(t, broker, settings, func(o *Options) {
		o.Redis = client(t, server.Addr())
		change(o)
		name = strings.TrimSuffix(o.Names.Ends, "-ends")
		file, err := rooms.Parse([]byte(strings.ReplaceAll(rollingFile, "NAME", name)))
		must(t, err)
		o.Tiers = &tiers{file: file}
	})
	file := f.opts.Tiers.File()
	f.tiers = &tiers{file: file}
	p := &priming{fixture: f, primer: newPrimer(f.Controller, f.kafka), day: file.Class("day"), roll: file.Class("roll")}
	now := p.primer.now()
	dims := map[string]string{"zone": "7"}
	at := func(c *rooms.Class, b func(class.Board) (class.Board, error)) class.Board {
		board, err := c.At(dims, now)
		must(t, err)
		board, err = b(board)
		must(t, err)
		return board
	}
	p.today = at(p.day, func(b class.Board) (class.Board, error) { return b, nil })
	p.next = at(p.roll, class.Board.Next)
	periods, err := p.roll.Sources(p.next.Period)
	must(t, err)
	for _, period := range periods {
		b, err := p.day.In(dims, period)
		must(t, err)
		p.sources = append(p.sources, b)
	}
	must(t, f.redis.ZAdd(t.Context(), f.opts.Names.Ends, redis.Z{Score: float64(p.today.Period.End.UnixMilli()), Member: string(p.today.ID)}).Err())
	f.place(t, f.era(t), "", 1000, 1000)
	return p
}

// make makes a board with scores, whose life has come so far.
func (p *priming) make(t *testing.T, b rankcache.BoardID, life wire.Life, scores map[string]float64) {
	t.Helper()
	m := wire.Meta{Life: life, State: rankcache.State{Run: 1, Seq: 2, HasSum: true}, Members: uint64(len(scores)), Buckets: 2, Era: p.era(t)}
	for member, score := range scores {
		m.Sum = (m.Sum + wire.Hash(member, score)) & wire.SumMask
		must(t, p.redis.ZAdd(t.Context(), string(b), redis.Z{Score: score, Member: member}).Err())
	}
	must(t, p.redis.Set(t.Context(), p.opts.Names.MetaKey(b), wire.AppendMeta(nil, &m), 0).Err())
}

// of returns the digest of the days as they are.
func (p *priming) of(t *testing.T) string {
	t.Helper()
	sums := make(map[rankcache.BoardID]uint64)
	for _, b := range p.sources {
		m, found, err := metaOf(p.redis.Get(t.Context(), p.opts.Names.MetaKey(b.ID)))
		must(t, err)
		if found {
			sums[b.ID] = m.Sum
		}
	}
	return wire.PrimesOf(sums)
}

// look has the primer look once, and returns what it waits for.
func (p *priming) look(t *testing.T) string {
	t.Helper()
	must(t, p.primer.look(t.Context()))
	return p.Status().PrimesWaitFor
}

// apply does what the writers do with primes: the rolling board has them, and was whole at its birth.
func (p *priming) apply(t *testing.T, whole string, primes map[string]float64) {
	t.Helper()
	p.make(t, p.next.ID, wire.LifeOpen, primes)
	for bucket := range 2 {
		must(t, p.redis.HSet(t.Context(), p.opts.Names.OrdersKey(p.next.ID, wire.PrimeSet, bucket), "", whole).Err())
	}
	p.applyOrders(t, slices.Collect(maps.Keys(primes))...)
}

// applyOrders notes primes of the days as they are as applied.
func (p *priming) applyOrders(t *testing.T, members ...string) {
	t.Helper()
	for _, member := range members {
		order := wire.PrimeOrder(p.next.Period.Tag, p.of(t), member)
		must(t, p.redis.HSet(t.Context(), p.opts.Names.OrdersKey(p.next.ID, wire.PrimeSet, wire.OrderBucket(order, 2)), wire.OrderField(order), "x").Err())
	}
}

// records returns the primes that the topic of commands has.
func (p *priming) records(t *testing.T, n int) map[string]float64 {
	t.Helper()
	got := make(map[string]float64)
	for _, r := range testkit.Records(t, p.broker, p.opts.Names.Commands, n) {
		if wire.IsMarker(r.Value) {
			continue
		}
		var prime struct {
			Member string
			Delta  float64
		}
		must(t, json.Unmarshal(r.Value, &prime))
		if want := wire.Prime(p.next.ID, p.next.Period.Tag, p.of(t), prime.Member, prime.Delta, p.today.Period.Start.UnixMilli()); string(r.Value) != string(want) {
			t.Errorf("got %s, want %s", r.Value, want)
		}
		got[prime.Member] = prime.Delta
	}
	return got
}

func (p *priming) metaOfNext(t *testing.T) (m wire.Meta) {
	t.Helper()
	m, _, err := metaOf(p.redis.Get(t.Context(), p.opts.Names.MetaKey(p.next.ID)))
	must(t, err)
	return m
}

// What the days that are closed give is sent, a member once, without the tie-breaks; and the board is marked once it has
// all of that.
func TestPriming(t *testing.T) {
	p := newPriming(t)
	p.make(t, p.sources[0].ID, wire.LifeClosed, map[string]float64{"a": 3.5, "b": 2})
	m, _, err := metaOf(p.redis.Get(t.Context(), p.opts.Names.MetaKey(p.sources[0].ID)))
	must(t, err)
	m.HasHidden = true
	must(t, p.redis.Set(t.Context(), p.opts.Names.MetaKey(p.sources[0].ID), wire.AppendMeta(nil, &m), 0).Err())
	must(t, p.redis.HSet(t.Context(), p.opts.Names.CompanionKey(p.sources[0].ID, wire.Hidden), "", "", "c", "7 4.25", "d", "8 -", "b", "9").Err())
	waits := func(want string) {
		t.Helper()
		if got := p.look(t); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("waits for %q, want %q in it", got, want)
		}
	}
	waits("") // primes of one day: the other one has no board, as nobody has changed it
	want := map[string]float64{"a": 3, "b": 2, "c": 4}
	const markers = 2
	if got := p.records(t, markers+len(want)); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if p.metaOfNext(t).Buckets != 0 {
		t.Error("the controller has made a board")
	}

	p.apply(t, wire.Whole, map[string]float64{"a": 3})
	waits("has 1 primes, want 3")
	if got := p.records(t, markers+len(want)+2); !maps.Equal(got, want) { // those of b and c again
		t.Errorf("got %v, want %v", got, want)
	}
	p.apply(t, wire.Whole, want)
	waits("")
	if m := p.metaOfNext(t); !m.Primed || !m.HasSum || m.Seq != 2 {
		t.Errorf("meta %+v", m)
	}
	if n := p.redis.Exists(t.Context(), p.opts.Names.OrdersKey(p.next.ID, wire.PrimeSet, 0), p.opts.Names.OrdersKey(p.next.ID, wire.PrimeSet, 1)).Val(); n != 0 {
		t.Errorf("%d hashes of primes are left", n)
	}
	waits("")
}

// A board is not marked before all that it sums up is known to be there, and for ever if it can't be.
func TestPrimingWaits(t *testing.T) {
	want := map[string]float64{"a": 3, "b": 2}
	for name, c := range map[string]struct {
		change func(t *testing.T, p *priming)
		waits  string
	}{
		"a day is not closed": {func(t *testing.T, p *priming) { p.make(t, p.sources[0].ID, wire.LifeClosing, want) }, "is not closed"},
		"a day is adopted": {func(t *testing.T, p *priming) {
			must(t, p.redis.SetRange(t.Context(), p.opts.Names.MetaKey(p.sources[0].ID), 1, string(rune(wire.LifeClosed|0x30))).Err())
		}, "is not closed"},
		"a day may have expired": {func(t *testing.T, p *priming) {
			must(t, p.redis.Del(t.Context(), p.opts.Names.MetaKey(p.sources[0].ID)).Err())
			p.day.Keep = time.Hour // which was longer
		}, "may have expired"},
		"a row was changed": {func(t *testing.T, p *priming) {
			must(t, p.redis.ZIncrBy(t.Context(), string(p.sources[0].ID), 1, "a").Err())
		}, "don't add up"},
		"the board lacks changes": {func(t *testing.T, p *priming) { p.apply(t, "", want) }, "lacks increments of before its birth"},
		"the board was changed by hand": {func(t *testing.T, p *priming) {
			p.apply(t, wire.Whole, want)
			must(t, p.redis.ZRem(t.Context(), string(p.next.ID), "a").Err())
		}, "can't be marked as primed: w"},
		"a prime is not applied": {func(t *testing.T, p *priming) { p.apply(t, wire.Whole, map[string]float64{"a": 3}) }, "has 1 primes, want 2"},
		"a day was rebuilt with another score between two passes": {func(t *testing.T, p *priming) {
			p.apply(t, wire.Whole, want)
			p.make(t, p.sources[0].ID, wire.LifeClosed, map[string]float64{"a": 4, "b": 2})
			p.applyOrders(t, "a", "b")
		}, "has 4 primes, want 2"},
		"the writers are behind": {func(t *testing.T, p *priming) { p.apply(t, wire.Whole, nil); p.place(t, p.era(t), "", 0, 0) }, "behind the mark"},
		"Redis has another history": {func(t *testing.T, p *priming) {
			p.apply(t, wire.Whole, want)
			must(t, p.redis.Do(t.Context(), "DEBUG", "CHANGE-REPL-ID").Err())
		}, "since the last failover"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPriming(t)
			p.make(t, p.sources[0].ID, wire.LifeClosed, want)
			c.change(t, p)
			err := p.primer.look(t.Context())
			if got := fmt.Sprint(err, " ", p.Status().PrimesWaitFor); !strings.Contains(got, c.waits) {
				t.Errorf("got %s, want %q in it", got, c.waits)
			}
			if p.metaOfNext(t).Primed {
				t.Error("the board is marked")
			}
		})
	}
}

// A controller whose clock is wrong sends nothing and marks nothing, whichever way it is wrong; with the right time it goes on.
func TestWrongClockPrimesNothing(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"ahead of": time.Hour, "behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPrimingOn(t, testkit.Kfake(t).Addr(), map[string]string{}, func(o *Options) { o.Now, o.Every = nil, 10*time.Millisecond })
			want := map[string]float64{"a": 3, "b": 2}
			p.make(t, p.sources[0].ID, wire.LifeClosed, want)
			p.apply(t, wire.Whole, map[string]float64{"a": 3})
			var off atomic.Int64
			off.Store(int64(ahead))
			p.clock.Local = func() time.Time { return time.Now().Add(time.Duration(off.Load())) }
			ctx, cancel := context.WithCancel(t.Context())
			var run sync.WaitGroup
			run.Go(func() { p.primer.run(ctx) })
			defer run.Wait()
			defer cancel()
			testkit.Eventually(t, testTimeout, func() error {
				if text := p.Status().Error; !strings.Contains(text, name+" that of Redis") {
					return errors.New("the status tells " + text)
				}
				return nil
			})
			p.applyOrders(t, "b") // so that it could be marked
			must(t, p.redis.ZAdd(t.Context(), string(p.next.ID), redis.Z{Score: 2, Member: "b"}).Err())
			p.make(t, p.next.ID, wire.LifeOpen, want)
			off.Store(int64(ahead) + int64(time.Second)) // it is asked again
			must(t, p.clock.Compare(t.Context(), 0))
			if n := testutil.ToFloat64(p.metrics.primes); n != 0 || p.metaOfNext(t).Primed {
				t.Errorf("%v primes are sent, meta %+v", n, p.metaOfNext(t))
			}
			off.Store(0)
			testkit.Eventually(t, testTimeout, func() error {
				if m := p.metaOfNext(t); !m.Primed {
					return fmt.Errorf("%+v, waits for %s", m, p.Status().PrimesWaitFor)
				}
				return nil
			})
		})
	}
}

// A partition of the command topic has no leader, from the middle of priming on: the board stays incomplete until it has one again,
// and then has each prime once.
func TestPrimingWithoutALeader(t *testing.T) {
	testkit.FullOnly(t, "three brokers")
	cluster := testkit.StartKafkaCluster(t, 3, nil)
	p := newPrimingOn(t, strings.Join(cluster.Addrs(), ","), brokersTime, func(o *Options) {
		o.PrimeRate = 500
		o.Kafka["message.timeout.ms"] = "3000"
	})
	must(t, p.redis.Del(t.Context(), p.opts.Names.AppliedKey(masters.Tag(0))).Err())
	want := make(map[string]float64)
	for n := range 2500 {
		want[fmt.Sprint("m", n)] = float64(n + 1)
	}
	p.make(t, p.sources[0].ID, wire.LifeClosed, want)
	p.write(t)
	looked := make(chan error, 1)
	looks := func() { looked <- p.primer.look(t.Context()) }
	testkit.Eventually(t, testTimeout, func() error { // until the writer has its positions
		go looks()
		testkit.Eventually(t, testTimeout, func() error {
			if len(looked) > 0 || p.redis.ZCard(t.Context(), string(p.next.ID)).Val() > 0 {
				return nil
			}
			return errors.New("it looks")
		})
		if len(looked) > 0 {
			return errors.Join(<-looked, errors.New(p.Status().PrimesWaitFor))
		}
		return nil
	})
	leader, err := cluster.Leader(t.Context(), p.opts.Names.Commands, 1)
	must(t, err)
	must(t, leader.Kill())
	if err := <-looked; err == nil && p.Status().PrimesWaitFor == "" {
		t.Error("the look without the leader waits for nothing")
	}
	check := func() error {
		rows, err := p.redis.ZRangeWithScores(t.Context(), string(p.next.ID), 0, -1).Result()
		must(t, err)
		for _, row := range rows {
			if row.Score != want[row.Member.(string)] {
				t.Fatalf("%v, want %v", row, want[row.Member.(string)])
			}
		}
		if !p.metaOfNext(t).Primed {
			return fmt.Errorf("incomplete with %d members: %s", len(rows), p.Status().PrimesWaitFor)
		}
		equalLen(t, len(rows), len(want))
		return nil
	}
	_ = p.primer.look(t.Context())
	if check() == nil {
		t.Error("the board is marked while a partition has no leader")
	}
	t.Log(check())
	must(t, leader.Restart(t.Context()))
	testkit.Eventually(t, testTimeout, func() error { return errors.Join(p.primer.look(t.Context()), check()) })
}

func equalLen(t *testing.T, got, want int) {
	t.Helper()
	if got != want {
		t.Fatalf("%d members, want %d", got, want)
	}
}
