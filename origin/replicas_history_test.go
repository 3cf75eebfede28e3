package origin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// story is a board whose rows follow from its seq: change n gives member n%10 the score n. It knows when each change was acknowledged.
type story struct {
	*testing.T
	id     rankcache.BoardID
	client redis.UniversalClient // of the primary

	mu   sync.Mutex
	done []time.Time // of change n
}

func storyRow(n int) rankcache.Entry {
	return rankcache.Entry{Member: fmt.Sprint("m", n%10), Score: float64(n)}
}

// write makes the next change, however often it takes.
func (s *story) write(ctx context.Context) {
	n := len(s.done) // nobody else writes
	var rows []redis.Z
	for i := max(n-9, 0); i <= n; i++ {
		rows = append(rows, redis.Z{Member: storyRow(i).Member, Score: float64(i)})
	}
	names := wire.DefaultNames()
	for ctx.Err() == nil {
		_, err := s.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.ZAdd(ctx, names.BoardKey(s.id), rows[len(rows)-1])
			p.Set(ctx, names.MetaKey(s.id), testkit.Meta(testRun, uint64(n), rows), 0)
			return nil
		})
		if err == nil {
			s.mu.Lock()
			s.done = append(s.done, time.Now())
			s.mu.Unlock()
			return
		}
	}
}

// since returns the latest change that was acknowledged before a time.
func (s *story) since(at time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.done) - 1
	for n >= 0 && !s.done[n].Before(at) {
		n--
	}
	return n
}

// judge returns what is wrong with an answer to q, which was asked at a time.
func (s *story) judge(q *rankcache.Query, a *rankcache.Answer, asked time.Time) error {
	n, current := int(a.Seq), asked
	if a.Lags {
		current = a.CurrentAt
	}
	switch {
	case a.Run != testRun || n < s.since(current):
		return fmt.Errorf("run %d, change %d, where %d was there", a.Run, n, s.since(current))
	case a.Seq < q.MinState.Seq:
		return fmt.Errorf("change %d, back from %d", n, q.MinState.Seq)
	case a.Lags && (q.Primary || q.MaxAge != 0 && current.Before(asked.Add(-q.MaxAge))):
		return fmt.Errorf("%v old, or of a replica", asked.Sub(current))
	case a.Members != 10 || len(a.Entries) != q.Limit || len(a.Own) != len(q.Members):
		return fmt.Errorf("%d members, %d rows, %d own", a.Members, len(a.Entries), len(a.Own))
	}
	for i, e := range a.Entries {
		if e != storyRow(n-i) {
			return fmt.Errorf("row %d is %v", i, e)
		}
	}
	for _, o := range a.Own {
		if row := storyRow(n - o.Rank + 1); o.Member != row.Member || o.Score != row.Score {
			return fmt.Errorf("%+v at change %d", o, n)
		}
	}
	return nil
}

// reader asks queries of all kinds, and counts who has answered.
func (s *story) read(ctx context.Context, from rankcache.Reader, random *rand.Rand, counts chan<- string) {
	var last rankcache.State
	for ctx.Err() == nil {
		qs := make([]rankcache.Query, 1+random.IntN(2))
		for i := range qs {
			qs[i] = rankcache.Query{Board: s.id, Limit: random.IntN(11), Primary: random.IntN(20) == 0}
			if qs[i].Limit == 0 || random.IntN(2) == 0 {
				qs[i].Members = []string{fmt.Sprint("m", random.IntN(10))}
			}
			if random.IntN(3) > 0 {
				qs[i].MinState = last
			}
			if random.IntN(4) == 0 {
				qs[i].MaxAge = time.Duration(1+random.IntN(1000)) * time.Millisecond
			}
		}
		as, asked := make([]rankcache.Answer, len(qs)), time.Now()
		from.Read(ctx, qs, as)
		for i := range as {
			by := "primary"
			switch a := &as[i]; {
			case a.Err != nil:
				if by = "nobody"; ctx.Err() == nil && !errors.Is(a.Err, rankcache.ErrUnavailable) {
					s.Errorf("%+v: %v", qs[i], a.Err)
				}
			default:
				if err := s.judge(&qs[i], a, asked); err != nil {
					s.Errorf("%+v: of a replica: %v: %v", qs[i], a.Lags, err)
				}
				if a.Lags {
					by = "replica"
				}
				last = a.State
			}
			select {
			case counts <- by:
			case <-ctx.Done():
			}
		}
	}
}

