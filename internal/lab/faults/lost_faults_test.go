package faults

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// lostFaults are acknowledged writes that Redis has lost and whose seqs it gave out
// again: what is left of them in files, in the log and in the hands of a writer
// must not get into a board. No reads are made while it happens, so no answer may be
// of what is lost.
func lostFaults() []fault {
	return []fault{{
		name: "a sidecar starts from files after Redis has lost writes",
		prepare: func(w *env) {
			w.useRDB()
			w.enlarge(largeBoard)
			w.args = append(w.args, "--snapshot-dir", w.TempDir(), "--snapshot-every", "1s")
		},
		start:  func(w *env) { w.startLarge() },
		inject: func(w *env) { w.loseWrites(3, 10, syscall.SIGTERM) },
	}, {
		name: "a sidecar starts from compacted topics after Redis has lost a write",
		prepare: func(w *env) {
			w.useRDB()
			w.enlarge(largeBoard)
			w.writerArgs = append(w.writerArgs, "--topic-setting", "cleanup.policy=compact,segment.ms=100,min.cleanable.dirty.ratio=0.001")
			w.whileDown = w.compact
		},
		start:  func(w *env) { w.startLarge() },
		inject: func(w *env) { w.loseWrites(1, 2000, syscall.SIGKILL) },
	}, {
		name: "a writer comes back with updates of what Redis has lost", note: "then a sidecar starts",
		prepare: func(w *env) {
			w.enlarge(largeBoard)
		},
		start: func(w *env) { w.startLarge() },
		inject: func(w *env) {
			w.zombie()
			w.waitReads(faultyReads)
			w.restartSidecar()
		},
	}}
}

// largeBoard is how many members a board needs so that samples miss a few wrong ones.
const largeBoard = 20_000

// useRDB gives the row a Redis that keeps what SAVE wrote, and loses what came later.
func (w *env) useRDB() {
	w.Helper()
	w.redis = testkit.StartRedis(w, servers.RedisOptions{})
	w.readsRedis.Redirect(w.redis.Addr())
	w.writesRedis.Redirect(w.redis.Addr())
}

// enlarge makes the local boards so large.
func (w *env) enlarge(members int) {
	for i := range w.boards {
		if w.boards[i].Tier == "local" {
			w.boards[i].Members = members
		}
	}
	w.reads.Boards, w.writes.Boards = w.boards, w.boards
}

// startLarge brings everything up, boards filled through the command topic, and
// waits until it is steady.
func (w *env) startLarge() {
	w.Helper()
	w.startWriter()
	var all []*command
	for _, b := range w.boards {
		for m := range b.Members {
			all = append(all, w.writes.set(b.ID, memberName(m), float64(m%500)))
		}
	}
	w.bulk(all)
	w.startSidecar()
	w.startLoad(2)
	w.steady()
}

// loseWrites gives each local board acknowledged writes, ends the sidecar, has Redis
// lose them, gives others which take the same seqs and more, and starts the sidecar.
func (w *env) loseWrites(lost, next int, end syscall.Signal) {
	w.Helper()
	w.writes.Pause()
	defer w.writes.Resume()
	w.must(w.redis.Do(w.Context(), "save"))
	before := w.seqs()
	w.reads.Pause()
	defer w.reads.Resume()
	w.bulk(w.changes(lost, 1))
	for _, b := range w.boards {
		w.waitHolds(b)
	}
	w.sidecar().Signal(end)
	w.sidecar().Wait(settleWithin)
	w.must(errors.Join(w.redis.Kill(), w.redis.Restart(context.Background())))
	w.must(w.sameSeqs(w.client(), before))
	for i, b := range w.boards {
		w.oracle.Lost(b.ID, before[i])
	}
	w.bulk(w.changes(next, 2))
	if w.whileDown != nil {
		w.whileDown()
	}
	w.replaceBy(w.readySidecar())
}

// waitHolds waits until the sidecar has what was written to a local board. What it answers
// is not for the oracle, since it is to be lost.
func (w *env) waitHolds(b Board) {
	w.Helper()
	w.eventually(func() error {
		var r Reply
		w.fetch("/v1/boards/"+string(b.ID)+"/top?limit=1", &r)
		if least := w.oracle.Reached(b.ID); b.Tier == "local" && (r.Source != "local" || r.Seq < least) {
			return fmt.Errorf("%s is at %d from %s, want %d", b.ID, r.Seq, r.Source, least)
		}
		return nil
	})
}

// seqs returns what Redis has of every board.
func (w *env) seqs() (seqs []uint64) {
	w.Helper()
	for _, b := range w.boards {
		seqs = append(seqs, w.seqIn(w.client(), b.ID))
	}
	return seqs
}

// changes returns n commands for each local board, each for a member of its own, and has
// readers ask for the first of these. Those of another round are of other members.
func (w *env) changes(n, round int) (all []*command) {
	for _, b := range w.boards {
		if b.Tier != "local" {
			continue
		}
		var members []string
		for i := range n {
			members = append(members, memberName((round*b.Members/4+i)%b.Members))
			all = append(all, w.writes.set(b.ID, members[i], float64(100*round+i%100)+0.5))
		}
		asked, _ := w.reads.Focus.Load(b.ID)
		earlier, _ := asked.([]string)
		w.reads.Focus.Store(b.ID, append(earlier, members[:min(n, 10)]...))
	}
	return all
}

