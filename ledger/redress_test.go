package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rankcache"
	"rankcache/internal/testkit"
	"rankcache/wire"
)

// fakeRedis has one history of a board, with the records of its orders, and applies commands
// as the writers do.
type fakeRedis struct {
	*history
	updates map[string]*wire.LedgerUpdate // by order id
	life    wire.Life
	gone    bool
}

func newFakeRedis(h *history) *fakeRedis {
	return &fakeRedis{history: h, updates: make(map[string]*wire.LedgerUpdate)}
}

// fork returns a replica that has all of it.
func (r *fakeRedis) fork() *fakeRedis {
	f := newFakeRedis(r.clone())
	for id, u := range r.updates {
		f.updates[id] = u
	}
	return f
}

// apply returns the update of a command, the first one's if it is a repeat.
func (r *fakeRedis) apply(op wire.Op, member string, number float64, order string) *wire.LedgerUpdate {
	if r.updates[order] == nil {
		u := r.change(op, member, number, order)
		u.At = redressNow.UnixMilli()
		r.updates[order] = u
	}
	return r.updates[order]
}

func (r *fakeRedis) Verdicts(_ context.Context, changes []*wire.Update) ([]Verdict, error) {
	verdicts := make([]Verdict, len(changes))
	for i, u := range changes {
		if mine := r.updates[u.OrderID]; mine != nil && mine.Run == u.Run && mine.Seq == u.Seq {
			verdicts[i] = Held
		} else if mine != nil {
			verdicts[i] = Lost
		}
	}
	return verdicts, nil
}

func (r *fakeRedis) Metas(context.Context, []rankcache.BoardID) (map[rankcache.BoardID]wire.Meta, error) {
	metas := make(map[rankcache.BoardID]wire.Meta)
	if !r.gone {
		metas[r.board] = wire.Meta{State: rankcache.State{Run: r.run, Seq: r.seq, Sum: r.sum, HasSum: true}, OrderLife: 3600, Life: r.life}
	}
	return metas, nil
}

var redressNow = time.UnixMilli(1700000000000)

// redressing is a ledger's store whose redresser posts to a fakeRedis; what that applies is
// in the ledger's topic, and is fed by flow.
type redressing struct {
	*redresser
	t     *testing.T
	redis *fakeRedis
	next  int64
	topic []*wire.LedgerUpdate
}

func newRedressing(t *testing.T, s *Store, r *fakeRedis) *redressing {
	f := &redressing{t: t, redis: r}
	s.Orders = r
	f.redresser = &redresser{store: s, metrics: newMetrics(nil), log: slog.New(slog.DiscardHandler), now: func() time.Time { return redressNow }}
	f.post = func(_ context.Context, changes []*wire.Update) error {
		for _, u := range changes {
			number := u.Score
			if u.Op == wire.OpIncr {
				number = u.Delta
			}
			f.do(u.Op, u.Member, number, u.OrderID)
		}
		return nil
	}
	return f
}

// do has Redis apply a command.
func (f *redressing) do(op wire.Op, member string, number float64, order string) {
	f.topic = append(f.topic, f.redis.apply(op, member, number, order))
}

func (f *redressing) incr(member string, n int) {
	for range n {
		f.do(wire.OpIncr, member, 1, fmt.Sprintf("%s-%d", member, f.redis.seq))
	}
}

// flow has the ledger consume what is in the topic.
func (f *redressing) flow() (done Result) {
	f.next, done = feed(f.t, f.store, f.next, f.topic...)
	f.topic = nil
	return done
}

// failover has Redis go on as a replica.
func (f *redressing) failover(to *fakeRedis) { f.redis, f.store.Orders = to, to }

// rounds runs the redress n times, 2 s apart, and returns what is pending.
func (f *redressing) rounds(n int) (pending int) {
	f.t.Helper()
	for range n {
		begun := f.redresser.now()
		f.redresser.now = func() time.Time { return begun.Add(redressEvery) }
		var err error
		if pending, err = f.round(f.t.Context()); err != nil {
			f.t.Fatal(err)
		}
		f.flow()
	}
	return pending
}

// lost returns the rows of rank_lost as text, by seq.
func (f *redressing) lost() (rows []string) {
	f.t.Helper()
	q := "SELECT member, op, state, COALESCE(reason, ''), COALESCE(score, -1), COALESCE(now_score, -1), COALESCE(redressed_seq, 0) FROM rank_lost ORDER BY run, seq, id"
	selectRows(f.t, f.store, q, func(row *sql.Rows) error {
		var member, op, reason string
		var state, seq int
		var score, now float64
		err := row.Scan(&member, &op, &state, &reason, &score, &now, &seq)
		rows = append(rows, fmt.Sprint(op, " ", member, " ", state, " ", reason, " ", score, " ", now, " ", seq))
		return err
	})
	return rows
}

