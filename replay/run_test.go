package replay_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/replay"
)

// A new topic is noticed, and the records of the old ones do not come again.
func TestNewTopic(t *testing.T) {
	t.Parallel()
	for name, kafka := range brokers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, kafka)
			old, fresh := w.newBoard(2, nil), w.newBoard(0, nil)
			old.produce(old.gifts(200, 20)...)
			s := w.start(ids(old, fresh))
			s.waitOpen(old.id)
			fresh.parts = 1
			testkit.CreateTopic(t, kafka, fresh.topic(), 1, nil)
			made := time.Now()
			fresh.produce(fresh.gifts(50, 20)...)
			s.waitOpen(fresh.id)
			t.Logf("open %v after the topic was made", time.Since(made))
			old.produce(old.gifts(10, 20)...)
			s.waitOpen(old.id)
			if n := s.counter("rankcache_replay_records_total"); n != 260 {
				t.Errorf("%v records, want 260: each one once", n)
			}
		})
	}
}

func brokers(t *testing.T) map[string]string {
	return map[string]string{"kafka": testkit.Kafka(t), "kfake": testkit.Kfake(t).Addr()}
}

func TestNewPartitions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Kfake(t).Addr())
	b := w.newBoard(1, nil)
	b.produce(b.gifts(20, 20)...)
	s := w.start(ids(b))
	s.waitOpen(b.id)
	b.widen(3)
	b.client = testkit.KafkaClient(t, w.kafka, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	b.produce(b.gifts(20, 20)...)
	s.waitOpen(b.id)
	if n := s.counter("rankcache_replay_records_total"); n != 40 {
		t.Errorf("%v records, want 40: each one once", n)
	}
}

// A topic that was deleted and made again fills its board anew, and no other.
func TestTopicMadeAgain(t *testing.T) {
	t.Parallel()
	for name, kafka := range brokers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, kafka)
			b, other := w.newBoard(1, nil), w.newBoard(1, nil)
			b.produce(b.gifts(50, 20)...)
			other.produce(other.gifts(50, 20)...)
			s := w.start(ids(b, other))
			s.waitOpen(b.id)
			s.waitOpen(other.id)
			b.bury()
			b.produce(b.gifts(120, 30)...) // longer than before: offsets alone would not tell
			s.waitClosed(b.id)             // until the id is seen, the new tail may pass for the old one's
			s.waitOpen(b.id)
			other.produce(other.gifts(5, 20)...)
			s.waitOpen(other.id)
			b.produce(b.gifts(5, 30)...)
			s.waitOpen(b.id)
			if n := s.counter("rankcache_replay_updates_total", string(other.id)); n != 55 {
				t.Errorf("%v updates of the other board, want 55: each one once", n)
			}
			if slices.Contains(s.boards.noted(), "close "+string(other.id)) {
				t.Errorf("want the other board open all the time: %q", s.boards.noted())
			}
		})
	}
}

// bury ends the board in Redis and in Kafka, and begins another of its name.
func (b *board) bury() {
	b.t.Helper()
	b.check(b.redis.Del(context.Background(), b.names.BoardKey(b.id), b.names.SeqKey(b.id)).Err())
	testkit.DeleteTopic(b.t, b.kafka, b.topic())
	b.seq = 0
	b.client = testkit.KafkaClient(b.t, b.kafka, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	testkit.Eventually(b.t, patience, b.create) // the broker deletes in its own time
}

func TestBoardsComeAndGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Kafka(t))
	var all []*board
	for range 4 {
		b := w.newBoard(1, nil)
		b.produce(b.gifts(30, 10)...)
		all = append(all, b)
	}
	s := w.start(ids(all[0], all[1]))
	s.waitOpen(all[0].id)
	s.waitSettled()
	for i := range 6 {
		now := []*board{all[i%4], all[(i+1)%4], all[(i+2)%4]}
		s.Follow(ids(now...))
		if ok, why := s.Settled(); !ok {
			t.Fatal("readiness fell:", why)
		}
		for _, b := range now {
			s.waitOpen(b.id)
		}
		testkit.Eventually(t, patience, func() error {
			if n, gone := len(s.boards.All()), all[(i+3)%4].id; n != 3 || s.status(gone) != (rankcache.BoardStatus{}) {
				return fmt.Errorf("%d boards; the dropped one: %+v", n, s.status(gone))
			}
			return nil
		})
	}
}

// Two boards may have one topic, because a ":" is a "." there. One that comes
// later gets the topic from its beginning.
func TestBoardsThatShareATopic(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Kafka(t))
	dot, colon := w.newBoard(0, nil), w.newBoard(0, nil)
	dot.id, colon.id = dot.id+".1", dot.id+":1"
	dot.parts, colon.parts = 1, 1
	testkit.CreateTopic(t, w.kafka, dot.topic(), 1, nil)
	for _, b := range []*board{dot, colon, dot, colon} {
		b.produce(b.gifts(20, 10)...)
	}
	s := w.start(ids(dot))
	s.waitOpen(dot.id)
	s.Follow(ids(dot, colon))
	s.waitOpen(colon.id)
	dot.produce(dot.gifts(5, 10)...)
	s.waitOpen(dot.id)
	if n := len(s.boards.noted()); n != 2 {
		t.Errorf("%q: want each board opened once and none closed", s.boards.noted())
	}
}

