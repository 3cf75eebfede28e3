package faults

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// regions are two: writers, keeper, Redis and the log in the one, in the other a sidecar with a replica and a mirror,
// which is the one that is read.
type regions struct {
	*env
	far    *servers.Redis // the Redis of the region that reads
	link   *Proxy         // of its replication
	broker string         // there
	mirror *servers.Mirror
	keeper *testkit.Child

	posts  sync.Mutex
	posted []wire.Update // what was acknowledged, in that order
}

// asReplica are the arguments of a sidecar in a region that reads.
var asReplica = []string{"--redis-role", "replica"}

// TestSecondRegion: MirrorMaker 2 and a replica feed a sidecar in a second region, both are cut, slow and healed, a
// mirrored topic is made again; then that region becomes the writing one, as docs/REGIONS.md has it, without what the
// replica lacks, and the former one reads. The plain size has the change of the writing region alone.
func TestSecondRegion(t *testing.T) {
	build(t)
	r := newRegions(t)
	r.startBoth()
	if testkit.Full() {
		r.sufferAll()
	}
	r.becomeWriting()
	if testkit.Full() {
		r.formerReads()
	}
	r.finish(0)
}

func newRegions(t *testing.T) *regions {
	w := newEnv(t, newFixture(t, &clusters{all: t}), &fault{name: "second region", losesWrites: true})
	w.oracle.CopyAge = settleWithin // a copy is as old as the mirror's last start, which takes its time
	w.class = `classes: [{name: durable, board: "%s", period: none, durable: true, mode: super-hot}]` + "\n"
	w.result = w.boards[0].ID + "_result"
	w.boards = append(w.boards, Board{w.result, "local", 60, 2})
	w.reads.Boards, w.writes.Boards = w.boards, w.boards
	w.writeRooms(w.roomsText())
	r := &regions{env: w, broker: testkit.StartKafka(t, servers.KafkaOptions{Heap: "256m"}).Addr()}
	w.writes.Publish = r.note
	r.far, r.link = w.newReplica()
	w.readsRedis.Redirect(r.far.Addr())
	r.makeCommands(r.broker)
	r.mirror = r.startMirror(w.late.Addr(), r.broker)
	return r
}

// makeCommands makes the topic of commands in a region before its mirror does, which does not copy who dates its
// records.
func (r *regions) makeCommands(broker string) {
	testkit.CreateTopic(r, broker, r.commands(), 1, map[string]string{"message.timestamp.type": "LogAppendTime"})
}

func (r *regions) startMirror(from, to string) *servers.Mirror {
	r.Helper()
	return testkit.StartMirror(r, servers.MirrorOptions{From: from, To: to, Topics: "update_.*,commands_.*"})
}

// startBoth starts the processes of both regions.
func (r *regions) startBoth() {
	r.Helper()
	r.startWriter()
	r.keep()
	r.writes.Fill(r.Context(), 1)
	client := r.clientOf(r.far)
	r.eventually(func() error { // ages are known from then on
		keys, err := client.Keys(r.Context(), "{rankcache:states:*}:written").Result()
		if err == nil && len(keys) != 1 {
			err = fmt.Errorf("the replica has %q of keepers", keys)
		}
		return err
	})
	r.useRegion(r.broker, asReplica)
	r.useSidecar(r.readySidecar()) // its first answers tell no age
	r.startLoad(2)
	r.steady()
}

// keep starts the keeper of the writing region.
func (r *regions) keep() {
	r.Helper()
	r.keeper = startListening(r, "", "keep", "--health", "127.0.0.1:0", "--rooms", r.rooms, "--redis", "redis://"+r.redis.Addr(), "--redis-timeout", "900ms", "--kafka", r.direct, "--give-up-after", "20s")
}

// useRegion has sidecars that are started from now on use a broker.
func (r *regions) useRegion(broker string, args []string) {
	own := *r.fixture
	own.seeds = broker
	r.fixture, r.args = &own, args
}

// suffer causes a fault that holds a tier's boards back, if any, heals it and waits for the recovery.
func (r *regions) suffer(what, tier string, inject, heal func()) {
	r.Helper()
	begun := time.Now()
	r.oracle.Enter(Faulty)
	inject()
	r.waitReads(faultyReads)
	r.waitBehind(tier)
	r.oracle.Enter(Recovering)
	healed := time.Now()
	heal()
	r.recovered()
	r.oracle.Enter(Recovered)
	r.Logf("%s: for %.1f s, then all was as before in %.1f s", what, healed.Sub(begun).Seconds(), time.Since(healed).Seconds())
}

// waitBehind waits until a tier's board is answered without the last changes, and says so.
func (r *regions) waitBehind(tier string) {
	r.Helper()
	if tier == "" {
		return
	}
	r.eventually(func() error {
		b := r.board(tier)
		has := r.oracle.Reached(b.ID)
		_, a := r.ask(Question{Board: b.ID, Tier: tier, Kind: KindTop, Limit: 10})
		if a.Err != nil || a.Seq+5 > has || a.Age == 0 {
			return fmt.Errorf("%s is answered by %s at %d of %d, %v old (%w)", b.ID, a.Source, a.Seq, has, a.Age, a.Err)
		}
		return nil
	})
}

