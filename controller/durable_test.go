package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"rankcache"
	"rankcache/internal/lab/servers"
	"rankcache/internal/masters"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// era returns the present era of the fixture's Redis.
func (f *fixture) era(t *testing.T) string {
	t.Helper()
	era, err := masters.Era(f.redis.Info(t.Context(), "replication").Result())
	must(t, err)
	return era[:wire.EraLen]
}

// place sets positions of the partitions, of the topic's id unless another one is given.
func (f *fixture) place(t *testing.T, healed, topic string, next ...int64) {
	t.Helper()
	if topic == "" {
		var err error
		topic, err = f.kafka.topicID(t.Context())
		must(t, err)
	}
	key := f.opts.Names.AppliedKey(masters.Tag(0))
	must(t, f.redis.Del(t.Context(), key).Err())
	for p, n := range next {
		must(t, f.redis.HSet(t.Context(), key, p, fmt.Sprintf("%s %d %s", topic, n, healed)).Err())
	}
}

// newLasting returns a board of a durable class whose period is over, on a Redis of its own. Marks are at the
// markers themselves, as the broker does not date them.
func newLasting(t *testing.T) (*fixture, rankcache.BoardID, *servers.Redis) {
	t.Helper()
	server := testkit.StartRedis(t, servers.RedisOptions{})
	f := newFixture(t, testkit.Kfake(t).Addr(), map[string]string{}, func(o *Options) { o.Redis = client(t, server.Addr()) })
	return f, f.board(t, "lasting", time.Now().Add(-48*time.Hour), wire.LifeOpen), server
}

// want looks once and checks a board's life, how many are in the index, and what is waited for.
func (f *fixture) want(t *testing.T, b rankcache.BoardID, life wire.Life, indexed int, waitsFor string) {
	t.Helper()
	f.look(t)
	if got, n := f.meta(t, b).Life, len(f.indexed(t)); got != life || n != indexed {
		t.Errorf("life %d, want %d; %d in the index, want %d", got, life, n, indexed)
	}
	if s := f.Status(); waitsFor == "" && s.WaitsFor != "" || !strings.Contains(s.WaitsFor, waitsFor) {
		t.Errorf("status %+v, want that it waits for %q", s, waitsFor)
	}
}

// A durable board is closed once the positions of its master are healed in the present era and at the marks;
// what the group has committed tells nothing of it.
func TestDurableBoardIsClosedByPositions(t *testing.T) {
	t.Parallel()
	f, b, _ := newLasting(t)
	plain := f.board(t, "day", time.Now().Add(-48*time.Hour), wire.LifeOpen)
	f.commit(t, 100, 100)
	era := f.era(t)
	f.want(t, b, wire.LifeClosing, 1, "there is no position of partition 0: check that the rooms file of the writers")
	if life := f.meta(t, plain).Life; life != wire.LifeClosed {
		t.Errorf("life %d of a board that is not durable", life)
	}
	f.place(t, era, "", 2)
	f.want(t, b, wire.LifeClosing, 1, "no position of partition 1")
	f.place(t, era, "another", 100, 100)
	f.want(t, b, wire.LifeClosing, 1, "no position of partition 0")
	f.place(t, "0123456789abcdef", "", 100, 100)
	f.want(t, b, wire.LifeClosing, 1, "partition 0 is read again since the last failover on master "+masters.Tag(0))
	f.place(t, era, "", 100, 1)
	f.want(t, b, wire.LifeClosing, 1, "the position of partition 1 is 1, behind the mark before 2, on master")
	f.place(t, era, "", 2, 2)
	must(t, f.redis.HSet(t.Context(), f.opts.Names.AppliedKey(masters.Tag(0)), wire.PositionsDamaged, "1").Err())
	f.want(t, b, wire.LifeClosing, 1, "boards that Redis has lost are still to be rebuilt by rankcache ledger on master "+masters.Tag(0))
	f.place(t, era, "", 2, 2)
	f.want(t, b, wire.LifeClosed, 1, "")
	if s := f.Status(); s.Closing != 0 || s.Closed != 1 || s.Lag != 0 || s.Error != "" {
		t.Errorf("status %+v", s)
	}
}

