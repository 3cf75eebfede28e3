package localboard

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"rankcache"
	"rankcache/wire"
)

// TestOthersAreLetInBetween: while a board is loaded, and sorted for the first time, other goroutines take its lock: what they
// apply then has its effect as if they had come before or after.
func TestOthersAreLetInBetween(t *testing.T) {
	const members = 4 * loadPiece
	for _, churns := range []bool{false, true} {
		b, m := newBoard(t), newModel()
		s := &generator{Rand: rand.New(rand.NewPCG(3, 4)), members: members, scores: smallScores}
		before := s.batch(members, true)
		b.Apply(before)
		m.apply(before)
		var between []wire.Update
		b.pause = func() {
			if !b.mu.TryLock() {
				return // a step of the publication itself
			}
			us := s.batch(3, true)
			b.applyAll(us)
			between = append(between, us...)
			b.mu.Unlock()
			if seq := s.seq; churns && b.numbered {
				s.seq = churn(b, seq, 3*compactFloor) // enough to compact
				for i := range 3 * compactFloor {
					id := fmt.Sprint("guest", i)
					between = append(between, set(id, 1, seq+1), del(id, seq+2))
					seq += 2
				}
			}
		}
		loadAndSort(t, b, m, s, &between, churns)
		check(t, b)
	}
}

func loadAndSort(t *testing.T, b *Board, m *model, s *generator, between *[]wire.Update, churns bool) {
	t.Helper()
	seq, es := s.seq, everyone(s)
	if err := b.Load(seq, es); err != nil {
		t.Fatal(err)
	}
	m.load(seq, es)
	if lets := len(*between) / 3; lets < len(es)/loadPiece || m.apply(*between).Applied == 0 {
		t.Errorf("others are let in %d times while %d members are loaded", lets, len(es))
	}
	*between = nil
	b.Publish()
	if len(*between) == 0 {
		t.Error("others are not let in while the board is sorted")
	}
	if !churns {
		m.apply(*between)
		m.compare(t, b) // they are seen: the rest of the publication was after them
	}
	b.pause = nil
	b.Publish()
	if churns {
		m.apply(*between)
	}
	m.compare(t, b)
}

// everyone returns a snapshot with half of the members, and as many others.
func everyone(s *generator) (es []rankcache.Entry) {
	for i := range s.members {
		es = append(es, rankcache.Entry{Member: fmt.Sprintf([]string{"user:%d", "loaded:%d"}[i%2], i), Score: smallScores(s.Rand)})
	}
	return es
}

// TestResetWhileLoading: a board that is reset has nothing of a load that began before, nor of a first publication.
func TestResetWhileLoading(t *testing.T) {
	es := []rankcache.Entry{{Member: "a", Score: 1}, {Member: "b", Score: 2}}
	b := newBoard(t)
	load := b.StartLoad(5, es)
	b.Reset()
	if err := load(); !errors.Is(err, ErrReset) {
		t.Errorf("error %v, want ErrReset", err)
	}
	for steps := range 5 {
		left := steps
		b.pause = func() {
			if left--; left < 0 {
				b.pause = nil
				b.Reset()
			}
		}
		if err := b.Load(5, es); !errors.Is(err, ErrReset) {
			t.Errorf("reset at step %d: error %v, want ErrReset", steps, err)
		}
		if n := b.Progress().Members; n != 0 {
			t.Errorf("%d members after the reset", n)
		}
	}
	b.Apply([]wire.Update{set("old", 1, 1)})
	resets := 1
	b.pause = func() {
		if resets--; resets == 0 {
			b.Reset()
			b.Apply([]wire.Update{set("new", 2, 1)})
		}
	}
	b.Publish()
	if rows := whole(b, rankcache.Descending); len(rows) != 1 || rows[0].Member != "new" {
		t.Errorf("after the reset the board has %v", rows)
	}
}

// TestLoadBesideOthers has goroutines apply updates, look and reset while boards are loaded and published.
func TestLoadBesideOthers(t *testing.T) {
	for round := range 5 {
		b, s := newBoard(t), &generator{Rand: rand.New(rand.NewPCG(5, uint64(round))), members: 3000, scores: smallScores}
		batches := make([][]wire.Update, 60)
		es := everyone(s)
		for i := range batches {
			batches[i] = s.batch(50, true)
		}
		var group sync.WaitGroup
		group.Go(func() {
			for _, us := range batches {
				b.Apply(us)
				b.Progress()
			}
		})
		group.Go(func() {
			if err := b.Load(1000, es); err != nil {
				t.Error(err)
			}
			b.Sum()
			b.Publish()
			b.Publish()
		})
		group.Wait()
		m := newModel()
		m.load(1000, es)
		for _, us := range batches {
			m.apply(us)
		}
		b.Publish()
		m.compare(t, b)
		check(t, b)
	}
}
