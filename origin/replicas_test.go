package origin

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"strings"
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

const writtenKey = "{rankcache:states:default}:written"

// pair is a board on a master, and what reads it from a replica of that.
type pair struct {
	board
	*testing.T
	reads           *Replicas
	master, replica *servers.Redis
	far             *redis.Client // of the replica
}

func newPair(t *testing.T) *pair { return newPairIn(t, 0) }

// newPairIn has the board in a database of this number.
func newPairIn(t *testing.T, db int) *pair {
	t.Helper()
	p := &pair{T: t, master: startReplicating(t), replica: startReplicating(t)}
	client := dialed(t, Options{URL: fmt.Sprintf("redis://%s/%d", p.master.Addr(), db), Timeout: testTimeout})
	p.board = board{New(client, wire.DefaultNames(), WithTimeout(testTimeout)), client, "1_2_3"}
	p.far = redis.NewClient(&redis.Options{Addr: p.replica.Addr(), Protocol: 2, DB: db})
	t.Cleanup(func() { p.far.Close() })
	p.reads = p.readOf(fmt.Sprintf("%s/%d", p.replica.Addr(), db))
	p.fill(t, 917, abc...)
	p.follow(p.master.Addr())
	p.tick(0)
	p.awaitState("")
	return p
}

// readOf returns what reads from the server at an address beside the master.
func (p *pair) readOf(addr string) *Replicas {
	client := dialed(p.T, Options{URL: "redis://" + addr, Role: RoleRead, Timeout: testTimeout})
	return NewReplicas(p.board.Origin, client, writtenKey, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
}

func (p *pair) follow(addr string) {
	p.Helper()
	host, port, _ := net.SplitHostPort(addr)
	must(p.T, p.far.ReplicaOf(p.Context(), host, port).Err())
}

// tick writes the time that a keeper would have written some time ago.
func (p *pair) tick(ago time.Duration) {
	p.Helper()
	now, err := p.client.Time(p.Context()).Result()
	must(p.T, err)
	must(p.T, p.client.Set(p.Context(), writtenKey, now.Add(-ago).UnixMicro(), 0).Err())
}

// awaitState looks until the primary is read for a reason; "": the replica is read.
func (p *pair) awaitState(want reason) {
	p.Helper()
	testkit.Eventually(p.T, testTimeout, func() error {
		if want == "" {
			p.tick(0)
		}
		p.reads.Look(p.Context())
		if s := p.reads.State(); s.Reason != string(want) || s.Used != (want == "" || want == reasonAlone) {
			return fmt.Errorf("want %q, got %+v", want, s)
		}
		return nil
	})
}

// awaitSync waits until the replica has all that the master has.
func (p *pair) awaitSync() {
	p.Helper()
	p.tick(0)
	want := p.client.Get(p.Context(), writtenKey).Val()
	testkit.Eventually(p.T, testTimeout, func() error {
		if got := p.far.Get(p.Context(), writtenKey).Val(); got != want {
			return fmt.Errorf("the replica has %s, the master %s", got, want)
		}
		return nil
	})
}

// read reads the board from either, and checks who has answered.
func (p *pair) read(by string, why reason, q rankcache.Query) rankcache.Answer {
	p.Helper()
	q.Board = "1_2_3"
	counter := p.reads.answers.WithLabelValues(by, string(why))
	before := testutil.ToFloat64(counter)
	a := rankcache.One(p.Context(), p.reads, q)
	must(p.T, a.Err)
	if a.Lags != (by == "replica") || testutil.ToFloat64(counter) != before+1 {
		p.Fatalf("%+v: want an answer of the %s (%s), got one of a replica: %v", q, by, why, a.Lags)
	}
	return a
}

var page = rankcache.Query{Limit: 50}

// A replica gives the answers of the primary, which is not asked, with their age by what the keeper wrote.
func TestReplicaAnswersAlike(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.awaitSync()
	written, err := wire.ParseWritten(p.client.Get(t.Context(), writtenKey).Val())
	must(t, err)
	for _, q := range []rankcache.Query{page, {Members: []string{"a", "none"}}, {Limit: 2, Members: []string{"c"}, Around: 3, Gap: true},
		{Limit: 5, Range: &rankcache.ScoreRange{Least: 0, Most: 7}}, {Members: []string{"b"}, Percentile: true}} {
		q.Board = p.id
		want := rankcache.One(t.Context(), p.board.Origin, q)
		must(t, p.client.ConfigResetStat(t.Context()).Err())
		got := p.read("replica", "", q)
		if at := got.CurrentAt; at.Sub(written).Abs() > time.Microsecond {
			t.Errorf("%+v: current at %v, the keeper wrote %v", q, at, written)
		}
		if stats := p.client.Info(t.Context(), "commandstats").Val(); strings.Contains(stats, "cmdstat_z") || strings.Contains(stats, "cmdstat_eval") {
			t.Errorf("%+v: the primary was asked: %s", q, stats)
		}
		got.At, got.CurrentAt, got.Lags = want.At, want.CurrentAt, false
		for i := range got.Own {
			got.Own[i].Stamp.At = want.Own[i].Stamp.At
		}
		equal(t, fmt.Sprintf("%+v", q), got, want)
	}
	several := make([]rankcache.Answer, 3)
	p.reads.Read(t.Context(), []rankcache.Query{{Board: p.id, Limit: 1}, {Board: p.id, Limit: 2, Primary: true}, {Board: "4_5_6", Limit: 3}}, several)
	for i, lags := range []bool{true, false, false} {
		if several[i].Err != nil || several[i].Lags != lags || len(several[i].Entries) != []int{1, 2, 0}[i] {
			t.Errorf("answer %d of a batch: %+v", i, several[i])
		}
	}
}

// A new connection begins in another database than the board's.
func TestReplicaInADatabase(t *testing.T) {
	t.Parallel()
	p := newPairIn(t, 3)
	p.awaitSync()
	for range 3 { // on a new connection each
		must(t, p.far.Do(t.Context(), "CLIENT", "KILL", "TYPE", "normal").Err())
		p.read("replica", "", page)
	}
}

// What a query asks for beyond the replica is the primary's answer.
func TestBoundsBeyondReplica(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.read("replica", "", rankcache.Query{Limit: 50, MinState: p.state(917), MinSeq: 917, MaxAge: time.Minute})
	p.read("primary", reasonBounds, rankcache.Query{Limit: 50, MaxAge: time.Nanosecond})
	p.read("primary", reasonBounds, rankcache.Query{Limit: 50, MinSeq: 918})
	other := p.state(917)
	other.Sum++
	p.read("primary", reasonBounds, rankcache.Query{Limit: 50, MinState: other})

	// A chain: what stands between the replica and the master does not pass on what comes.
	first := startReplicating(t)
	middle := redis.NewClient(&redis.Options{Addr: first.Addr(), Protocol: 2})
	defer middle.Close()
	host, port, _ := net.SplitHostPort(p.master.Addr())
	must(t, middle.ReplicaOf(t.Context(), host, port).Err())
	p.follow(first.Addr())
	p.awaitState("")
	p.awaitSync()
	must(t, first.Pause())
	p.fill(t, 918, rankcache.Entry{Member: "e", Score: 1})
	equal(t, "rows of a replica that is behind", len(p.read("replica", "", page).Entries), 5)
	wrote := p.ask(page).State
	for _, q := range []rankcache.Query{{Limit: 50, MinSeq: 918}, {Limit: 50, MinState: wrote}} {
		equal(t, "rows of the primary", len(p.read("primary", reasonBounds, q).Entries), 6)
	}
	must(t, first.Resume())
	p.awaitSync()
	equal(t, "rows of a replica that has come up", len(p.read("replica", "", rankcache.Query{Limit: 50, MinState: wrote}).Entries), 6)
}

// A replica that must not be read is not, even if that became so after the last look.
func TestReplicaThatMustNotBeRead(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	for _, c := range []struct {
		why     reason
		becomes func()
	}{
		{reasonNoReplica, func() { must(t, p.far.ReplicaOf(t.Context(), "no", "one").Err()) }},
		{reasonLink, func() { p.follow("127.0.0.1:1") }},
	} {
		c.becomes()
		p.read("primary", c.why, page)
		p.read("primary", c.why, rankcache.Query{Limit: 2, Members: []string{"c"}, Around: 3})
		p.awaitState(c.why)
		p.read("primary", c.why, page)
		p.follow(p.master.Addr())
		p.awaitState("")
		p.read("replica", "", page)
	}

	other := startReplicating(t) // with a board of the same name
	client := dialed(t, Options{URL: "redis://" + other.Addr(), Timeout: testTimeout})
	board{New(client, wire.DefaultNames()), client, p.id}.fill(t, 5000, rankcache.Entry{Member: "x", Score: 1})
	must(t, client.Set(t.Context(), writtenKey, time.Now().UnixMicro(), 0).Err())
	p.follow(other.Addr())
	testkit.Eventually(t, testTimeout, func() error { // without a look
		if a := rankcache.One(t.Context(), p.reads, rankcache.Query{Board: p.id, Limit: 50}); a.Seq != 917 || a.Lags {
			t.Fatalf("of another master: %+v", a)
		}
		if role := fmt.Sprint(p.far.Do(t.Context(), "ROLE").Val()); !strings.Contains(role, "connected") {
			return fmt.Errorf("%s", role)
		}
		return nil
	})
	p.read("primary", reasonOtherMaster, page)
	p.awaitState(reasonOtherMaster)
	p.follow(p.master.Addr())
	p.awaitState("")

	p.tick(time.Hour) // the keeper has gone
	p.awaitState(reasonBehind)
	p.read("primary", reasonBehind, page)
	must(t, p.client.Del(t.Context(), writtenKey).Err())
	p.awaitState(reasonNoKeeper)
	must(t, p.client.Set(t.Context(), writtenKey, "now", 0).Err())
	p.awaitState(reasonNoKeeper)
	p.awaitState("")

	must(t, p.client.Do(t.Context(), "ACL", "SETUSER", "default", "-info").Err())
	p.reads.table.Load().followers[0].historyAt = time.Time{}
	p.awaitState(reasonRefused)
	must(t, p.client.Do(t.Context(), "ACL", "SETUSER", "default", "+info").Err())
	p.awaitState("")
	must(t, p.replica.Kill())
	p.read("primary", reasonAway, page)
	p.awaitState(reasonAway)
	p.read("primary", reasonAway, page)
}

// While a replica loads what its master has, the primary answers.
func TestReplicaThatLoads(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	must(t, p.far.ConfigSet(t.Context(), "key-load-delay", "300000").Err())
	must(t, p.far.ConfigSet(t.Context(), "loading-process-events-interval-bytes", "1024").Err())
	for i := range 10 {
		text := make([]byte, 4096) // that can't be compressed
		_, _ = rand.Read(text)
		must(t, p.client.Set(t.Context(), fmt.Sprint("filler", i), text, 0).Err())
	}
	p.follow("127.0.0.1:1")
	must(t, p.client.Do(t.Context(), "DEBUG", "CHANGE-REPL-ID").Err()) // which makes the next synchronization a full one
	p.follow(p.master.Addr())
	testkit.Eventually(t, testTimeout, func() error {
		if err := p.far.Get(t.Context(), "filler").Err(); !redis.HasErrorPrefix(err, "LOADING") {
			return fmt.Errorf("not loading: %v", err)
		}
		return nil
	})
	p.reads.Read(t.Context(), []rankcache.Query{{Board: p.id, Limit: 50}}, make([]rankcache.Answer, 1))
	p.reads.Look(t.Context())
	if s := p.reads.State(); s.Used {
		t.Error(s)
	}
	p.read("primary", reason(p.reads.State().Reason), page)
}

// --redis-read that leads to a master is told.
func TestReplicaThatIsAMaster(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.reads = p.readOf(p.master.Addr())
	p.read("primary", reasonStart, page)
	p.awaitState(reasonNoReplica)
	if s := p.reads.State(); !strings.Contains(s.Detail, "leads to a master") {
		t.Error(s)
	}
	p.read("primary", reasonNoReplica, page)
}

// A user that may not ask for the role, or the history, reads the primary.
func TestReplicaThatRefuses(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	for _, missing := range []string{"role", "info", "getrange"} {
		must(t, p.far.Do(t.Context(), "ACL", "SETUSER", "default", "-"+missing).Err())
		p.awaitState(reasonRefused)
		if s := p.reads.State(); !strings.Contains(s.Detail, "NOPERM") {
			t.Errorf("without %s: %+v", missing, s)
		}
		p.read("primary", reasonRefused, page)
		must(t, p.far.Do(t.Context(), "ACL", "SETUSER", "default", "+"+missing).Err())
		p.awaitState("")
	}
}

// The replica that a Sentinel names is read.
func TestReplicaOfSentinel(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	host, port, _ := net.SplitHostPort(p.master.Addr())
	sentinel := startSentinel(t, host, port)
	client := dialed(t, Options{URL: "redis://" + sentinel + "?master_name=m", Mode: ModeSentinel, Role: RoleRead, Timeout: testTimeout})
	p.reads = NewReplicas(p.board.Origin, client, writtenKey, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	testkit.Eventually(t, testTimeout, func() error { // a Sentinel learns of replicas from its master
		p.tick(0)
		if p.reads.Look(t.Context()); !p.reads.State().Used {
			_ = client.Close()
			client = dialed(t, Options{URL: "redis://" + sentinel + "?master_name=m", Mode: ModeSentinel, Role: RoleRead, Timeout: testTimeout})
			p.reads = NewReplicas(p.board.Origin, client, writtenKey, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
			return fmt.Errorf("%+v", p.reads.State())
		}
		return nil
	})
	p.read("replica", "", page)
}

// TestKeeperClock: nothing is younger than it is since its value was first seen.
func TestKeeperClock(t *testing.T) {
	now := time.Now()
	c := new(keeperClock)
	for _, s := range []struct{ written, asked, want time.Duration }{
		{0, time.Second, 0},                                 // this clock is right
		{0, 2 * time.Second, 0},                             // the same value again
		{3 * time.Second, 4 * time.Second, 3 * time.Second}, // a newer one
		{2 * time.Second, 5 * time.Second, 2 * time.Second}, // of another replica
		{9 * time.Second, 6 * time.Second, 6 * time.Second}, // this clock is behind
		{9 * time.Second, 7 * time.Second, 6 * time.Second},
		{8 * time.Second, 7 * time.Second, 5 * time.Second},
	} {
		if got := c.seen(now.Add(s.written), now.Add(s.asked)).Sub(now); got != s.want {
			t.Errorf("%+v: %v", s, got)
		}
	}
}

// startReplicating starts a server whose replicas needn't wait for others.
func startReplicating(t *testing.T) *servers.Redis {
	t.Helper()
	return testkit.StartRedis(t, servers.RedisOptions{Args: []string{"--repl-diskless-sync-delay", "0", "--enable-debug-command", "local"}})
}

// That no replica answers is in the log once, also where a read has found it before the look.
func TestReplicaAwayIsLogged(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	var lines bytes.Buffer
	p.reads.table.Load().followers[0].log = slog.New(slog.NewTextHandler(&lines, nil))
	p.replica.Stop()
	p.read("primary", reasonAway, page)
	for range 2 {
		p.reads.Look(t.Context())
	}
	if n := strings.Count(lines.String(), "level=WARN"); n != 1 || !strings.Contains(lines.String(), "reason=away") {
		t.Errorf("want one warning, got %d: %s", n, lines.String())
	}
}