// A closed durable board is looked at once more in the same era before the index lets it go. A failover may
// have taken the close back: then it is closed anew, by positions of the new era.
func TestSecondLook(t *testing.T) {
	t.Parallel()
	f, b, server := newLasting(t)
	f.want(t, b, wire.LifeClosing, 1, "no position")
	f.place(t, f.era(t), "", 1, 1)
	open := f.meta(t, b)
	f.want(t, b, wire.LifeClosed, 1, "")
	f.ahead = secondLook - time.Second
	f.want(t, b, wire.LifeClosed, 1, "")
	must(t, f.redis.Set(t.Context(), f.opts.Names.MetaKey(b), wire.AppendMeta(nil, &open), time.Hour).Err())
	f.ahead += time.Minute
	f.want(t, b, wire.LifeClosing, 1, "") // it is not what it was
	f.want(t, b, wire.LifeClosed, 1, "")
	f.ahead += time.Minute
	f.want(t, b, wire.LifeClosed, 1, "")

	must(t, f.redis.Save(t.Context()).Err())
	must(t, server.Kill())
	must(t, server.Restart(t.Context())) // another era
	f.ahead += 2 * time.Minute
	f.look(t) // it is closed, but by whom?
	f.want(t, b, wire.LifeClosed, 1, "partition 0 is read again since the last failover")
	f.place(t, f.era(t), "", 1, 1)
	f.want(t, b, wire.LifeClosed, 1, "")
	f.ahead += secondLook
	f.want(t, b, wire.LifeClosed, 0, "")
	if s := f.Status(); s.Closed != 0 || s.Error != "" {
		t.Errorf("status %+v", s)
	}
}

// A board that is not there may be one that a failover has lost.
func TestAbsentBoardWaitsForPositions(t *testing.T) {
	t.Parallel()
	f, b, _ := newLasting(t)
	must(t, f.redis.Del(t.Context(), f.opts.Names.MetaKey(b)).Err())
	for range 3 {
		f.look(t)
	}
	if n := len(f.indexed(t)); n != 1 {
		t.Fatalf("%d in the index", n)
	}
	f.place(t, f.era(t), "", 1, 1)
	f.look(t)
	if n := len(f.indexed(t)); n != 0 {
		t.Errorf("%d in the index", n)
	}
}

// Marks of a topic that was made again tell nothing.
func TestMarksOfATopicThatWasMadeAgain(t *testing.T) {
	t.Parallel()
	f, b, _ := newLasting(t)
	f.want(t, b, wire.LifeClosing, 1, "no position")
	testkit.DeleteTopic(t, f.broker, f.opts.Names.Commands)
	testkit.CreateTopic(t, f.broker, f.opts.Names.Commands, 3, nil)
	testkit.Eventually(t, time.Minute, func() error { // until the clients know it
		if err := f.closeBoards(t.Context()); err != nil {
			return err
		}
		f.place(t, f.era(t), "", 0, 0, 0)
		if s := f.Status().WaitsFor; !strings.Contains(s, "the position of partition 0 is 0, behind the mark before 1") {
			return fmt.Errorf("it waits for %q", s)
		}
		return nil
	})
	f.place(t, f.era(t), "", 1, 1, 1)
	f.want(t, b, wire.LifeClosed, 1, "")
}

// A final is of a board that is closed in the era in which it was.
func TestFinalOfAnotherEra(t *testing.T) {
	t.Parallel()
	f, b, _ := newLasting(t)
	meta := f.meta(t, b)
	for name, c := range map[string]struct {
		era  string
		life wire.Life
		want progress
	}{
		"another era": {"0123456789abcdef", wire.LifeClosed, progress{}},
		"not closed":  {f.era(t), wire.LifeOpen, progress{}},
	} {
		meta.Life = c.life
		must(t, f.redis.Set(t.Context(), f.opts.Names.MetaKey(b), wire.AppendMeta(nil, &meta), time.Hour).Err())
		m := &move{ended: ended{board: b, class: f.tiers.file.Class("lasting")}, progress: progress{life: wire.LifeClosed, era: c.era}}
		f.setLives(t.Context(), []*move{m}, wire.LifeFinal)
		if m.progress != c.want || m.err != nil || m.done || f.meta(t, b).Life != c.life {
			t.Errorf("%s: %+v, life %d", name, m, f.meta(t, b).Life)
		}
	}
}
