package replay_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/replay"
	"rankcache/wire"
)

// A new topic is noticed, and the records of the old ones do not come again.
func TestNewTopic(t *testing.T) {
	t.Parallel()
	for name, kafka := range brokers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, kafka)
			e.still = false // the new topic may be found between two of its records
			old, fresh := e.newBoard(1, nil), e.newBoard(0, nil)
			old.produce(old.gifts(200, 20)...)
			s := e.start(ids(old, fresh))
			s.waitOpen(old.id)
			fresh.parts = 1
			testkit.CreateTopic(t, kafka, fresh.topic(), 1, nil)
			made := time.Now()
			fresh.produce(fresh.gifts(50, 20)...)
			s.waitOpen(fresh.id)
			t.Logf("open %v after the topic was made", time.Since(made))
			old.produce(old.gifts(10, 20)...)
			for _, b := range ids(old, fresh) {
				testkit.Eventually(t, timeout, func() error { return s.equal(b) })
			}
			if n := s.counter("rankcache_replay_records_total"); n != 260 {
				t.Errorf("%v records, want 260: each one once", n)
			}
		})
	}
}

func brokers(t *testing.T) map[string]string {
	return map[string]string{"kafka": testkit.Kafka(t), "kfake": testkit.Kfake(t).Addr()}
}

// A board whose topic has or gets several partitions is not read from it, says what to do,
// and comes back with a topic of one. Other boards go on.
func TestTopicOfSeveralPartitions(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kfake(t).Addr())
	e.still = false
	wide, grown, fine := e.newBoard(3, nil), e.newBoard(1, nil), e.newBoard(1, nil)
	for _, b := range []*board{wide, grown, fine} {
		b.produce(b.gifts(20, 20)...)
	}
	s := e.start(ids(wide, grown, fine))
	testkit.Eventually(t, timeout, func() error {
		if _, why := s.Ready(); !strings.Contains(why, "has 3 partitions") {
			return errors.New(why)
		}
		return nil
	})
	s.waitOpen(fine.id)
	s.waitOpen(grown.id)
	grown.addPartitions(2)
	s.waitClosed(grown.id)
	s.waitReady()
	for _, b := range []*board{wide, grown} {
		testkit.Eventually(t, timeout, func() error {
			if st := s.status(b.id); st.State != rankcache.StateGivenUp || !strings.Contains(st.Reason, b.topic()) ||
				!strings.Contains(st.Reason, fmt.Sprintf("has %d partitions", b.parts)) || !strings.Contains(st.Reason, "delete the topic") {
				return fmt.Errorf("%+v", st)
			}
			return nil
		})
		testkit.DeleteTopic(t, b.kafka, b.topic())
		b.parts, b.client = 1, testkit.KafkaClient(t, e.kafka, kgo.RecordPartitioner(kgo.ManualPartitioner()))
		e.check(b.create())
		b.produce(b.gifts(5, 20)...)
		s.waitOpen(b.id)
	}
	if s.closings(fine.id) != 0 {
		t.Error("another board was closed")
	}
}

// Boards without seqs may have several partitions, whose number may grow: the topic is then
// read again.
func TestPartitionsOfABoardWithoutSeqs(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kfake(t).Addr())
	b := e.newBoard(2, nil)
	invite := func(n int) {
		for i := range n {
			u := wire.Update{Board: b.id, Member: fmt.Sprint(1000 + i%7), Op: wire.OpIncr, Delta: 1, OrderID: fmt.Sprint(b.parts, "/", i)}
			e.check(e.redis.ZIncrBy(t.Context(), e.names.BoardKey(b.id), 1, u.Member).Err())
			e.check(e.redis.Incr(t.Context(), "{"+string(b.id)+"}:count").Err())
			b.produce(u)
		}
	}
	invite(30)
	s := e.start(ids(b), totalIn(replay.TotalOrders, "key:{<board>}:count"))
	s.waitOpen(b.id)
	b.addPartitions(3)
	b.client = testkit.KafkaClient(t, e.kafka, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	invite(20)
	s.waitOpen(b.id)
	if s.closings(b.id) != 0 {
		t.Error("it was closed")
	}
}

// A topic that was deleted and recreated resets its board, and no other.
func TestRecreatedTopic(t *testing.T) {
	t.Parallel()
	for name, kafka := range brokers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, kafka)
			e.still = false // the board made anew may be compared while it is changed
			b, other := e.newBoard(1, nil), e.newBoard(1, nil)
			b.produce(b.gifts(50, 20)...)
			other.produce(other.gifts(50, 20)...)
			s := e.start(ids(b, other))
			s.waitOpen(b.id)
			s.waitOpen(other.id)
			b.recreate()
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

