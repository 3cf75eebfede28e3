package localboard

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"rankcache"
	"rankcache/wire"
)

func TestLoadFence(t *testing.T) {
	for _, open := range []bool{false, true} {
		b := newBoard(t)
		b.Apply([]wire.Update{
			set("old", 1, 1), set("unlisted", 1, 2), set("same", 3, 3),
			set("newer", 9, 12), del("removed since", 13),
		})
		if open {
			b.Publish()
		}
		// The scan began after seq 10 and saw some of what came later.
		err := b.Load(10, []rankcache.Entry{
			{Member: "old", Score: 5}, {Member: "same", Score: 3}, {Member: "newer", Score: 8},
		}, nil, []rankcache.Entry{{Member: "removed since", Score: 2}, {Member: "new", Score: math.Copysign(0, -1)}})
		if err != nil {
			t.Fatal(err)
		}
		b.Publish()
		want := []rankcache.Entry{
			{Member: "newer", Score: 9}, {Member: "old", Score: 5}, {Member: "same", Score: 3}, {Member: "new", Score: 0},
		}
		if diff := gocmp.Diff(want, whole(b, rankcache.Descending)); diff != "" {
			t.Errorf("open %v (-want +got):\n%s", open, diff)
		}
		if p := b.Progress(); p != (rankcache.Progress{Contiguous: 10, Highest: 13, Members: 4}) {
			t.Errorf("open %v: progress %+v", open, p)
		}
		if top := topOf(b).Entries; math.Signbit(top[3].Score) {
			t.Error("-0 was kept")
		}
		if n := b.Apply([]wire.Update{set("old", 4, 4), set("old", 7, 11)}); n != (rankcache.ApplyResult{Applied: 1, Duplicate: 1}) {
			t.Errorf("after the snapshot: %+v", n)
		}
		if p := b.Progress(); p.Contiguous != 13 {
			t.Errorf("the hole at 11 is filled: %+v", p)
		}
	}
}

// TestLoadIsTheModel loads snapshots between updates, into boards that are open
// and not.
func TestLoadIsTheModel(t *testing.T) {
	b, m := newBoard(t), newModel()
	s := &generator{Rand: rand.New(rand.NewPCG(11, 12)), members: 400, scores: smallScores}
	loaded := 0
	for range 80 {
		us := s.batch(100, true)
		b.Apply(us)
		m.apply(us)
		if s.IntN(4) == 0 {
			seq := s.seq - uint64(s.IntN(200))
			es := snapshot(s)
			if err := b.Load(seq, es); err == nil {
				m.load(seq, es)
				loaded++
			} else if !errors.Is(err, ErrOldSnapshot) {
				t.Fatal(err)
			}
		}
		if s.IntN(3) == 0 {
			b.Publish()
			m.compare(t, b)
			check(t, b)
		}
	}
	if loaded < 5 {
		t.Errorf("only %d snapshots were loaded", loaded)
	}
}

// snapshot returns some of the members, each once.
func snapshot(s *generator) []rankcache.Entry {
	es, in := []rankcache.Entry{}, map[string]bool{}
	for range s.IntN(s.members) {
		if id := s.id(); !in[id] {
			in[id] = true
			es = append(es, rankcache.Entry{Member: id, Score: smallScores(s.Rand)})
		}
	}
	return es
}

func TestLoadRefuses(t *testing.T) {
	b := newBoard(t)
	b.Apply([]wire.Update{set("a", 1, 1)})
	for name, e := range map[string]rankcache.Entry{
		"65,5":     {Member: strings.Repeat("x", maxMember+1)},
		"a number": {Member: "b", Score: math.NaN()},
	} {
		err := b.Load(5, []rankcache.Entry{{Member: "c", Score: 1}, e})
		if err == nil || !strings.Contains(err.Error(), strings.Split(name, ",")[0]) {
			t.Errorf("error %v, want it to contain %q", err, name)
		}
	}
	if p := b.Progress(); p != (rankcache.Progress{Contiguous: 1, Highest: 1, Members: 1}) {
		t.Errorf("something was loaded: %+v", p)
	}
}

// TestLoadOlderThanForgotten: a snapshot that was read before a removal still has the
// member. So the board keeps the seq of the last tombstone that it dropped.
func TestLoadOlderThanForgotten(t *testing.T) {
	b := newBoard(t)
	seq := churn(b, 0, 3*compactFloor)
	if b.forgottenSeq == 0 {
		t.Fatal("no tombstone was dropped")
	}
	err := b.Load(b.forgottenSeq-1, []rankcache.Entry{{Member: "guest0", Score: 1}})
	if !errors.Is(err, ErrOldSnapshot) {
		t.Errorf("error %v, want ErrOldSnapshot", err)
	}
	if err := b.Load(seq, nil); err != nil {
		t.Error(err)
	}
}

// TestLoadOlderThanLoaded: the newer snapshot was empty.
func TestLoadOlderThanLoaded(t *testing.T) {
	b := newBoard(t)
	if err := b.Load(10, nil); err != nil {
		t.Fatal(err)
	}
	if err := b.Load(9, []rankcache.Entry{{Member: "a", Score: 1}}); !errors.Is(err, ErrOldSnapshot) {
		t.Errorf("error %v, want ErrOldSnapshot", err)
	}
	if err := b.Load(10, []rankcache.Entry{{Member: "a", Score: 1}}); err != nil {
		t.Errorf("a second snapshot of the same seq: %v", err)
	}
}
