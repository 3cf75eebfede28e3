package replay_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache"
	"rankcache/internal/lab/measure"
	"rankcache/internal/lab/servers"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// Every board is compared with Redis, entry by entry, at the moment when it is
// opened: see env.still.

func TestLogThatEndsInControlRecords(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kafka(t))
	b := e.newBoard(1, nil)
	tx := testkit.KafkaClient(t, e.kafka, kgo.TransactionalID(string(b.id)), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	b.transact(tx, kgo.TryCommit, b.gifts(20, 5)...)
	b.transact(tx, kgo.TryAbort, b.wrong()...)
	s := e.start(ids(b))
	s.waitOpen(b.id)
	if n := s.counter("rankcache_replay_snapshots_total"); n != 0 {
		t.Error("the board came from Redis though the log has it all")
	}
}

func TestOpenTransaction(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kafka(t))
	b := e.newBoard(1, nil)
	tx := testkit.KafkaClient(t, e.kafka, kgo.TransactionalID(string(b.id)), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	b.transact(tx, kgo.TryCommit, b.gifts(20, 5)...)
	e.check(tx.BeginTransaction())
	b.send(tx, b.gifts(10, 5)...)
	s := e.start(ids(b))
	s.waitOpen(b.id) // through a snapshot: the log gives two thirds only
	e.check(tx.EndTransaction(context.Background(), kgo.TryCommit))
	b.produce(b.incr("last", 1))
	s.waitOpen(b.id)
}

func (b *board) transact(tx *kgo.Client, end kgo.TransactionEndTry, us ...wire.Update) {
	b.t.Helper()
	b.check(tx.BeginTransaction())
	b.send(tx, us...)
	b.check(tx.EndTransaction(context.Background(), end))
}

// wrong returns updates of what never happened.
func (b *board) wrong() (us []wire.Update) {
	for i := range uint64(5) {
		us = append(us, wire.Update{Board: b.id, Member: "wrong", Op: wire.OpSet, Score: 666, Seq: b.seq + i + 1, OrderID: "x"})
	}
	return us
}

func TestCompactedTopic(t *testing.T) {
	t.Parallel()
	kafka := testkit.StartKafka(t, servers.KafkaOptions{Props: map[string]string{
		"log.cleaner.backoff.ms": "100", "log.cleaner.dedupe.buffer.size": "4194304"}})
	e := newEnv(t, kafka.Addr())
	b := e.newBoard(1, map[string]string{"cleanup.policy": "compact", "segment.bytes": "1048576", "segment.ms": "100",
		"min.cleanable.dirty.ratio": "0.001", "max.compaction.lag.ms": "1"})
	var us []wire.Update
	for i := range 300 {
		us = append(us, b.incr(fmt.Sprintf("m%d", i%30), 1))
	}
	b.produce(us...)
	testkit.Eventually(t, timeout, func() error {
		b.produce(b.incr("roll", 1)) // segments are rolled by what is written
		if got := b.logged(); got > 150 {
			return fmt.Errorf("%d of %d records are left", got, b.seq)
		}
		return nil
	})
	s := e.start(ids(b))
	s.waitOpen(b.id)
	if n := s.counter("rankcache_replay_snapshots_total"); n != 0 {
		t.Error("the board came from Redis though the log has the last update of each member")
	}
	b.produce(b.gifts(20, 40)...)
	s.waitOpen(b.id)
}

// logged returns how many records the topic's log holds.
func (b *board) logged() int {
	b.t.Helper()
	n, _, err := measure.Drain(context.Background(), b.kafka, b.topic())
	b.check(err)
	return n
}

func TestTruncatedLog(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kafka(t))
	b := e.newBoard(1, nil)
	b.produce(b.gifts(100, 20)...)
	b.deleteRecords(40)
	s := e.start(ids(b))
	s.waitOpen(b.id)
	if n := s.counter("rankcache_replay_snapshots_total"); n != 1 {
		t.Errorf("%v snapshots, want 1", n)
	}
	b.produce(b.gifts(50, 20)...)
	s.waitOpen(b.id)
}

func TestLostOrder(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string][2]int{"in the middle": {30, 31}, "at the beginning": {0, 5}, "at the end": {95, 100}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, testkit.Kafka(t))
			b := e.newBoard(1, nil)
			var us []wire.Update
			for i := range 100 { // each member's only one: nothing makes up for a lost one
				us = append(us, b.incr(fmt.Sprint("m", i), 1))
			}
			b.produce(append(us[:lost[0]:lost[0]], us[lost[1]:]...)...)
			s := e.start(ids(b))
			s.waitOpen(b.id)
			if n := s.counter("rankcache_replay_snapshots_total"); n != 1 {
				t.Errorf("%v snapshots, want 1", n)
			}
		})
	}
}

// A log may be complete by its seqs and wrong all the same.
func TestLogThatDiffersFromRedis(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kafka(t))
	b := e.newBoard(1, nil)
	us := b.gifts(100, 20)
	us[99].Op, us[99].Score, us[99].Member = wire.OpSet, 1e9, "stranger"
	b.produce(us...)
	s := e.start(ids(b))
	s.waitOpen(b.id)
	if n := s.counter("rankcache_replay_snapshots_total"); n != 1 {
		t.Errorf("%v snapshots, want 1", n)
	}
}

func TestUnknownTotal(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kafka(t))
	b, empty := e.newBoard(1, nil), e.newBoard(1, nil)
	b.produce(b.gifts(10, 5)...)
	e.check(e.redis.Del(context.Background(), e.names.MetaKey(b.id)).Err())
	s := e.start(ids(b, empty), deadline(time.Second))
	s.waitReady()
	testkit.Eventually(t, timeout, func() error {
		if st := s.status(b.id); st.State != rankcache.StateGivenUp || !strings.Contains(st.Reason, "no total") {
			return fmt.Errorf("%+v, want it given up", st)
		}
		return nil
	})
	s.waitOpen(empty.id)   // as empty as Redis
	u := b.incr("late", 1) // its update is lost
	rows, err := e.redis.ZRangeWithScores(t.Context(), e.names.BoardKey(b.id), 0, -1).Result()
	e.check(err)
	e.check(e.redis.Set(t.Context(), e.names.MetaKey(b.id), testkit.Meta(u.Run, u.Seq, rows), 0).Err()) // as a writer that adopts it
	empty.produce(empty.gifts(3, 3)...)
	s.waitOpen(b.id) // given up, and still tried
	s.waitOpen(empty.id)
}
