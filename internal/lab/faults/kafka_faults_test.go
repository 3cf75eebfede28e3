package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"rankcache/internal/testkit"
	"rankcache/wire"
)

func kafkaFaults() []fault {
	return []fault{{
		name: "Kafka is down at the start",
		start: func(w *env) {
			w.proxy.Cut()
			w.startFilled()
		},
		heal: func(w *env) { w.must(w.proxy.Restore()) },
	}, {
		name: "Kafka dies in the middle of a replay",
		start: func(w *env) {
			w.startWriter()
			w.writes.Fill(w.Context(), 1)
			w.proxy.Throttle(8 << 10)
			w.startSidecar()
			w.startLoad(2)
		},
		inject: func(w *env) { w.must(w.broker.Kill()) },
		heal:   func(w *env) { w.must(errors.Join(w.broker.Restart(context.Background()), w.proxy.Restore())) },
	}, {
		name:   "Kafka dies (SIGKILL)",
		inject: func(w *env) { w.must(w.broker.Kill()) },
		heal:   func(w *env) { w.must(w.broker.Restart(context.Background())) },
	}, {
		name:   "Kafka restarts",
		inject: func(w *env) { w.must(w.broker.Restart(context.Background())) },
	}, {
		name:   "Kafka hangs (SIGSTOP)",
		inject: func(w *env) { w.must(w.broker.Pause()) },
		heal:   func(w *env) { w.must(w.broker.Resume()) },
	}, {
		name: "the sidecar alone can't reach Kafka", quick: true, note: "writes go on",
		inject: func(w *env) { w.proxy.Cut() },
		heal:   func(w *env) { w.must(w.proxy.Restore()) },
	}, {
		name: "a replay never catches up (2 KB/s)", note: "ready after --give-up-after",
		args: []string{"--give-up-after", "3s"},
		start: func(w *env) {
			w.startWriter()
			w.writes.Fill(w.Context(), 1)
			w.proxy.Throttle(2 << 10)
			w.startSidecar()
			w.startLoad(2)
		},
		hold: func(w *env) { w.sidecar().WaitReady(settleWithin) },
		heal: func(w *env) { w.must(w.proxy.Restore()) },
	}, {
		name:   "a board's topic is deleted and made again",
		inject: func(w *env) { testkit.DeleteTopic(w, w.direct, w.topic()) },
	}, {
		name: "retention has cut the log before a sidecar starts",
		inject: func(w *env) {
			w.deleteRecords()
			w.restartSidecar()
		},
	}, {
		name:   "a transaction of wrong updates is aborted",
		inject: func(w *env) { w.transaction(func() {}) },
	}, {
		name: "a transaction stays open", note: "consumers can't read past it",
		inject: func(w *env) { w.transaction(func() { w.waitReads(faultyReads) }) },
	}, {
		name:   "poison records",
		inject: func(w *env) { w.produce(w.poison()...) },
	}, {
		name: "a record of 10 MB",
		inject: func(w *env) {
			w.produce(&kgo.Record{Topic: w.topic(), Value: bytes.Repeat([]byte("rankcache!"), 1<<20)})
		},
	}}
}

// startFilled starts the writer, gives every board its members, and starts the
// sidecar and the load.
func (w *env) startFilled() {
	w.Helper()
	w.startWriter()
	w.writes.Fill(w.Context(), 1)
	w.startSidecar()
	w.startLoad(2)
}

// topic is that of the first local board.
func (w *env) topic() string { return wire.DefaultNames().Topic(w.board("local").ID) }

// producer returns a client that takes large records.
func (w *env) producer(opts ...kgo.Opt) *kgo.Client {
	w.Helper()
	return testkit.KafkaClient(w, w.direct, append(opts, kgo.ProducerBatchMaxBytes(16<<20), kgo.ProducerBatchCompression(kgo.NoCompression()))...)
}

func (w *env) produce(records ...*kgo.Record) {
	w.Helper()
	w.must(w.producer().ProduceSync(w.Context(), records...).FirstErr())
}