// A topic is deleted and made again while a fetch waits at the broker for more of it, and the board in Redis goes on: each answer is of
// a state that Redis had, and the board comes to Redis's again; another one whose fetches wait as well is never closed.
func TestTopicIsMadeAgainWhileAFetchWaits(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kafka(t))
	e.still = false
	b, other := e.newBoard(1, nil), e.newBoard(1, nil)
	sums := make(map[uint64]uint64) // of Redis, by seq
	give := func(n int) {
		gifts := b.gifts(n, 20)
		for i := range gifts {
			sums[gifts[i].Seq] = gifts[i].Sum
		}
		b.produce(gifts...)
	}
	give(50)
	other.produce(other.gifts(50, 20)...)
	s := e.start(ids(b, other), func(s *setup) { s.Kafka = map[string]string{"fetch.wait.max.ms": "1000"} })
	s.waitOpen(b.id)
	s.waitOpen(other.id)
	equal := func() error {
		if board, ok := s.boards.Get(b.id); ok {
			page, sum := rowsOf(board, 100), uint64(0)
			for _, row := range page.Entries {
				sum += wire.Hash(row.Member, row.Score)
			}
			if want, known := sums[page.Seq]; !known || sum&wire.SumMask != want {
				t.Errorf("read a board at %v that adds up to %x, Redis to %x", page.State, sum&wire.SumMask, want)
			}
		}
		return s.equal(b.id)
	}
	for _, n := range []int{5, 80} { // fewer records than before, and more: offsets alone would not tell
		b.recreateTopic()
		give(n)
		testkit.Eventually(t, timeout, equal)
	}
	if slices.Contains(s.boards.noted(), "close "+string(other.id)) {
		t.Errorf("the other board was closed: %q", s.boards.noted())
	}
	other.produce(other.gifts(5, 20)...)
	s.waitOpen(other.id)
}

// recreate deletes the board in Redis and in Kafka, and creates another of its name.
func (b *board) recreate() {
	b.t.Helper()
	b.check(b.redis.Del(context.Background(), b.names.BoardKey(b.id), b.names.MetaKey(b.id)).Err())
	b.seq = 0
	b.recreateTopic()
}