// TestHistoriesOfReplica: whatever becomes of a replica, each answer is one that the primary gave at its time, or is the primary's own.
func TestHistoriesOfReplica(t *testing.T) {
	t.Parallel()
	steps, seed := 40, uint64(time.Now().UnixNano())
	if testkit.Full() {
		steps = 300
	}
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	durable := servers.RedisOptions{Args: []string{"--repl-diskless-sync-delay", "0", "--enable-debug-command", "local", "--appendonly", "yes", "--appendfsync", "always"}}
	master, replica, middle, other := testkit.StartRedis(t, durable), startReplicating(t), startReplicating(t), startReplicating(t)
	dial := func(s *servers.Redis, role string) redis.UniversalClient {
		return dialed(t, Options{URL: "redis://" + s.Addr(), Role: role, Timeout: time.Second})
	}
	near, far, between, stranger := dial(master, ""), dial(replica, RoleRead), dial(middle, RoleRead), dial(other, "")
	s := &story{T: t, id: "1_2_3", client: near}
	for range 10 {
		s.write(t.Context())
	}
	spoil := func(client redis.UniversalClient) { // a board of the same name, with a time of its own
		_ = client.Set(t.Context(), writtenKey, time.Now().UnixMicro(), 0).Err()
		_ = client.ZAdd(t.Context(), string(s.id), redis.Z{Member: "m1", Score: 1e9}).Err()
	}
	spoil(stranger)
	follow := func(client redis.UniversalClient, to *servers.Redis) {
		host, port, _ := net.SplitHostPort(to.Addr())
		_ = client.Do(t.Context(), "REPLICAOF", host, port).Err()
	}
	cut := func() { _ = far.Do(t.Context(), "REPLICAOF", "127.0.0.1", "1").Err() }
	follow(between, master)
	follow(far, master)
	reads := NewReplicas(New(near, wire.DefaultNames(), WithTimeout(time.Second)), dial(replica, RoleRead), writtenKey, slog.New(slog.DiscardHandler), prometheus.NewRegistry())

	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	var keeping sync.Mutex // held while there is no keeper
	counts := make(chan string)
	always := func(do func()) {
		all.Go(func() {
			for ctx.Err() == nil {
				do()
				select {
				case <-time.After(20 * time.Millisecond):
				case <-ctx.Done():
				}
			}
		})
	}
	always(func() { s.write(ctx) })
	var looks atomic.Int64
	always(func() { reads.Look(ctx); looks.Add(1) })
	always(func() {
		keeping.Lock()
		defer keeping.Unlock()
		if now, err := near.Time(ctx).Result(); err == nil {
			_ = near.Set(ctx, writtenKey, now.UnixMicro(), 0).Err()
		}
	})
	for i := range 2 {
		all.Go(func() { s.read(ctx, reads, rand.New(rand.NewPCG(seed, uint64(10+i))), counts) })
	}
	answered := make(map[string]int)
	pass := func(n int64) { // has the board be read until the replica was looked at so often
		for end := looks.Load() + n; looks.Load() < end; {
			answered[<-counts]++
		}
	}
	events := []func(){
		cut,
		func() { follow(far, master) },
		func() { follow(far, master) },
		func() { // a full synchronization
			cut()
			_ = near.Do(ctx, "DEBUG", "CHANGE-REPL-ID").Err()
			follow(far, master)
		},
		func() {
			_ = far.Do(ctx, "REPLICAOF", "NO", "ONE").Err()
			if random.IntN(2) == 0 {
				spoil(far)
			}
		},
		func() { follow(far, other) },
		func() { follow(far, middle) },
		func() { // a chain that is held up
			if follow(far, middle); middle.Pause() == nil {
				pass(5)
				_ = middle.Resume()
			}
		},
		func() { // no keeper, whose time is of an hour ago
			keeping.Lock()
			defer keeping.Unlock()
			_ = near.Set(ctx, writtenKey, time.Now().Add(-time.Hour).UnixMicro(), 0).Err()
			pass(5)
		},
		func() { // the primary is away, and comes back with all that it had and a new history
			follow(far, master)
			pass(10)
			if err := master.Kill(); err != nil {
				t.Error(err)
			}
			pass(5)
			if err := master.Restart(ctx); err != nil {
				t.Error(err)
			}
		},
	}
	for range steps {
		events[random.IntN(len(events))]()
		pass(3)
	}
	follow(far, master)
	before := answered["replica"]
	testkit.Eventually(t, testTimeout, func() error { // whatever was before, it is read in the end
		if answered[<-counts]++; answered["replica"] == before {
			return fmt.Errorf("%+v", reads.State())
		}
		return nil
	})
	alone := testutil.ToFloat64(reads.answers.WithLabelValues("replica", string(reasonAlone)))
	cancel()
	all.Wait()
	t.Logf("%d events, answers by: %v, %v of the replica while the primary was away; changes: %d", steps, answered, alone, len(s.done))
}