func TestPoisonRecords(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Kafka(t))
	b, other := w.newBoard(1, nil), w.newBoard(0, nil)
	b.produce(b.gifts(10, 5)...)
	for _, poison := range []string{"", "{", "\x00\xff", `{"v":2,"board":"x"}`, `{"v":1,"board":"` + string(b.id) + `","member":"m","op":"zap","seq":1}`,
		strings.Repeat("x", rankcache.MaxUpdateLen+1)} {
		w.check(w.client.ProduceSync(t.Context(), &kgo.Record{Topic: b.topic(), Value: []byte(poison)}).FirstErr())
	}
	w.check(w.client.ProduceSync(t.Context(), &kgo.Record{Topic: b.topic()}).FirstErr()) // a tombstone
	stray := other.incr("m", 1)
	w.check(w.client.ProduceSync(t.Context(), &kgo.Record{Topic: b.topic(), Value: rankcache.AppendUpdate(nil, &stray)}).FirstErr())
	b.produce(b.gifts(10, 5)...)
	s := w.start(ids(b))
	s.waitOpen(b.id)
	for reason, want := range map[string]float64{"json": 4, "version": 1, "op": 1, "size": 1, "not-followed": 1} {
		if n := s.counter("rankcache_replay_skipped_records_total", reason); n != want {
			t.Errorf("%v records skipped for %s, want %v", n, reason, want)
		}
	}
}

// The older form carries no seq; the total is a count of orders under a key.
func TestOlderForm(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Kafka(t))
	b := w.newBoard(1, nil)
	invite := func(inviter, invitee int) {
		value := fmt.Sprintf(`{"rank_id":%q,"inviter_uid":%d,"invitee_uid":%d}`, b.id, inviter, invitee)
		for range 2 { // each twice
			w.check(w.client.ProduceSync(t.Context(), &kgo.Record{Topic: b.topic(), Value: []byte(value)}).FirstErr())
		}
		w.check(w.redis.ZIncrBy(t.Context(), w.names.BoardKey(b.id), 1, fmt.Sprint(inviter)).Err())
		w.check(w.redis.Incr(t.Context(), "{"+string(b.id)+"}:count").Err())
	}
	for i := range 30 {
		invite(1000+i%7, i)
	}
	counted := w.start(ids(b), totalIn(replay.TotalOrders, "key:{<board>}:count"))
	none := w.start(ids(b), totalIn(replay.TotalNone, "none"))
	for _, s := range []*sidecar{counted, none} {
		s.waitOpen(b.id)
	}
	invite(1000, 99)
	for _, s := range []*sidecar{counted, none} {
		s.waitOpen(b.id)
		s.waitCurrent(b.id)
	}
}

// waitCurrent waits until the board is known to be as new as now.
func (s *sidecar) waitCurrent(id rankcache.BoardID) {
	s.w.t.Helper()
	now := time.Now()
	testkit.Eventually(s.w.t, patience, func() error {
		if b, ok := s.boards.Get(id); !ok || !b.CurrentAt().After(now) {
			return errors.New("not known to be current")
		}
		return nil
	})
}

// Orders that are missing without seqs keep the board shut, and readiness only
// until the deadline.
func TestMissingOrders(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Kafka(t))
	b := w.newBoard(1, nil)
	b.produce(b.gifts(10, 5)[1:]...)
	s := w.start(ids(b), totalIn(replay.TotalOrders, "seq"), deadline(2*time.Second))
	s.waitSettled()
	if st := s.status(b.id); st.State != rankcache.StateGivenUp {
		t.Errorf("%+v, want it given up", st)
	}
}

// Boards open while they are written to, from logs with and without holes.
func TestBoardsOpenUnderWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.Kafka(t))
	w.still = false
	whole, holes := w.newBoard(4, nil), w.newBoard(1, nil)
	whole.produce(whole.gifts(100, 20)...)
	holes.produce(holes.gifts(100, 20)[3:]...)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				whole.produce(whole.gifts(5, 20)...)
				holes.produce(holes.gifts(5, 20)...)
			}
		}
	}()
	s := w.start(ids(whole, holes))
	testkit.Eventually(t, patience, func() error {
		for _, id := range ids(whole, holes) {
			if st := s.status(id); st.State != rankcache.StateOpen {
				return fmt.Errorf("%+v", st)
			}
		}
		return nil
	})
	close(stop)
	<-done
	for _, b := range []*board{whole, holes} {
		s.waitOpen(b.id)
		if st := s.status(b.id); st.Have != b.seq {
			t.Errorf("%+v, want all %d", st, b.seq)
		}
	}
}

func TestRunLeavesNothingRunning(t *testing.T) {
	testkit.NoLeaks(t)
	w := newWorld(t, testkit.Kfake(t).Addr())
	b := w.newBoard(1, nil)
	b.produce(b.gifts(20, 10)...)
	s := w.start(ids(b))
	s.waitOpen(b.id)
	s.stop()
	if err := s.equal(b.id); err != nil {
		t.Error("the board went with the Runner:", err)
	}
}

func TestNoBoards(t *testing.T) {
	w := newWorld(t, testkit.Kfake(t).Addr())
	s := w.start(nil)
	s.waitSettled()
}
