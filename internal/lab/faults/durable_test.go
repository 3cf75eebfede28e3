package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"rankcache"
	"rankcache/internal/lab/servers"
	"rankcache/internal/masters"
	"rankcache/internal/testkit"
	"rankcache/ledger"
	"rankcache/origin"
	"rankcache/wire"
)

// durable is two writers of durable classes and a ledger, as processes, under a load that counts.
type durable struct {
	*testing.T
	load    *durableLoad
	client  redis.UniversalClient
	store   *ledger.Store
	args    []string // of all processes
	ofStore []string // of the ledger's

	mu      sync.Mutex // guards those that are restarted
	writers [2]*testkit.Child
	ledger  *testkit.Child
	stop    func() // ends the load
}

// newDurable starts all on a Redis. The database is of a kind.
func newDurable(t *testing.T, kind string, client redis.UniversalClient, redisArgs ...string) *durable {
	name := testkit.Name(t)
	name = name[max(0, len(name)-20):]
	d := &durable{T: t, client: client}
	t.Cleanup(func() { client.Close() })
	d.load = newDurableLoad(name, func(w int) string { return d.writer(w).URL("scores", "") })
	file := filepath.Join(t.TempDir(), "rooms.yaml")
	d.must(os.WriteFile(file, []byte(d.load.classes()), 0o600))
	url, kafka := testkit.Database(t, kind), testkit.Kafka(t)
	store, err := ledger.Open(url, nil)
	d.must(err)
	t.Cleanup(func() { store.Close() })
	d.must(store.Migrate(t.Context()))
	d.store = store
	d.args = append([]string{"--kafka", kafka, "--rooms", file, "--key-rooms", name + ":rooms", "--topic-commands", name, "--topic-ledger", name + "_ledger",
		"--redis-timeout", "1s"}, redisArgs...)
	d.ofStore = []string{"--http", "127.0.0.1:0", "--database", url, "--ledger-group", name}
	d.startWriter(0)
	d.startWriter(1)
	d.startLedger()
	return d
}

func (d *durable) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

func (d *durable) writer(n int) *testkit.Child {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.writers[n]
}

// startWriter starts a writer, again if it has run before: then it has its partitions at once.
func (d *durable) startWriter(n int) {
	d.Helper()
	c := startListening(d, "", slices.Concat([]string{"write", "--scores", "127.0.0.1:0", "--health", "127.0.0.1:0", "--group", d.load.prefix, "--group-instance", fmt.Sprint("w", n),
		"--command-partitions", fmt.Sprint(durablePartitions), "--ledger-partitions", "2"}, d.args)...)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.writers[n] = c
}

func (d *durable) startLedger() {
	d.Helper()
	d.ledger = startListening(d, "", slices.Concat([]string{"ledger"}, d.ofStore, d.args)...)
}

// killWriter ends a writer as a crash would, and starts it again.
func (d *durable) killWriter(n int) {
	d.Helper()
	d.writer(n).Kill()
	d.startWriter(n)
}

// startLoad begins to post.
func (d *durable) startLoad() {
	ctx, cancel := context.WithCancel(context.Background())
	var load sync.WaitGroup
	load.Go(func() { d.load.run(ctx) })
	d.stop = sync.OnceFunc(func() { cancel(); load.Wait() })
	d.Cleanup(d.stop)
	d.acked(2000)
}

// acked waits until so many more commands are acknowledged.
func (d *durable) acked(n int64) {
	d.Helper()
	n += d.load.acked.Load()
	d.eventually(func() error {
		if got := d.load.acked.Load(); got < n {
			return fmt.Errorf("%d of %d commands are acknowledged", got, n)
		}
		return nil
	})
}

func (d *durable) eventually(cond func() error) {
	d.Helper()
	testkit.Eventually(d, settleWithin, cond)
}

