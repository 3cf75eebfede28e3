package origin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/lab/servers"
	"rankcache/internal/masters"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// several is many boards on several masters, and what reads them from their replicas.
type several struct {
	*testing.T
	*Origin
	near   *redis.ClusterClient
	reads  *Replicas
	boards []rankcache.BoardID
}

func newSeveral(t *testing.T, near, far Options) *several {
	near.Timeout, far.Timeout, far.Role = testTimeout, testTimeout, RoleRead
	s := &several{T: t, near: dialed(t, near).(*redis.ClusterClient)}
	s.Origin = New(s.near, wire.DefaultNames(), WithTimeout(testTimeout))
	s.reads = NewReplicas(s.Origin, dialed(t, far), writtenKey, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	for i := range 30 {
		b := board{s.Origin, s.near, rankcache.BoardID(fmt.Sprintf("1_2_%d", i))}
		b.fill(t, 100+i, abc...)
		s.boards = append(s.boards, b.id)
	}
	return s
}

// tick writes the time that a keeper would have written on each master some time ago.
func (s *several) tick(ago time.Duration) error {
	parts, err := masters.Parts(s.Context(), s.near)
	for _, p := range parts {
		err = errors.Join(err, s.near.Set(s.Context(), wire.MasterWrittenKey(p.Tag), time.Now().Add(-ago).UnixMicro(), 0).Err())
	}
	return err
}

// awaitUsed waits until the replicas of some masters are read.
func (s *several) awaitUsed(n, of int) {
	s.Helper()
	testkit.Eventually(s.T, testTimeout, func() error {
		s.reads.askedAt = time.Time{}
		if err := s.tick(0); err != nil {
			return err
		}
		used, all := 0, s.reads.Look(s.Context()).Parts
		for _, p := range all {
			if p.Used {
				used++
			}
		}
		if used != n || len(all) != of {
			return fmt.Errorf("%d of %d masters have a replica that is read, want %d of %d: %+v", used, len(all), n, of, all)
		}
		return nil
	})
}

// awaitAnswers reads all boards, at once and one by one, until this many are answered by replicas. All answers must be right.
func (s *several) awaitAnswers(least, most int) {
	s.Helper()
	testkit.Eventually(s.T, testTimeout, func() error {
		qs, as := make([]rankcache.Query, len(s.boards)), make([]rankcache.Answer, len(s.boards))
		for i, id := range s.boards {
			qs[i] = rankcache.Query{Board: id, Limit: 50, Members: []string{"b"}}
		}
		s.reads.Read(s.Context(), qs, as)
		lag := 0
		for i := range as {
			q := rankcache.Query{Board: s.boards[i], Limit: 50, MinSeq: uint64(100 + i)}
			one := rankcache.One(s.Context(), s.reads, q)
			for _, a := range []*rankcache.Answer{&as[i], &one} {
				if a.Err != nil {
					return a.Err
				}
				equal(s.T, string(s.boards[i]), a.Entries, desc)
				equal(s.T, "state", []any{a.Seq, a.Members}, []any{uint64(100 + i), 5})
			}
			equal(s.T, "own", as[i].Own[0].Rank, 3)
			if as[i].Lags && one.Lags {
				lag++
			}
		}
		if lag < least || lag > most {
			return fmt.Errorf("replicas answered about %d boards, want %d to %d: %+v", lag, least, most, s.reads.State())
		}
		return nil
	})
}

// onPrimary returns how many answers the primaries gave for a reason.
func (s *several) onPrimary(why reason) float64 {
	return testutil.ToFloat64(s.reads.answers.WithLabelValues("primary", string(why)))
}

// Each instance has a replica of its own, with its own age.
func TestReplicasOfInstances(t *testing.T) {
	t.Parallel()
	var all, copies []*servers.Redis
	var addrs, of []string
	for range 3 {
		all, copies = append(all, startReplicating(t)), append(copies, startReplicating(t))
		last := len(all) - 1
		must(t, copies[last].Do(t.Context(), "REPLICAOF", strings.Split(all[last].Addr(), ":")[0], strings.Split(all[last].Addr(), ":")[1]))
		addrs, of = append(addrs, all[last].Addr()), append(of, copies[last].Addr())
	}
	s := newSeveral(t, instancesOf(addrs...), instancesOf(of...))
	s.awaitAnswers(0, 0) // nothing is known
	equal(t, "reason", s.reads.State().Reason, string(reasonStart))
	s.awaitUsed(3, 3)
	s.awaitAnswers(30, 30)
	equal(t, "slots", s.reads.State().Parts[0].Slots, "0-5460")

	must(t, copies[1].Kill())
	s.awaitUsed(2, 3)
	s.awaitAnswers(10, 29)
	if state := s.reads.State(); state.Used || state.Reason != string(reasonAway) {
		t.Errorf("%+v", state)
	}

	wrong := newSeveral(t, instancesOf(addrs...), instancesOf(of[2], of[0], of[1]))
	wrong.awaitUsed(0, 3)
	wrong.awaitAnswers(0, 0)
}

// The replicas of a cluster are read that it names, also when slots move and one of them takes over.
func TestReplicasOfCluster(t *testing.T) {
	t.Parallel()
	c := testkit.StartRedisCluster(t, servers.ClusterOptions{})
	at := Options{URL: "redis://" + c.Nodes[0].Addr(), Mode: ModeCluster}
	s := newSeveral(t, at, at)
	s.awaitAnswers(0, 0)
	s.awaitUsed(3, 3)
	for _, n := range c.Nodes[:3] {
		must(t, n.Do(t.Context(), "CONFIG", "RESETSTAT"))
	}
	s.awaitAnswers(30, 30)
	must(t, s.near.ForEachMaster(t.Context(), func(ctx context.Context, node *redis.Client) error {
		if stats := node.Info(ctx, "commandstats").Val(); strings.Contains(stats, "cmdstat_z") || strings.Contains(stats, "cmdstat_eval") {
			return fmt.Errorf("a master was asked: %s", stats)
		}
		return nil
	}))
	for _, q := range []rankcache.Query{{Limit: 5, MinSeq: 1000}, {Members: []string{"a"}, Trimmed: true}, {Limit: 5, Primary: true}} {
		q.Board = s.boards[0]
		if a := rankcache.One(t.Context(), s.reads, q); a.Err != nil || a.Lags {
			t.Errorf("%+v: %+v", q, a)
		}
	}

	// Slots that move to another master: those who have not heard of it ask the primary.
	to, err := c.OtherMaster(t.Context(), string(s.boards[0]))
	must(t, err)
	_, err = c.MoveSlot(t.Context(), string(s.boards[0]), to, 10)
	must(t, err)
	s.awaitAnswers(29, 30)
	s.awaitUsed(3, 3)
	s.awaitAnswers(30, 30)
	if s.onPrimary(reasonMoved)+s.onPrimary(reasonMissing) == 0 {
		t.Error("no answer has told of the slot that moved")
	}
	// One that has but one of a board's two keys.
	must(t, s.near.Del(t.Context(), s.Origin.reader.names.MetaKey(s.boards[0])).Err())
	testkit.Eventually(t, testTimeout, func() error {
		if a := rankcache.One(t.Context(), s.reads, rankcache.Query{Board: s.boards[0], Limit: 5}); a.Err != nil || a.Seq != 0 || a.Lags {
			return fmt.Errorf("%+v", a)
		}
		return nil
	})
	board{s.Origin, s.near, s.boards[0]}.setMeta(t, testRun, 100)

	// A master dies, and its replica takes over: the others' are read as before.
	dead, err := c.Master(t.Context(), string(s.boards[1]))
	must(t, err)
	must(t, dead.Replicated(t.Context()))
	must(t, dead.Kill())
	s.awaitUsed(2, 3)
	s.awaitAnswers(10, 29)
}

// TestHistoriesOfClusterReplicas: a board's slot moves between masters and back while it is written and read.
func TestHistoriesOfClusterReplicas(t *testing.T) {
	t.Parallel()
	testkit.FullOnly(t, "moves a slot hundreds of times")
	c := testkit.StartRedisCluster(t, servers.ClusterOptions{})
	at := Options{URL: "redis://" + c.Nodes[0].Addr(), Mode: ModeCluster}
	m := newSeveral(t, at, at)
	s := &story{T: t, id: "7_8_9", client: m.near}
	for range 10 {
		s.write(t.Context())
	}
	m.awaitUsed(3, 3)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	var looks atomic.Int64
	counts := make(chan string)
	for _, do := range []func(){func() { s.write(ctx) }, func() { m.reads.Look(ctx); looks.Add(1) }, func() { _ = m.tick(0) }} {
		all.Go(func() {
			for ctx.Err() == nil {
				do()
				select {
				case <-time.After(10 * time.Millisecond):
				case <-ctx.Done():
				}
			}
		})
	}
	for i := range 2 {
		all.Go(func() { s.read(ctx, m.reads, rand.New(rand.NewPCG(seed, uint64(10+i))), counts) })
	}
	answered := make(map[string]int)
	for range 200 {
		to, moved := c.Nodes[random.IntN(3)], make(chan error, 1)
		if from, err := c.Master(ctx, string(s.id)); err != nil || from == to {
			continue
		}
		go func() {
			_, err := c.MoveSlot(ctx, string(s.id), to, 1)
			moved <- err
		}()
		for end := looks.Load() + 10; looks.Load() < end || len(moved) == 0; {
			answered[<-counts]++
		}
		must(t, <-moved)
	}
	cancel()
	all.Wait()
	t.Logf("answers by: %v; changes: %d; moved: %v, missing: %v", answered, len(s.done), m.onPrimary(reasonMoved), m.onPrimary(reasonMissing))
}
