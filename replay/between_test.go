package replay

import (
	"testing"
	"testing/synctest"

	"rankcache"
	"rankcache/wire"
)

// slowBoard is a board whose load lasts until it is let go on.
type slowBoard struct {
	fakeBoard
	goOn chan struct{}
}

func (b *slowBoard) StartLoad(uint64, ...[]rankcache.Entry) func() error {
	return func() error { <-b.goOn; return nil }
}
func (b *slowBoard) Create(rankcache.BoardID) Board { return b }

// TestLoadingHoldsNothingUp: updates of a board that is being loaded are applied meanwhile, as its replica's lock is not held, and it
// can begin anew: then it is not loaded.
func TestLoadingHoldsNothingUp(t *testing.T) {
	for _, begins := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := &slowBoard{goOn: make(chan struct{})}
			r := feedOf(b).replica
			loaded, done := make(chan error, 1), false
			go func() { loaded <- r.load(r.currentEpoch(), rankcache.State{Run: 1, Seq: 5}, nil) }()
			synctest.Wait()
			go func() {
				r.apply([]wire.Update{{Board: "b", Member: "m", Run: 1, Seq: 6}})
				if r.progress(); begins {
					r.begin(logTo(1, true))
				}
				done = true
			}()
			synctest.Wait()
			if !done {
				t.Error("an update waits for the load")
			}
			close(b.goOn)
			if err := <-loaded; (err != nil) != begins {
				t.Errorf("loaded: %v; the board began anew: %t", err, begins)
			}
			synctest.Wait()
		})
	}
}
