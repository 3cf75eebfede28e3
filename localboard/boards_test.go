package localboard

import (
	"sync"
	"testing"

	"rankcache"
	"rankcache/wire"
)

func TestBoards(t *testing.T) {
	s := NewBoards()
	readable := func(id rankcache.BoardID) bool { _, ok := s.Get(id); return ok }
	s.Open("a")
	if readable("a") || len(s.All()) != 0 {
		t.Error("a board that does not exist was opened")
	}
	b := s.Create("b")
	a := s.Create("a")
	b.Apply([]wire.Update{set("x", 1, 1)})
	if readable("b") || topOf(b) != nil || s.Create("b") != b || b.ID() != "b" {
		t.Error("a board that is being filled is readable, or made twice")
	}
	s.Open("b")
	if got, ok := s.Get("b"); !ok || got != b || topOf(b).Members != 1 {
		t.Error("an open board is not readable")
	}
	if all := s.All(); len(all) != 2 || all[0] != a || all[1] != b {
		t.Errorf("all: %v", all)
	}
	s.Close("b")
	if readable("b") || s.Create("b") != b {
		t.Error("a closed board is readable, or not in the set")
	}
	s.Open("b")
	s.Drop("b")
	if readable("b") || len(s.All()) != 1 || s.Create("b") == b {
		t.Error("a dropped board is still in the set")
	}
}

// TestBoardsNeverHalfBuilt looks at boards while they are filled and opened:
// one that is readable is complete.
func TestBoardsNeverHalfBuilt(t *testing.T) {
	s := NewBoards()
	const rounds, size = 200, 300
	var wg sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if b, ok := s.Get("b"); ok {
					if top := topOf(b); top == nil || top.Members != size || len(page(b, 0, size, rankcache.Ascending).Entries) != size {
						t.Errorf("half-built: %+v", top)
						return
					}
				}
			}
		})
	}
	for range rounds {
		b := s.Create("b")
		for i := range size {
			b.Apply([]wire.Update{set(string(rune('a'+i)), 1, uint64(i+1))})
		}
		s.Open("b")
		s.Drop("b")
	}
	close(done)
	wg.Wait()
}

// TestChangedIsCalled whenever readers may see another state, and not for what no reader sees.
func TestChangedIsCalled(t *testing.T) {
	calls := 0
	s := NewBoards(WithChanged(func(id rankcache.BoardID) {
		if id != "b" {
			t.Errorf("called for %s", id)
		}
		calls++
	}))
	b := s.Create("b")
	for i, step := range []struct {
		do    func()
		calls bool
	}{
		{func() { b.Apply([]wire.Update{{Op: wire.OpSet, Member: "m", Score: 1, Seq: 1}}) }, false},
		{b.Publish, true},
		{b.Publish, false},
		{func() { s.Open("b") }, true},
		{b.Reset, true},
		{func() { s.Drop("b") }, true},
	} {
		before := calls
		if step.do(); (calls > before) != step.calls {
			t.Errorf("step %d: %d calls", i, calls-before)
		}
	}
}