func (b *board) recreateTopic() {
	b.t.Helper()
	testkit.DeleteTopic(b.t, b.kafka, b.topic())
	b.client = testkit.KafkaClient(b.t, b.kafka, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	testkit.Eventually(b.t, timeout, b.create) // the broker deletes in its own time
}

func TestBoardsComeAndGo(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kafka(t))
	var all []*board
	for range 4 {
		b := e.newBoard(1, nil)
		b.produce(b.gifts(30, 10)...)
		all = append(all, b)
	}
	s := e.start(ids(all[0], all[1]))
	s.waitOpen(all[0].id)
	s.waitReady()
	for i := range 6 {
		now := []*board{all[i%4], all[(i+1)%4], all[(i+2)%4]}
		s.Follow(ids(now...))
		if ok, why := s.Ready(); !ok {
			t.Fatal("readiness fell:", why)
		}
		for _, b := range now {
			s.waitOpen(b.id)
		}
		testkit.Eventually(t, timeout, func() error {
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
	e := newEnv(t, testkit.Kafka(t))
	dot, colon := e.newBoard(0, nil), e.newBoard(0, nil)
	dot.id, colon.id = dot.id+".1", dot.id+":1"
	dot.parts, colon.parts = 1, 1
	testkit.CreateTopic(t, e.kafka, dot.topic(), 1, nil)
	for _, b := range []*board{dot, colon, dot, colon} {
		b.produce(b.gifts(20, 10)...)
	}
	s := e.start(ids(dot))
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
	e := newEnv(t, testkit.Kafka(t))
	b, other := e.newBoard(1, nil), e.newBoard(0, nil)
	b.produce(b.gifts(10, 5)...)
	for _, poison := range []string{"", "{", "\x00\xff", `{"v":3,"board":"x"}`, `{"v":2,"board":"` + string(b.id) + `","member":"m","op":"zap","seq":1}`,
		`{"v":2,"board":"` + string(b.id) + `","member":"m","op":"set","score":1,"seq":1,"order":"o"}`,
		strings.Repeat("x", wire.MaxUpdateLen+1)} {
		e.check(e.client.ProduceSync(t.Context(), &kgo.Record{Topic: b.topic(), Value: []byte(poison)}).FirstErr())
	}
	e.check(e.client.ProduceSync(t.Context(), &kgo.Record{Topic: b.topic()}).FirstErr()) // a tombstone
	stray := other.incr("m", 1)
	e.check(e.client.ProduceSync(t.Context(), &kgo.Record{Topic: b.topic(), Value: wire.AppendUpdate(nil, &stray)}).FirstErr())
	b.produce(b.gifts(10, 5)...)
	s := e.start(ids(b))
	s.waitOpen(b.id)
	for reason, want := range map[string]float64{"json": 4, "version": 1, "op": 1, "size": 1, "run": 1, "not-followed": 1} {
		if n := s.counter("rankcache_replay_skipped_records_total", reason); n != want {
			t.Errorf("%v records skipped for %s, want %v", n, reason, want)
		}
	}
}

// The older form carries no seq; the total is a count of orders under a key.
func TestOlderForm(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kafka(t))
	b := e.newBoard(1, nil)
	invite := func(inviter, invitee int) {
		value := fmt.Sprintf(`{"rank_id":%q,"inviter_uid":%d,"invitee_uid":%d}`, b.id, inviter, invitee)
		for range 2 { // each twice
			e.check(e.client.ProduceSync(t.Context(), &kgo.Record{Topic: b.topic(), Value: []byte(value)}).FirstErr())
		}
		e.check(e.redis.ZIncrBy(t.Context(), e.names.BoardKey(b.id), 1, fmt.Sprint(inviter)).Err())
		e.check(e.redis.Incr(t.Context(), "{"+string(b.id)+"}:count").Err())
	}
	for i := range 30 {
		invite(1000+i%7, i)
	}
	counted := e.start(ids(b), totalIn(replay.TotalOrders, "key:{<board>}:count"))
	none := e.start(ids(b), totalIn(replay.TotalNone, "none"))
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
	s.env.t.Helper()
	now := time.Now()
	testkit.Eventually(s.env.t, timeout, func() error {
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
	e := newEnv(t, testkit.Kafka(t))
	b := e.newBoard(1, nil)
	b.produce(b.gifts(10, 5)[1:]...)
	s := e.start(ids(b), totalIn(replay.TotalOrders, "seq"), deadline(2*time.Second))
	s.waitReady()
	if st := s.status(b.id); st.State != rankcache.StateGivenUp {
		t.Errorf("%+v, want it given up", st)
	}
}

// Boards open while they are written to, from logs with and without holes.
func TestBoardsOpenUnderWrites(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kafka(t))
	e.still = false
	whole, holes := e.newBoard(1, nil), e.newBoard(1, nil)
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
	s := e.start(ids(whole, holes))
	testkit.Eventually(t, timeout, func() error {
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
	e := newEnv(t, testkit.Kfake(t).Addr())
	b := e.newBoard(1, nil)
	b.produce(b.gifts(20, 10)...)
	s := e.start(ids(b))
	s.waitOpen(b.id)
	s.stop()
	if err := s.equal(b.id); err != nil {
		t.Error("the board went with the Runner:", err)
	}
}

func TestNoBoards(t *testing.T) {
	e := newEnv(t, testkit.Kfake(t).Addr())
	s := e.start(nil)
	s.waitReady()
}

func TestBoardsOpenEqualToRedis(t *testing.T) {
	e := newEnv(t, testkit.Kafka(t))
	one, two := e.newBoard(1, nil), e.newBoard(1, nil)
	for _, b := range []*board{one, two} {
		b.produce(b.gifts(500, 50)...)
	}
	s := e.start(ids(one, two))
	s.waitOpen(one.id)
	s.waitOpen(two.id)
	s.waitReady()
	for _, b := range []*board{one, two} {
		b.produce(b.gifts(300, 60)...)
		s.waitOpen(b.id)
	}
	for _, b := range s.Status() {
		if b.State != rankcache.StateOpen || b.Have != 800 {
			t.Errorf("status %+v", b)
		}
	}
}

// An answer is of one moment: while an update is missing, those behind it are not
// seen, and when it comes all are.
func TestEarlyUpdatesAreNotSeen(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kfake(t).Addr())
	b := e.newBoard(1, nil)
	b.produce(b.gifts(50, 20)...)
	s := e.start(ids(b))
	s.waitOpen(b.id)
	local, _ := s.boards.Get(b.id)
	before := rowsOf(local, 1000)
	us := b.gifts(100, 20)
	b.produce(us[1:]...)
	testkit.Eventually(t, timeout, func() error {
		if n := s.counter("rankcache_replay_records_total"); n != 149 {
			return fmt.Errorf("%v records", n)
		}
		return nil
	})
	b.produce(us[20]) // a repeat, so that all before it have been applied
	testkit.Eventually(t, timeout, func() error {
		if n := s.counter("rankcache_replay_records_total"); n != 150 {
			return fmt.Errorf("%v records", n)
		}
		return nil
	})
	now := rowsOf(local, 1000)
	if now.Seq != before.Seq || gocmp.Diff(before.Entries, now.Entries) != "" {
		t.Errorf("seq %d, was %d: %s", now.Seq, before.Seq, gocmp.Diff(before.Entries, now.Entries))
	}
	b.produce(us[0])
	s.waitOpen(b.id)
	if got := rowsOf(local, 1).Seq; got != 150 {
		t.Errorf("seq %d, want 150", got)
	}
	for _, e := range s.boards.noted() {
		if e == "close "+string(b.id) {
			t.Error("the board was closed")
		}
	}
}