// whole waits until both writers tell that Redis has all changes.
func (d *durable) whole() {
	d.Helper()
	d.eventually(func() error {
		for n := range d.writers {
			d.restartFenced(n)
			_, text := d.writer(n).Get("scores", "/v1/status")
			if !strings.Contains(text, `"rewind":{"state":"whole"`) {
				return fmt.Errorf("writer %d: %.1500s", n, text)
			}
		}
		return nil
	})
}

// restartFenced starts a writer again, as a kubelet would, that has ended because it hung for longer than its session:
// Kafka may take its next request for that of another process.
func (d *durable) restartFenced(n int) {
	select {
	case <-d.writer(n).Done():
		if !strings.Contains(d.writer(n).Log(), "group.instance.id") {
			d.Fatalf("writer %d has ended:\n%s", n, d.writer(n).Log())
		}
		d.startWriter(n)
	default:
	}
}

// lose has something happen that loses what Redis has, and returns when the writers have made up for it.
func (d *durable) lose(what string, happen func()) {
	d.Helper()
	happen()
	begun, acked := time.Now(), d.load.acked.Load()
	d.whole()
	took := time.Since(begun)
	d.acked(300)
	d.Logf("%s: whole %.1f s after the new master was there, with %d commands meanwhile", what, took.Seconds(), d.load.acked.Load()-acked)
}

// finish ends the load and compares all boards.
func (d *durable) finish(begun time.Time) {
	d.Helper()
	took := time.Since(begun)
	d.stop()
	d.Logf("%d commands acknowledged in %.1f s, %.0f a second; %d posts repeated", d.load.acked.Load(), took.Seconds(), float64(d.load.acked.Load())/took.Seconds(), d.load.again.Load())
	for i, text := range d.load.bad {
		if i < 5 {
			d.Error(text)
		}
	}
	d.settled()
	d.whole()
	for n := range d.writers {
		if _, text := d.writer(n).Get("health", "/metrics"); !strings.Contains(text, "\nrankcache_write_masters_damaged_total 0\n") {
			d.Errorf("writer %d takes a master for damaged, or does not tell", n)
		}
	}
	for id, want := range d.load.boards {
		scores := make(map[string]float64)
		rows, err := d.client.ZRangeWithScores(d.Context(), string(id), 0, -1).Result()
		d.must(err)
		for _, r := range rows {
			scores[r.Member.(string)] = r.Score
		}
		state := testkit.BoardState(d, d.client, wire.DefaultNames(), id)
		if err := want.check(id, scores, state.Seq); err != nil {
			d.Error(err)
		}
		if len(want.refused) > 0 && strings.Contains(string(id), "-caps:") && len(scores) != durableCap {
			d.Errorf("%s has %d members of %d", id, len(scores), durableCap)
		}
		if !d.Failed() && (strings.Contains(string(id), "-gift:") || strings.HasSuffix(string(id), "-all")) {
			d.proved(id, state)
		}
	}
}

// settled waits until the writers have read the whole log.
func (d *durable) settled() {
	d.Helper()
	d.eventually(func() error {
		partitions := 0
		for n := range d.writers {
			var status struct{ Commands []struct{ Lag *int64 } }
			_, text := d.writer(n).Get("scores", "/v1/status")
			if err := json.Unmarshal([]byte(text), &status); err != nil {
				return fmt.Errorf("writer %d: %w: %s", n, err, text)
			}
			for _, p := range status.Commands {
				if p.Lag == nil || *p.Lag > 0 {
					return fmt.Errorf("writer %d: %s", n, text)
				}
			}
			partitions += len(status.Commands)
		}
		if partitions != durablePartitions {
			return fmt.Errorf("%d partitions are read", partitions)
		}
		return nil
	})
}

// proved waits until the ledger has what Redis has of a board.
func (d *durable) proved(id rankcache.BoardID, state rankcache.State) {
	d.Helper()
	d.eventually(func() error {
		settled, err := d.store.Settled(d.Context(), id, state)
		if err != nil || !settled {
			_, status := d.ledger.Get("http", "/status")
			return fmt.Errorf("the ledger is not settled with %s: %w %.500s", id, err, status)
		}
		return nil
	})
	if p, err := d.store.Prove(d.Context(), id); err != nil || !p.Proved || p.State != state || p.Earlier != nil {
		d.Errorf("the ledger proves %+v, %v; Redis has %v", p, err, state)
	}
}