// compact writes again to the members that got the seqs of lost writes, until the log has
// only the later of these changes: of the seqs given out twice it then has the lost ones.
func (w *env) compact() {
	w.Helper()
	w.bulk(w.changes(2000, 2))
	w.eventually(func() error {
		w.bulk(w.changes(1, 3)) // a segment ends when it is written to after its time
		for _, b := range w.boards {
			if b.Tier != "local" {
				continue
			}
			if n, seq := w.logged(wire.DefaultNames().Topic(b.ID)), w.oracle.Reached(b.ID); n > int(seq)-1990 {
				return fmt.Errorf("%d records of %d changes", n, seq)
			}
		}
		return nil
	})
}

// logged returns how many records partition 0 of a topic has, which has some.
func (w *env) logged(topic string) (n int) {
	w.Helper()
	cl := testkit.KafkaClient(w, w.direct, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	for done := false; !done; {
		fetches := cl.PollFetches(w.Context())
		w.must(fetches.Err())
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			n += len(p.Records)
			done = len(p.Records) > 0 && p.Records[len(p.Records)-1].Offset+1 >= p.HighWatermark
		})
	}
	return n
}

// end returns the end offset of a topic.
func (w *env) end(topic string) int64 {
	w.Helper()
	req := kmsg.NewPtrListOffsetsRequest()
	rt := kmsg.NewListOffsetsRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewListOffsetsRequestTopicPartition()
	rp.Timestamp = -1
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	resp, err := req.RequestWith(w.Context(), testkit.KafkaClient(w, w.direct))
	w.must(err)
	end := resp.Topics[0].Partitions[0]
	w.must(kerr.ErrorForCode(end.ErrorCode))
	return end.Offset
}

// zombies is how many updates of each board come late.
const zombies = 3

// zombie has a writer apply commands to a Redis that loses them, and keeps the updates
// from the log until another writer has given their seqs to other changes, more than
// any ring of recent ones holds.
func (w *env) zombie() {
	w.Helper()
	w.writes.Pause()
	defer w.writes.Resume()
	late := w.lateWriter()
	before := w.seqs()
	replica, link := w.newReplica()
	w.eventually(func() error { return w.sameSeqs(replica.Client(), before) })
	link.Cut()
	w.reads.Pause()
	w.applyUnanswered(late, before)
	late.Signal(syscall.SIGSTOP)
	w.promote(replica)
	w.must(w.sameSeqs(w.client(), before))
	w.reads.Resume()
	w.bulk(w.changes(3000, 2))
	for _, b := range w.boards {
		w.wantSource(b)
	}
	had := w.end(w.topic())
	late.Signal(syscall.SIGCONT)
	w.must(w.late.Restore())
	w.eventually(func() error {
		if came := w.end(w.topic()) - had; came < zombies {
			return fmt.Errorf("%d of %d late updates are in the log", came, zombies)
		}
		return nil
	})
	w.bulk(w.changes(1000, 2)) // samples look at what was written to last
}

// lateWriter starts a second writer, which has the topics' places by the time that it can't
// reach Kafka any more.
func (w *env) lateWriter() *testkit.Child {
	w.Helper()
	name := w.commands() + "_late"
	late := w.launchWriter("--kafka", w.late.Addr(), "--topic-commands", name, "--group", name)
	client := newClient(1)
	defer client.CloseIdleConnections()
	for _, cmd := range w.changes(1, 3) {
		w.eventually(func() error {
			again, err := w.writes.tryAt(client, late.URL("scores", ""), cmd)
			w.must(err)
			if again {
				return errors.New("the second writer does not answer a command")
			}
			return nil
		})
	}
	w.late.Stall()
	return late
}

// applyUnanswered posts changes to a writer that can apply them to Redis only.
func (w *env) applyUnanswered(late *testkit.Child, before []uint64) {
	w.Helper()
	client := newClient(zombies)
	w.Cleanup(client.CloseIdleConnections)
	for _, cmd := range w.changes(zombies, 1) {
		go func() { _, _ = w.writes.tryAt(client, late.URL("scores", ""), cmd) }() // its answer is not needed
	}
	redis := w.client()
	w.eventually(func() error {
		for i, b := range w.boards {
			if seq := w.seqIn(redis, b.ID); b.Tier == "local" && seq < before[i]+zombies {
				return fmt.Errorf("%s is at %d, was at %d", b.ID, seq, before[i])
			}
		}
		return nil
	})
}

// sameSeqs reports whether a Redis is at these seqs.
func (w *env) sameSeqs(c redis.UniversalClient, want []uint64) error {
	defer c.Close()
	for i, b := range w.boards {
		if seq, err := seqOf(w.Context(), c, b.ID); err != nil || seq != want[i] {
			return fmt.Errorf("%s is at %d, want %d (%w)", b.ID, seq, want[i], err)
		}
	}
	return nil
}