func (f *redressing) wantLost(want ...string) {
	f.t.Helper()
	if diff := cmp.Diff(want, f.lost()); diff != "" {
		f.t.Errorf("rank_lost (-want +got):\n%s", diff)
	}
}

// A board that Redis has at an earlier place gets what it has lost again, though no other
// change has taken its seqs, each once.
func TestRedressOfAQuietBoard(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		f := newRedressing(t, s, newFakeRedis(newHistory("b", 5)))
		f.incr("a", 3)
		replica := f.redis.fork()
		f.incr("a", 2)
		f.incr("b", 1)
		f.flow()
		want := f.redis.scores
		f.failover(replica)
		if pending := f.rounds(2); pending != 0 {
			t.Errorf("%d pending", pending)
		}
		if diff := cmp.Diff(want, replica.scores); diff != "" {
			t.Errorf("scores in Redis (-want +got):\n%s", diff)
		}
		wantProved(t, s, []*history{replica.history})
		f.wantLost("incr a 1  4 -1 4", "incr a 1  5 -1 5", "incr b 1  1 -1 6")
		if n := f.rounds(3); n != 0 || replica.seq != 6 {
			t.Errorf("%d pending, seq %d: want nothing more", n, replica.seq)
		}
	})
}

// While the new master gives the lost seqs to others: increments are applied again behind
// increments, and not behind a set or delete; sets and deletes only where nothing has changed.
func TestWhatIsNotRedressed(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		f := newRedressing(t, s, newFakeRedis(newHistory("b", 5)))
		for _, m := range []string{"busy", "set", "gone", "kept", "free", "both"} {
			f.do(wire.OpSet, m, 100, "first-"+m)
		}
		replica := f.redis.fork()
		f.do(wire.OpIncr, "busy", 1, "l1")
		f.do(wire.OpIncr, "set", 1, "l2")
		f.do(wire.OpDelete, "gone", 0, "l3")
		f.do(wire.OpSet, "kept", 7, "l4")
		f.do(wire.OpDelete, "free", 0, "l5")
		f.do(wire.OpSet, "both", 50, "l6")
		f.do(wire.OpIncr, "both", 5, "l7")
		f.flow()
		f.failover(replica)
		f.do(wire.OpIncr, "busy", 10, "n1")
		f.do(wire.OpSet, "set", 20, "n2")
		f.do(wire.OpIncr, "gone", 30, "n3")
		f.do(wire.OpIncr, "kept", 40, "n4")
		f.flow()
		if pending := f.rounds(2); pending != 0 {
			t.Errorf("%d pending", pending)
		}
		want := map[string]float64{"busy": 111, "set": 20, "gone": 130, "kept": 140, "both": 55}
		if diff := cmp.Diff(want, replica.scores); diff != "" {
			t.Errorf("scores in Redis (-want +got):\n%s", diff)
		}
		wantProved(t, s, []*history{replica.history})
		f.wantLost("incr busy 1  101 -1 11", "incr set 2 changed 101 20 0", "delete gone 2 changed -1 130 0", "set kept 2 changed 7 140 0",
			"delete free 1  -1 -1 12", "set both 1  50 -1 13", "incr both 1  55 -1 14")
	})
}

// A set that comes between the decision and the increment is found afterwards.
func TestRedressThatRacesASet(t *testing.T) {
	s := newStore(t, testkit.Database(t, "postgres"))
	f := newRedressing(t, s, newFakeRedis(newHistory("b", 5)))
	f.do(wire.OpSet, "a", 100, "o1")
	replica := f.redis.fork()
	f.do(wire.OpIncr, "a", 1, "o2")
	f.flow()
	f.failover(replica)
	post := f.post
	f.post = func(ctx context.Context, changes []*wire.Update) error {
		f.do(wire.OpSet, "a", 7, "o3")
		return post(ctx, changes)
	}
	f.rounds(2)
	f.wantLost("incr a 2 raced 101 8 0")
}

// A board that was born just before the failover is not in Redis at all, or is born again.
func TestLostBirth(t *testing.T) {
	for _, again := range []bool{false, true} {
		both(t, func(t *testing.T, s *Store) {
			f := newRedressing(t, s, newFakeRedis(newHistory("b", 5)))
			f.incr("a", 3)
			f.flow()
			f.failover(newFakeRedis(newHistory("b", 9)))
			if again {
				f.incr("b", 1)
				f.flow()
			} else {
				f.redis.gone = true
			}
			f.rounds(1)
			f.redis.gone = false
			if n := f.rounds(1); n != 0 {
				t.Errorf("%d pending", n)
			}
			if f.redis.scores["a"] != 3 || count(t, s, "rank_lost WHERE state = 1") != 3 {
				t.Errorf("%v %v", f.redis.scores, f.lost())
			}
			wantProved(t, s, []*history{f.redis.history})
		})
	}
}

