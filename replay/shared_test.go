package replay_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/rooms"
	"rankcache/wire"
)

// sharedIn has the boards' updates in one topic, whose first ones that matter are three
// minutes old.
func sharedIn(topic string) option {
	return func(s *setup) {
		s.Log = func(rankcache.BoardID) rooms.Log {
			return rooms.Log{Topic: topic, Shared: true, First: time.Now().Add(-3 * time.Minute)}
		}
	}
}

// produceTo writes updates to partition 1 of a shared topic.
func (b *board) produceTo(topic string, at time.Time, us ...wire.Update) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	for i := range us {
		r := &kgo.Record{Topic: topic, Key: []byte(b.id), Value: wire.AppendUpdate(nil, &us[i]), Partition: 1, Timestamp: at}
		b.check(b.client.ProduceSync(ctx, r).FirstErr())
	}
}

// A shared topic is read from the first board's beginning on, and once. A board that has no
// change yet opens empty, and one that joins late comes from Redis; from then on both follow
// their updates, and those of other boards are skipped.
func TestSharedTopic(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kafka(t))
	e.still = false // boards change while others open
	topic := testkit.Name(t)
	testkit.CreateTopic(t, e.kafka, topic, 2, nil)
	ended, first, next, late := e.newBoard(0, nil), e.newBoard(0, nil), e.newBoard(0, nil), e.newBoard(0, nil)
	ended.produceTo(topic, time.Now().Add(-time.Hour), ended.gifts(40, 10)...)
	first.produceTo(topic, time.Now(), first.gifts(30, 10)...)
	s := e.start(ids(first), sharedIn(topic))
	s.waitOpen(first.id)
	wantRead := func(want float64) {
		t.Helper()
		testkit.Eventually(t, timeout, func() error {
			if got := s.counter("rankcache_replay_records_total"); got < want {
				return errors.New("not read yet")
			}
			return nil
		})
		if got := s.counter("rankcache_replay_records_total"); got != want {
			t.Errorf("%v records were read, want %v", got, want)
		}
	}
	wantRead(30)

	late.produceTo(topic, time.Now(), late.gifts(20, 10)...)
	wantRead(50)
	s.Follow(ids(first, next, late))
	s.waitOpen(next.id)
	s.waitOpen(late.id)
	if n := s.counter("rankcache_replay_snapshots_total"); n != 1 {
		t.Errorf("%v boards came from Redis, want that which was changed before", n)
	}
	for _, b := range []*board{next, late, first} {
		b.produceTo(topic, time.Now(), b.gifts(15, 10)...)
		s.waitOpen(b.id)
	}
	wantRead(95)
	if st := s.status(next.id); st.Proof.State.Run == 0 || !st.Proof.State.HasSum {
		t.Errorf("a board that opened empty has the state %v", st.Proof.State)
	}
	s.Follow(ids(first))
	next.produceTo(topic, time.Now(), next.gifts(5, 10)...)
	first.produceTo(topic, time.Now(), first.gifts(5, 10)...)
	s.waitOpen(first.id)
	wantRead(105)
}

// A board whose updates are elsewhere from now on, as a class was added, begins anew there.
func TestBoardMovesToAnotherTopic(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kfake(t).Addr())
	e.still = false
	b := e.newBoard(1, nil)
	b.produce(b.gifts(20, 10)...)
	topic, moved := testkit.Name(t), make(chan struct{})
	testkit.CreateTopic(t, e.kafka, topic, 2, nil)
	s := e.start(ids(b), func(s *setup) {
		own := s.Names.Topic
		s.Log = func(id rankcache.BoardID) rooms.Log {
			select {
			case <-moved:
				return rooms.Log{Topic: topic, Shared: true, First: time.Now().Add(-time.Minute)}
			default:
				return rooms.Log{Topic: own(id)}
			}
		}
	})
	s.waitOpen(b.id)
	close(moved)
	b.produceTo(topic, time.Now(), b.gifts(5, 10)...)
	s.Follow(ids(b))
	s.waitOpen(b.id)
}

// A board that opened empty is closed when Redis has members of it that no update has
// brought.
func TestEmptyBoardThatIsFilledByHand(t *testing.T) {
	t.Parallel()
	e := newEnv(t, testkit.Kfake(t).Addr())
	e.still = false
	b := e.newBoard(1, nil)
	s := e.start(ids(b))
	s.waitOpen(b.id)
	b.incr("by hand", 7)
	b.check(b.redis.Del(context.Background(), b.names.MetaKey(b.id)).Err())
	s.waitClosed(b.id)
	b.check(b.redis.Del(context.Background(), b.names.BoardKey(b.id)).Err())
	b.produce(b.gifts(5, 5)...)
	s.waitOpen(b.id)
}