// wrongUpdates are updates that look as if they came next, and did not happen.
func (w *env) wrongUpdates() (records []*kgo.Record) {
	b := w.board("local")
	at, run := w.oracle.Reached(b.ID), w.run(b)
	for i := range uint64(200) {
		u := wire.Update{Board: b.ID, Member: memberName(int(i) % b.Members), Op: wire.OpSet, Score: 1e6,
			Run: run, Seq: at + i + 1, Sum: i, HasSum: true, Members: b.Members, OrderID: fmt.Sprint("wrong-", i)}
		records = append(records, &kgo.Record{Topic: w.topic(), Key: []byte(u.Member), Value: wire.AppendUpdate(nil, &u)})
	}
	return records
}

// run returns the life of a board that Redis has.
func (w *env) run(b Board) uint64 {
	w.Helper()
	value, err := w.client().Get(w.Context(), wire.DefaultNames().MetaKey(b.ID)).Result()
	w.must(err)
	meta, err := wire.ParseMeta(value)
	w.must(err)
	return meta.Run
}

// transaction writes wrong updates in a transaction, which is aborted when
// meanwhile is over.
func (w *env) transaction(meanwhile func()) {
	w.Helper()
	cl := w.producer(kgo.TransactionalID(testkit.Name(w)), kgo.TransactionTimeout(10*time.Minute))
	w.must(cl.BeginTransaction())
	w.must(cl.ProduceSync(w.Context(), w.wrongUpdates()...).FirstErr())
	meanwhile()
	w.must(cl.EndTransaction(w.Context(), kgo.TryAbort))
}

// poison is what the topics may hold that is no update and no command of a board.
func (w *env) poison() (records []*kgo.Record) {
	b := string(w.board("local").ID)
	add := func(topic, value string) {
		records = append(records, &kgo.Record{Topic: topic, Value: []byte(value)})
	}
	for _, value := range []string{"", "{", "null", "[]", "\x00\xff\xfe", "\x1f\x8b\x08\x00", `{"v":2}`, strings.Repeat(`{"v":`, 50_000)} {
		add(w.topic(), value)
		add(w.commands(), value)
	}
	// Each of these would be an update but for one thing.
	good := fmt.Sprintf(`{"v":2,"board":%q,"member":"m0001","op":"set","score":1e9,"run":%d,"seq":1000000,"sum":"0a1b2c3d4e5f","members":9,"order":"x","at":1}`,
		b, w.run(w.board("local")))
	for _, change := range [][2]string{{`"v":2`, `"v":3`}, {"set", "steal"}, {"m0001", ""}, {"m0001", strings.Repeat("m", 5000)}, {"m0001", `m\n1`},
		{"1e9", "1e999"}, {"1e9", "null"}, {":1000000", ":-1"}, {":1000000", ":99999999999999999999999"}, {b, b + "_else"}, {b, "../../" + b}, {b, ""}} {
		add(w.topic(), strings.Replace(good, change[0], change[1], 1))
	}
	for _, change := range [][2]string{{"set", "steal"}, {"m0001", ""}, {"1e9", "1e999"}, {"1e9", "null"}, {b, "../../" + b}, {`"x"`, `""`}} {
		add(w.commands(), strings.Replace(good, change[0], change[1], 1))
	}
	return append(records, &kgo.Record{Topic: w.topic(), Key: []byte("m0001")}) // a tombstone
}

// deleteRecords cuts the first local board's log off at its end.
func (w *env) deleteRecords() {
	w.Helper()
	cl := testkit.KafkaClient(w, w.direct)
	part := kmsg.NewDeleteRecordsRequestTopicPartition()
	part.Offset = -1
	topic := kmsg.NewDeleteRecordsRequestTopic()
	topic.Topic, topic.Partitions = w.topic(), append(topic.Partitions, part)
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.Topics = append(req.Topics, topic)
	resp, err := req.RequestWith(w.Context(), cl)
	w.must(err)
	w.must(kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode))
}
