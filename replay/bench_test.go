package replay_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache"
	"rankcache/internal/lab/fill"
	"rankcache/internal/lab/measure"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

const (
	benchUpdates = 1_000_000
	benchMembers = 210_000
)

// fill gives the board n Zipf-distributed gifts, in the log and in Redis.
func (b *board) fill(n, members int) {
	b.t.Helper()
	zipf := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.1, 100, uint64(members-1))
	b.filled = fill.NewBoard(b.id)
	client := testkit.KafkaClient(b.t, b.kafka, kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)),
		kgo.ProducerBatchCompression(kgo.Lz4Compression()), kgo.MaxBufferedRecords(20_000))
	for i := range n {
		m := fmt.Sprint(1_000_000 + zipf.Uint64())
		if i < members {
			m = fmt.Sprint(1_000_000 + i) // each member once
		}
		u := b.filled.Incr(m, 1)
		u.OrderID, u.At = fmt.Sprint(i), 1_760_000_000_000+int64(i)
		client.Produce(context.Background(), &kgo.Record{Topic: b.topic(), Key: []byte(m), Value: wire.AppendUpdate(nil, &u)}, nil)
	}
	b.check(client.Flush(context.Background()))
	b.check(b.filled.Redis(context.Background(), b.redis, b.names, 0))
}

// BenchmarkReplay is a whole replay to the opening beside a bare consume loop
// with the same settings: go test -run '^$' -bench Replay -benchtime 3x ./replay
func BenchmarkReplay(b *testing.B) {
	e := newEnv(b, testkit.Kafka(b))
	board := e.newBoard(1, nil)
	board.fill(benchUpdates, benchMembers)
	var bare, whole time.Duration
	for b.Loop() {
		n, took, err := measure.Drain(b.Context(), e.kafka, board.topic())
		if err != nil || n != benchUpdates {
			b.Fatal(n, err)
		}
		bare += took
		whole += replayOnce(e, board)
	}
	rate := func(d time.Duration) float64 { return float64(b.N) * benchUpdates / d.Seconds() }
	b.ReportMetric(rate(whole), "updates/s")
	b.ReportMetric(rate(bare), "bare/s")
	b.ReportMetric(rate(whole)/rate(bare), "of_bare")
}

func replayOnce(e *env, board *board) time.Duration {
	runtime.GC()
	begun := time.Now()
	s := e.start(ids(board))
	defer s.stop()
	for {
		if ok, _ := s.Ready(); ok {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if st := s.status(board.id); st.State != rankcache.StateOpen || st.Members != benchMembers {
		e.t.Fatalf("%+v", st)
	}
	return time.Since(begun)
}

// BenchmarkOpen is why partitions are assigned: the time from nothing to the
// first record, and to the first record of a topic made while reading.
func BenchmarkOpen(b *testing.B) {
	for _, mode := range []string{"assign", "regex"} {
		b.Run(mode, func(b *testing.B) {
			e := newEnv(b, testkit.Kafka(b))
			var first, later time.Duration
			for b.Loop() {
				old, fresh := e.newBoard(1, nil), &board{env: e, id: rankcache.BoardID(testkit.Name(b)), parts: 1}
				old.produce(old.gifts(1, 1)...)
				begun := time.Now()
				var seen func(*board)
				if mode == "assign" {
					s := e.start(ids(old, fresh))
					defer s.stop()
					seen = func(o *board) { s.waitOpen(o.id) }
				} else {
					seen = subscribe(e)
				}
				seen(old)
				first += time.Since(begun)
				testkit.CreateTopic(b, e.kafka, fresh.topic(), 1, nil)
				begun = time.Now()
				fresh.produce(fresh.gifts(1, 1)...)
				seen(fresh)
				later += time.Since(begun)
			}
			b.ReportMetric(first.Seconds()*1000/float64(b.N), "first_ms")
			b.ReportMetric(later.Seconds()*1000/float64(b.N), "new_topic_ms")
		})
	}
}

// subscribe reads all update topics by a regex, as a group of its own, and
// returns what waits for a board's first record.
func subscribe(e *env) func(*board) {
	c, err := kafka.NewConsumer(&kafka.ConfigMap{
		"bootstrap.servers": e.kafka, "group.id": testkit.Name(e.t), "auto.offset.reset": "earliest", "enable.auto.commit": false,
		"partition.assignment.strategy": "cooperative-sticky", "topic.metadata.refresh.interval.ms": 1000,
	})
	e.check(err)
	e.t.Cleanup(func() { go c.Close() }) // leaving the group may take long, and is not what is measured
	e.check(c.Subscribe("^update_cache_.*", nil))
	got := make(map[string]bool)
	return func(b *board) {
		for end := time.Now().Add(timeout); !got[b.topic()] && time.Now().Before(end); {
			if m, ok := c.Poll(20).(*kafka.Message); ok && m.TopicPartition.Error == nil {
				got[*m.TopicPartition.Topic] = true
			}
		}
		if !got[b.topic()] {
			e.t.Fatal("no record of", b.topic())
		}
	}
}

// BenchmarkRestart is the time from Run to open of a board of 210,000 members with
// 1,000,000 updates in its log: from the log alone, from a file, and from a file
// with 100,000 updates after it.
//
//	go test -run '^$' -bench Restart -benchtime 5x ./replay
func BenchmarkRestart(b *testing.B) {
	e := newEnv(b, testkit.Kafka(b))
	e.still = false // no comparison of every entry within the time
	board, whole, older := e.newBoard(1, nil), newFolder(b), newFolder(b)
	const tail = 100_000
	board.fill(benchUpdates-tail, benchMembers)
	e.saveOnce(older, board)
	board.refill(benchUpdates-tail, benchUpdates)
	e.saveOnce(whole, board)
	for _, c := range []struct {
		name string
		opts []option
		read float64
	}{
		{"log", nil, benchUpdates},
		{"file", []option{keptIn(whole)}, 0},
		{"file+tail", []option{keptIn(older)}, tail},
	} {
		b.Run(c.name, func(b *testing.B) {
			for _, kept := range []*folder{whole, older} {
				kept.frozen.Store(true)
			}
			var all time.Duration
			for b.Loop() {
				all += e.restartOnce(board, c.read, c.opts...)
			}
			b.ReportMetric(all.Seconds()*1000/float64(b.N), "open_ms")
		})
	}
}

func (e *env) restartOnce(board *board, read float64, opts ...option) time.Duration {
	e.t.Helper()
	runtime.GC()
	begun := time.Now()
	s := e.start(ids(board), opts...)
	defer s.stop()
	for {
		if ok, _ := s.Ready(); ok {
			break
		}
		time.Sleep(time.Millisecond)
	}
	took := time.Since(begun)
	if st := s.status(board.id); st.State != rankcache.StateOpen || st.Members != benchMembers || st.Have != benchUpdates {
		e.t.Fatalf("%+v", st)
	}
	if n := s.counter("rankcache_replay_records_total"); n != read {
		e.t.Fatalf("%v records were read, want %v", n, read)
	}
	return took
}

// refill gives more gifts, one after the other to members in turn.
func (b *board) refill(from, to int) {
	b.t.Helper()
	var us []wire.Update
	for seq := from + 1; seq <= to; seq++ {
		u := b.filled.Incr(fmt.Sprint(1_000_000+seq%benchMembers), 1)
		u.OrderID, u.At = fmt.Sprint(seq), 1_760_000_000_000
		us = append(us, u)
		if len(us) == 10_000 || seq == to {
			b.produce(us...)
			us = us[:0]
		}
	}
	b.check(b.filled.Redis(b.t.Context(), b.redis, b.names, 0))
}