// TestDurable: each acknowledged command is counted once, whatever dies.
func TestDurable(t *testing.T) {
	testkit.FullOnly(t, "masters and writers are killed under load")
	build(t)
	t.Run("Sentinel", durableOnSentinel)
	t.Run("Cluster", durableOnCluster)
	t.Run("Instances", durableOnInstances)
}

// A writer hangs, the master dies with changes that no replica has, and while these are made up for, a writer and the ledger
// are killed, and the next master dies in the same way. Scripts are flushed meanwhile.
func durableOnSentinel(t *testing.T) {
	// A replica that was cut for ten times as long is not promoted, and on a busy machine 1,500 posts take 20 seconds.
	s := testkit.StartSentinel(t, servers.SentinelOptions{DownAfter: 5 * time.Second})
	addrs := s.Addrs()
	d := newDurable(t, testkit.SQLKinds[0], redis.NewFailoverClient(&redis.FailoverOptions{MasterName: servers.SentinelMaster, SentinelAddrs: addrs, Protocol: 2, DisableIdentity: true}),
		"--redis", "redis://"+addrs[0]+"?master_name="+servers.SentinelMaster+"&addr="+strings.Join(addrs[1:], "&addr="), "--redis-mode", "sentinel")
	master := func() (m *servers.Redis) {
		d.Helper()
		d.eventually(func() (err error) { m, err = s.Master(t.Context()); return err })
		return m
	}
	d.startLoad()
	begun := time.Now()
	d.whole()
	first := master()
	d.writer(1).Signal(syscall.SIGSTOP)
	d.must(s.CutReplicas(t.Context(), first))
	d.acked(1500)
	d.lose("two masters died, one in the rewind of the other", func() {
		d.must(first.Kill())
		second := master()
		d.must(s.CutReplicas(t.Context(), second))
		d.must(second.Do(t.Context(), "SCRIPT", "FLUSH"))
		d.writer(1).Signal(syscall.SIGCONT)
		d.killWriter(0)
		d.ledger.Kill()
		d.startLedger()
		d.acked(500)
		d.must(second.Kill())
		master()
	})
	d.finish(begun)
}

// durableOnCluster is a cluster whose masters lose what they have.
func durableOnCluster(t *testing.T) {
	c := testkit.StartRedisCluster(t, servers.ClusterOptions{})
	addrs := c.Addrs()
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, Protocol: 2, DisableIdentity: true})
	d := newDurable(t, testkit.SQLKinds[len(testkit.SQLKinds)-1], client, "--redis", "redis://"+addrs[0]+"?addr="+strings.Join(addrs[1:], "&addr="), "--redis-mode", "cluster")
	d.startLoad()
	begun := time.Now()
	d.whole()

	d.lose("the slot of the positions was moved, and both masters died", func() {
		names := wire.DefaultNames()
		names.Commands = d.load.prefix
		hash := names.AppliedKey(masters.Tag(0))
		from := d.masterOf(c, hash)
		to, err := c.OtherMaster(t.Context(), hash)
		d.must(err)
		_, err = c.MoveSlot(t.Context(), hash, to, 10)
		d.must(err)
		d.eventually(func() error { // the source has another name now
			n, err := client.HLen(t.Context(), names.AppliedKey(masters.Tag(1))).Result()
			if err == nil && n <= durablePartitions {
				err = fmt.Errorf("%d positions", n)
			}
			return err
		})
		d.must(c.WaitWhole(t.Context()))
		replicas := []*servers.Redis{d.cutReplica(c, from), d.cutReplica(c, to)}
		d.acked(500)
		d.must(errors.Join(from.Kill(), to.Kill()))
		d.takeOver(replicas...)
		d.must(errors.Join(from.Restart(t.Context()), to.Restart(t.Context())))
	})
	d.must(c.WaitWhole(t.Context()))
	fed := d.load.prefix + "-all"
	d.lose("one of three masters died", func() { // with the board that all others feed
		old := d.masterOf(c, fed)
		next := d.cutReplica(c, old)
		d.acked(1000)
		d.must(old.Kill())
		d.killWriter(0)
		d.takeOver(next)
		d.must(old.Restart(t.Context()))
	})
	d.lose("a master was replaced and took its place again, and a writer hung meanwhile", func() {
		d.must(c.WaitWhole(t.Context()))
		old := d.masterOf(c, fed)
		next := d.cutReplica(c, old)
		d.writer(1).Signal(syscall.SIGSTOP)
		d.acked(500)
		d.takeOver(next)
		d.must(c.WaitWhole(t.Context()))
		d.acked(500)
		d.takeOver(old)
		d.writer(1).Signal(syscall.SIGCONT)
	})
	d.finish(begun)
}

