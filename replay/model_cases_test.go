package replay

import (
	"testing"
	"testing/synctest"
	"time"
)

// modelCase runs a history that was written by hand.
func modelCase(t *testing.T, before, after func(w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		before(w)
		w.start()
		defer w.end()
		after(w)
		w.calm()
		w.heal()
	})
}

// A board that was opened while a writer added up its members has no checksum to be
// proved by. It is proved once Redis has one.
func TestModelBoardIsProvedAfterAdoption(t *testing.T) {
	modelCase(t, func(w *world) {
		w.changes(30)
		w.redis.slowAdopt = true
		w.redis.lose(false, true)
		w.workAt = time.Now().Add(5 * time.Second)
		w.change() // has the board adopted, and waits
	}, func(w *world) {
		w.run(4 * time.Second)
		if !w.feed().replica.readable.Load() {
			w.fail("not open")
		}
	})
}

// A board that has no checksum here is closed when Redis begins a new run, too.
func TestModelUnprovedBoardOfAnEarlierRun(t *testing.T) {
	modelCase(t, func(w *world) {
		w.changes(30)
		w.redis.lose(true, false) // ZCARD and meta differ
	}, func(w *world) {
		w.run(4 * time.Second)
		w.change()
		w.producers[0].queue = nil // only a reading of Redis shows the new run
		w.run(4 * time.Second)
	})
}