// An older board that is not in Redis has expired, or was deleted.
func TestExpiredBoardIsNotLost(t *testing.T) {
	s := newStore(t, testkit.Database(t, "postgres"))
	f := newRedressing(t, s, newFakeRedis(newHistory("b", 5)))
	f.incr("a", 3)
	f.flow()
	f.redis.gone = true
	f.redresser.now = func() time.Time { return redressNow.Add(6 * time.Minute) }
	if f.rounds(2); len(f.lost()) > 0 || f.redis.seq != 3 {
		t.Errorf("lost %v, seq %d", f.lost(), f.redis.seq)
	}
}

// backRedis has a board again as soon as it was asked for its orders: it is rebuilt meanwhile.
type backRedis struct{ *fakeRedis }

func (r backRedis) Verdicts(ctx context.Context, changes []*wire.Update) ([]Verdict, error) {
	if !r.gone {
		return r.fakeRedis.Verdicts(ctx, changes)
	}
	r.gone = false
	r.run++
	return make([]Verdict, len(changes)), nil
}

// A board that Redis did not have, and has again when its changes are about to be moved, is not
// lost: the ledger would lack them, and nobody would apply them again.
func TestRebuiltBoardIsNotLost(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		f := newRedressing(t, s, newFakeRedis(newHistory("b", 5)))
		f.incr("a", 3)
		f.flow()
		f.redis.gone = true
		s.Orders = backRedis{f.redis}
		if f.rounds(3); len(f.lost()) > 0 || f.redis.gone {
			t.Errorf("lost %v", f.lost())
		}
		f.incr("a", 1)
		f.flow()
		wantProved(t, s, []*history{f.redis.history})
	})
}

// What comes too late to be applied is reported; until then a board is not settled.
func TestRedressEnds(t *testing.T) {
	for name, after := range map[string]func(*redressing){
		"too_old": func(f *redressing) {
			f.redresser.now = func() time.Time { return redressNow.Add(3 * time.Hour) }
		},
		"closed": func(f *redressing) { f.redis.life = wire.LifeClosed },
		"gone": func(f *redressing) {
			f.redis.gone = true
			f.redresser.now = func() time.Time { return redressNow.Add(11 * time.Minute) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t, testkit.Database(t, "postgres"))
			f := newRedressing(t, s, newFakeRedis(newHistory("b", 5)))
			f.incr("a", 1)
			replica := f.redis.fork()
			f.incr("a", 1)
			f.flow()
			f.failover(replica)
			f.post = func(context.Context, []*wire.Update) error { return nil } // no writer runs
			settled := func(want bool) {
				t.Helper()
				if got, err := s.Settled(t.Context(), "b", replica.state()); err != nil || got != want {
					t.Errorf("settled %v, %v, want %v", got, err, want)
				}
			}
			settled(false)
			if n := f.rounds(2); n != 1 {
				t.Errorf("%d pending, want 1", n)
			}
			settled(false)
			after(f)
			if n := f.rounds(1); n != 0 {
				t.Errorf("%d pending", n)
			}
			f.wantLost("incr a 2 " + name + " 2 1 0")
			settled(true)
		})
	}
}

func (r *fakeRedis) state() rankcache.State {
	return rankcache.State{Run: r.run, Seq: r.seq, Sum: r.sum, HasSum: true}
}

// Nothing is decided while the ledger does not have what has happened since: a set may be
// among it.
func TestRedressWaitsForTheLedger(t *testing.T) {
	s := newStore(t, testkit.Database(t, "postgres"))
	f := newRedressing(t, s, newFakeRedis(newHistory("b", 5)))
	f.do(wire.OpSet, "a", 100, "o1")
	replica := f.redis.fork()
	f.do(wire.OpIncr, "a", 1, "o2")
	f.flow()
	f.failover(replica)
	f.do(wire.OpIncr, "b", 1, "n1")
	f.flow() // clashes
	f.do(wire.OpSet, "a", 7, "n2")
	behind := f.topic
	f.topic = nil
	if n := f.rounds(3); n != 1 || f.redis.scores["a"] != 7 {
		t.Errorf("%d pending, scores %v: want one change that waits", n, f.redis.scores)
	}
	f.topic = behind
	f.flow()
	f.rounds(1)
	f.wantLost("incr a 2 changed 101 7 0")
}