// durableOnInstances are servers that know nothing of each other, each of which comes back as it was when it was last saved.
func durableOnInstances(t *testing.T) {
	var all []*servers.Redis
	for range 3 {
		all = append(all, testkit.StartRedis(t, servers.RedisOptions{}))
	}
	url := "redis://" + all[0].Addr() + "?addr=" + all[1].Addr() + "&addr=" + all[2].Addr()
	client, err := origin.Dial(origin.Options{URL: url, Mode: origin.ModeInstances, Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	d := newDurable(t, testkit.SQLKinds[0], client, "--redis", url, "--redis-mode", "instances")
	d.startLoad()
	begun := time.Now()
	for i, one := range all {
		d.whole()
		d.lose(fmt.Sprintf("instance %d of 3 died and came back", 1+i), func() {
			d.must(one.Do(t.Context(), "SAVE"))
			d.acked(700)
			d.must(one.Kill())
			if i == 1 {
				d.killWriter(0)
			}
			d.must(one.Restart(t.Context()))
		})
	}
	d.finish(begun)
}

// masterOf returns the master of a key.
func (d *durable) masterOf(c *servers.RedisCluster, key string) (m *servers.Redis) {
	d.Helper()
	d.eventually(func() (err error) { m, err = c.Master(d.Context(), key); return err })
	return m
}

// info returns what a server tells of its replication.
func (d *durable) info(n *servers.Redis) map[string]string {
	d.Helper()
	c := n.Client()
	defer c.Close()
	info, err := c.InfoMap(d.Context(), "replication").Result()
	d.must(err)
	return info["Replication"]
}

// cutReplica has a replica of a master get nothing more from it.
func (d *durable) cutReplica(c *servers.RedisCluster, master *servers.Redis) (replica *servers.Redis) {
	d.Helper()
	for _, n := range c.Nodes {
		if !n.Running() {
			continue
		}
		if info := d.info(n); info["role"] == "slave" && strings.HasSuffix(master.Addr(), ":"+info["master_port"]) {
			d.must(n.Do(d.Context(), "CONFIG", "SET", "masteruser", "nobody", "masterauth", "nothing"))
			d.must(master.Do(d.Context(), "CLIENT", "KILL", "TYPE", "replica"))
			return n
		}
	}
	d.Fatal("the master has no replica")
	return nil
}

// takeOver has replicas become the masters of their shards, as they are.
func (d *durable) takeOver(replicas ...*servers.Redis) {
	d.Helper()
	for _, r := range replicas {
		d.eventually(func() error { return r.Do(d.Context(), "CLUSTER", "FAILOVER", "TAKEOVER") })
		d.eventually(func() error {
			if role := d.info(r)["role"]; role != "master" {
				return fmt.Errorf("%s is a %s", r.Addr(), role)
			}
			return nil
		})
		d.must(r.Do(d.Context(), "CONFIG", "SET", "masteruser", "", "masterauth", ""))
	}
}