func (r *regions) sufferAll() {
	restoreLink, restoreMirror := func() { r.must(r.link.Restore()) }, func() { r.must(r.late.Restore()) }
	r.suffer("the mirror is killed", "local", func() { r.must(r.mirror.Kill()) }, func() { r.must(r.mirror.Restart(r.Context())) })
	r.suffer("the mirror hangs", "local", func() { r.must(r.mirror.Pause()) }, func() { r.must(r.mirror.Resume()) })
	r.suffer("the mirror is slow", "", func() { r.late.Delay(time.Second) }, restoreMirror)
	r.suffer("the link of the Redises is cut", "redis", r.link.Cut, restoreLink)
	r.suffer("the link of the Redises is slow", "", func() { r.link.Delay(500 * time.Millisecond) }, restoreLink)
	r.suffer("both links are cut", "local", func() { r.link.Cut(); r.late.Cut() }, func() { restoreMirror(); restoreLink() })
	r.suffer("a topic is deleted in the mirror", "", func() { testkit.DeleteTopic(r, r.broker, r.topic()) }, func() {})
	r.suffer("a topic is deleted in both", "", func() {
		testkit.DeleteTopic(r, r.direct, r.topic())
		testkit.DeleteTopic(r, r.broker, r.topic())
	}, func() {})
}

// note keeps what was acknowledged.
func (r *regions) note(u wire.Update) {
	r.posts.Lock()
	defer r.posts.Unlock()
	r.posted = append(r.posted, u)
}

func (r *regions) acknowledged() []wire.Update {
	r.posts.Lock()
	defer r.posts.Unlock()
	return slices.Clone(r.posted)
}

// becomeWriting makes the region that reads the writing one, as docs/REGIONS.md has it, while its replica lacks the
// last changes.
func (r *regions) becomeWriting() {
	r.Helper()
	r.oracle.Enter(Faulty)
	held := r.seqs(r.clientOf(r.redis))
	next := r.clientOf(r.far)
	r.eventually(func() error { return atLeast(held, r.seqs(next)) })
	r.link.Cut()
	before := len(r.acknowledged())
	r.eventually(func() error {
		if n := len(r.acknowledged()) - before; n < 200 {
			return fmt.Errorf("%d changes that the replica lacks", n)
		}
		return nil
	})
	r.handOver()
	if err := atLeast(held, r.seqs(next)); err != nil {
		r.Errorf("lost what the replica had: %v", err)
	}
	r.repeat(r.acknowledged()[max(0, before-200):])
	r.oracle.Enter(Recovering)
	r.recovered()
	r.oracle.Enter(Recovered)
	r.waitReads(steadyReads)
}

// handOver are the steps 1 to 6.
func (r *regions) handOver() {
	r.Helper()
	r.writes.Pause()
	defer r.writes.Resume()
	r.writing().Kill()
	r.keeper.Kill()
	r.waitMirrored(r.direct, r.broker)
	r.must(r.mirror.Stop())
	r.losing()
	durable := r.oracle.Reached(r.result)
	r.must(r.redis.Stop())
	r.must(r.far.Do(r.Context(), "replicaof", "no", "one"))
	r.redis, r.far = r.far, r.redis
	r.writesRedis.Redirect(r.redis.Addr())
	next := r.clientOf(r.redis)
	r.rewind(next)
	r.readIn(r.broker, r.redis, nil)
	r.direct, r.broker = r.broker, r.direct
	r.keep()
	r.startWriter()
	r.eventually(func() error { // nobody posts
		if seq := r.seqIn(next, r.result); seq != durable {
			return fmt.Errorf("the durable board is at %d of %d that were acknowledged", seq, durable)
		}
		return nil
	})
}

// readIn has the sidecar restart in a region.
func (r *regions) readIn(broker string, from *servers.Redis, args []string) {
	r.Helper()
	r.reads.Pause()
	defer r.reads.Resume()
	r.sidecar().Kill()
	r.readsRedis.Redirect(from.Addr())
	r.useRegion(broker, args)
	r.replaceBy(r.readySidecar())
}

// formerReads is step 7: the former writing region reads.
func (r *regions) formerReads() {
	r.Helper()
	r.oracle.Enter(Faulty)
	r.deleteTopics(r.broker)
	r.makeCommands(r.broker)
	r.mirror = r.startMirror(r.direct, r.broker)
	r.must(r.far.Restart(r.Context()))
	host, port, err := net.SplitHostPort(r.redis.Addr())
	r.must(err)
	r.must(r.far.Do(r.Context(), "replicaof", host, port))
	replica := r.clientOf(r.far)
	r.eventually(func() error {
		info, err := replica.Info(r.Context(), "replication").Result()
		if err == nil && !strings.Contains(info, "master_link_status:up") {
			err = fmt.Errorf("no link yet:\n%s", info)
		}
		return err
	})
	r.readIn(r.broker, r.far, asReplica)
	r.oracle.Enter(Recovering)
	r.recovered()
	r.oracle.Enter(Recovered)
	r.waitReads(steadyReads)
}
