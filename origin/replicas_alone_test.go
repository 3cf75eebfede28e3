package origin

import (
	"errors"
	"testing"
	"time"

	"rankcache"
	"rankcache/internal/testkit"
)

// While the primary does not answer, its replica does, with the age that it has.
func TestReplicaAlone(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.awaitSync()
	p.read("replica", "", page)
	must(t, p.master.Kill())
	p.awaitState(reasonAlone)
	one := p.reads.table.Load().followers[0]
	for range 2 {
		a := p.read("replica", reasonAlone, page)
		if a.Seq != 917 || time.Since(a.CurrentAt) <= 0 {
			t.Errorf("%+v", a)
		}
		one.historyAt = one.historyAt.Add(-time.Minute) // as if it had been away for long
		if p.reads.Look(t.Context()); p.reads.State().Reason != string(reasonAlone) {
			t.Errorf("%+v", p.reads.State())
		}
	}
	for _, q := range []rankcache.Query{{Limit: 5, MinSeq: 918}, {Limit: 5, Primary: true}, {Limit: 5, MaxAge: time.Nanosecond}} {
		q.Board = p.id
		if a := rankcache.One(t.Context(), p.reads, q); !errors.Is(a.Err, rankcache.ErrUnavailable) {
			t.Errorf("%+v: %+v", q, a)
		}
	}
	must(t, p.far.ReplicaOf(t.Context(), "127.0.0.1", "1").Err()) // of another master than before
	p.awaitState(reasonPrimary)
	p.follow(p.master.Addr())
	p.awaitState(reasonAlone)
	must(t, p.far.ReplicaOf(t.Context(), "no", "one").Err())
	p.awaitState(reasonNoReplica)
	p.follow(p.master.Addr())

	must(t, p.master.Restart(t.Context())) // without its boards
	testkit.Eventually(t, testTimeout, func() error { return p.client.Ping(t.Context()).Err() })
	p.awaitState("")
	if a := p.read("primary", reasonMissing, page); a.Members != 0 {
		t.Errorf("%+v", a)
	}
}

// A replica that was behind when the primary went is not read.
func TestReplicaAloneThatWasBehind(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.tick(time.Minute)
	p.awaitState(reasonBehind)
	must(t, p.master.Kill())
	p.awaitState(reasonPrimary)
	if a := rankcache.One(t.Context(), p.reads, rankcache.Query{Board: p.id, Limit: 5}); !errors.Is(a.Err, rankcache.ErrUnavailable) {
		t.Errorf("%+v", a)
	}
}
